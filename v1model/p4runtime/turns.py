"""Order of pieces of work: primaries' first, then each connection's in turn."""

from __future__ import annotations

import itertools
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_PEERS = 1024  # number of connections whose last turns are stored


@dataclass(slots=True, eq=False)
class _Waiter:
    peer: str
    is_primary: bool
    arrived: int
    chosen: threading.Event = field(default_factory=threading.Event)


class Turns:
    """Lock for pieces of long requests.

    A waiting primary gets it first, else the connection whose last turn is longest ago.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._busy = False
        self._waiting: list[_Waiter] = []
        self._last_turns: dict[str, int] = {}
        self._count = itertools.count(1)

    @contextmanager
    def turn(self, peer: str, *, is_primary: bool) -> Iterator[None]:
        """Wait for a turn, and hold it during the block."""
        with self._lock:
            waiter = None
            if self._busy:
                waiter = _Waiter(peer, is_primary, next(self._count))
                self._waiting.append(waiter)
            else:
                self._begin(peer)
        if waiter is not None:
            waiter.chosen.wait()
        try:
            yield
        finally:
            self._hand_over()

    def _begin(self, peer: str) -> None:
        self._busy = True
        if len(self._last_turns) >= MAX_PEERS:
            self._last_turns.clear()
        self._last_turns[peer] = next(self._count)

    def _hand_over(self) -> None:
        with self._lock:
            if not self._waiting:
                self._busy = False
                return
            chosen = min(self._waiting, key=self._rank)
            self._waiting.remove(chosen)
            self._begin(chosen.peer)
        chosen.chosen.set()

    def _rank(self, waiter: _Waiter) -> tuple[bool, int, int]:
        return not waiter.is_primary, self._last_turns.get(waiter.peer, 0), waiter.arrived
