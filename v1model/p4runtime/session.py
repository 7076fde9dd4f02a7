"""One controller's StreamChannel: a bounded queue of messages to it."""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from v1model.protos.p4.v1 import p4runtime_pb2

QUEUE_MESSAGES = 4096


class Session:
    """`role` is None until the controller's first MasterArbitrationUpdate was accepted."""

    def __init__(self) -> None:
        self.role: str | None = None
        self.dropped = 0  # messages that a slow controller did not take in time
        self._queue: deque[p4runtime_pb2.StreamMessageResponse] = deque()
        self._changed = threading.Condition()
        self._closed = False

    def send(self, message: p4runtime_pb2.StreamMessageResponse) -> None:
        """Queues a message. When the queue is full, all but arbitration is dropped and counted; a
        controller that does not take even those is cut off."""
        with self._changed:
            if len(self._queue) >= QUEUE_MESSAGES and not message.HasField("arbitration"):
                self.dropped += 1
                return
            self._queue.append(message)
            self._closed = self._closed or len(self._queue) > 2 * QUEUE_MESSAGES
            self._changed.notify()

    def close(self) -> None:
        """Ends `messages`, after what is queued."""
        with self._changed:
            self._closed = True
            self._changed.notify()

    def messages(self) -> Iterator[p4runtime_pb2.StreamMessageResponse]:
        """What was sent, as it comes, until `close`."""
        while True:
            with self._changed:
                while not self._queue and not self._closed:
                    self._changed.wait()
                if not self._queue:
                    return
                message = self._queue.popleft()
            yield message
