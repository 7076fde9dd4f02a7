"""StreamChannel of one controller: a bounded queue of messages to it."""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from v1model.protos.p4.v1 import p4runtime_pb2

QUEUE_MESSAGES = 4096
QUEUE_BYTES = 8 << 20


class Session:
    """Stream of a controller, whose connection is `peer`.

    `role` is None until its first MasterArbitrationUpdate was accepted.
    """

    def __init__(self, peer: str = "") -> None:
        self.peer = peer
        self.role: str | None = None
        self.dropped = 0  # messages dropped because the controller was slow
        self._queue: deque[p4runtime_pb2.StreamMessageResponse] = deque()
        self._bytes = 0  # of the messages in the queue
        self._changed = threading.Condition()
        self._closed = False

    def send(self, message: p4runtime_pb2.StreamMessageResponse) -> None:
        """Queue a message.

        If the queue is full, all but arbitration is dropped and counted. A controller that does not take even
        those is disconnected.
        """
        with self._changed:
            if self._is_full() and not message.HasField("arbitration"):
                self.dropped += 1
                return
            self._queue.append(message)
            self._bytes += message.ByteSize()
            self._closed = self._closed or len(self._queue) > 2 * QUEUE_MESSAGES
            self._changed.notify_all()

    def close(self) -> None:
        """End `messages` after those that are queued."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def wait_for_room(self) -> None:
        """Wait until the queue has space for an answer, or the session is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or not self._is_full())

    def messages(self) -> Iterator[p4runtime_pb2.StreamMessageResponse]:
        """Yield the sent messages as they come, until `close`."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._queue or self._closed)
                if not self._queue:
                    return
                message = self._queue.popleft()
                self._bytes -= message.ByteSize()
                self._changed.notify_all()
            yield message

    def _is_full(self) -> bool:
        return len(self._queue) >= QUEUE_MESSAGES or self._bytes >= QUEUE_BYTES
