"""Limits of calls whose client keeps the server waiting: how many there may be, and for how long.

gRPC's own server waits for a call's request in a thread, without limit. Here every call is a stream to gRPC:
so it arrives here before its request does, and can be cancelled.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from v1model.dataplane import DataPlaneError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import grpc

REQUEST_TIMEOUT_S = 10.0  # from the begin of a call to the last byte of its request
RESPONSE_TIMEOUT_S = 60.0  # until a client takes its next message
# Calls without their request, of connections that no primary uses; each may hold most of a request.
MAX_WAITING = 24
MAX_ANSWERED = 32  # calls of such connections whose client has not taken the answer
MAX_RUNNING = 32  # calls that read and write, and as many of primaries' connections
MAX_RUNNING_OF_PEER = 4  # of a connection that no primary uses
_LOOK_S = 0.5


class _Kind(Enum):
    """Kind of waits that are bounded together."""

    REQUEST = "request"
    ANSWER = "answer"

    @property
    def most(self) -> int:
        """Return the largest number of such waits."""
        return MAX_WAITING if self is _Kind.REQUEST else MAX_ANSWERED


@dataclass(slots=True, eq=False)
class _Wait:
    context: grpc.ServicerContext
    peer: str
    deadline: float
    kind: _Kind | None  # that it counts as; None: it does not count
    number: int


_SHARED_PEERS = ("unix:", "")  # gRPC does not distinguish connections by a Unix socket


class Calls:
    """Limiter of calls; its thread cancels calls that have waited too long, and the client sees CANCELLED."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waits: dict[_Wait, None] = {}
        self._numbers = itertools.count()
        self._running: Counter[tuple[bool, str]] = Counter()
        self._closed = False
        threading.Thread(target=self._look, name="p4runtime-deadlines", daemon=True).start()

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify()

    @contextmanager
    def for_request(self, context: grpc.ServicerContext, *, is_primary: bool) -> Iterator[None]:
        """Mark a call as waiting for its first message during the block.

        If too many wait, the connection with most of them loses its oldest. So no client can block others
        with calls that never send a request. Primaries' connections don't count.
        """
        with self._waiting(context, REQUEST_TIMEOUT_S, _Kind.REQUEST, is_primary=is_primary):
            yield

    @contextmanager
    def for_answer(self, context: grpc.ServicerContext, *, is_primary: bool) -> Iterator[None]:
        """Mark a call as waiting for its client to take the answer, as `for_request` does."""
        with self._waiting(context, RESPONSE_TIMEOUT_S, _Kind.ANSWER, is_primary=is_primary):
            yield

    @contextmanager
    def for_response(self, context: grpc.ServicerContext) -> Iterator[None]:
        """Mark a stream, of which there are few, as waiting for its client to take a message."""
        with self._waiting(context, RESPONSE_TIMEOUT_S, None, is_primary=False):
            yield

    @contextmanager
    def running(self, peer: str, *, is_primary: bool) -> Iterator[None]:
        """Mark a call as running during the block; raises RESOURCE_EXHAUSTED if too many run."""
        key = is_primary, peer
        with self._changed:
            self._check_room(key)
            self._running[key] += 1
        try:
            yield
        finally:
            with self._changed:
                self._running[key] -= 1
                if not self._running[key]:
                    del self._running[key]

    def _check_room(self, key: tuple[bool, str]) -> None:
        is_primary, peer = key
        if sum(count for other, count in self._running.items() if other[0] == is_primary) >= MAX_RUNNING:
            raise DataPlaneError("RESOURCE_EXHAUSTED", f"{MAX_RUNNING} calls run already: try again")
        if not is_primary and peer not in _SHARED_PEERS and self._running[key] >= MAX_RUNNING_OF_PEER:
            raise DataPlaneError(
                "RESOURCE_EXHAUSTED", f"{MAX_RUNNING_OF_PEER} calls of this connection run already: try again"
            )

    @contextmanager
    def _waiting(
        self, context: grpc.ServicerContext, timeout_s: float, kind: _Kind | None, *, is_primary: bool
    ) -> Iterator[None]:
        peer = context.peer() if kind is not None else ""
        if is_primary and peer not in _SHARED_PEERS:
            kind = None
        wait = _Wait(context, peer, time.monotonic() + timeout_s, kind, next(self._numbers))
        with self._changed:
            was_empty = not self._waits
            self._waits[wait] = None
            surplus = self._surplus(kind) if kind is not None else None
            if surplus is not None:
                del self._waits[surplus]
            if was_empty:
                self._changed.notify()
        if surplus is not None:
            _cancel(surplus)
        try:
            yield
        finally:
            with self._changed:
                self._waits.pop(wait, None)

    def _surplus(self, kind: _Kind) -> _Wait | None:
        counted = [wait for wait in self._waits if wait.kind is kind]
        if len(counted) <= kind.most:
            return None
        calls = Counter(wait.peer for wait in counted)
        return min(counted, key=lambda wait: (-calls[wait.peer], wait.number))

    def _look(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waits or self._closed)
                if self._closed:
                    return
                now = time.monotonic()
                late = [wait for wait in self._waits if wait.deadline <= now]
                for wait in late:
                    del self._waits[wait]
            for wait in late:
                _cancel(wait)
            time.sleep(_LOOK_S)


def _cancel(wait: _Wait) -> None:
    wait.context.cancel()  # type: ignore[no-untyped-call]  # gRPC's
