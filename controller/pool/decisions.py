"""Decisions of a pool that are not carried out yet, by block."""

from __future__ import annotations

from collections.abc import Container
from typing import Final, cast

from controller.policies import Admit, Decision, Evict
from controller.pool.reclaim import Finished

GATHER_S: Final = 0.02
"""Seconds for which homes' answers about evicted blocks wait for other answers and for decisions. A Write
takes 0.4 to 1.8 ms, however little is in it (docs/emulation.md)."""


class Decisions:
    """Decisions of the policy; two that undo each other leave nothing to do."""

    def __init__(self) -> None:
        self._admitted: dict[bytes, None] = {}
        self._evicted: dict[bytes, Evict] = {}

    def __bool__(self) -> bool:
        return bool(self._admitted or self._evicted)

    def note(self, decision: Decision, resident: Container[bytes]) -> bytes | None:
        """Add one; a block that is `resident`, and was on its way out for longer, if that stays after all."""
        key = cast("bytes", decision.key)  # a replay's keys are ints; here every event had bytes
        if isinstance(decision, Evict):
            if key in self._admitted:
                del self._admitted[key]
            else:
                self._evicted[key] = decision
        elif isinstance(decision, Admit):
            if key in self._evicted:
                del self._evicted[key]
            elif key in resident:
                return key
            else:
                self._admitted[key] = None
        return None

    def take_evicted(self) -> dict[bytes, Evict]:
        """Return what is to be evicted, and forget it."""
        taken, self._evicted = self._evicted, {}
        return taken

    def take_admitted(self) -> dict[bytes, None]:
        """Return what is to be admitted, and forget it."""
        taken, self._admitted = self._admitted, {}
        return taken

    def clear(self) -> None:
        """Forget all decisions."""
        self._admitted.clear()
        self._evicted.clear()


class Leaving:
    """Evicted blocks whose homes have answered, and whose entries are still there."""

    def __init__(self) -> None:
        self._finished: dict[bytes, Finished] = {}
        self._since_s = 0.0

    def __bool__(self) -> bool:
        return bool(self._finished)

    @property
    def due_s(self) -> float:
        """Return when their entries should go, in seconds."""
        return self._since_s + GATHER_S if self._finished else float("inf")

    def add(self, finished: Finished, now_s: float) -> None:
        """Note that a home has answered."""
        if not self._finished:
            self._since_s = now_s
        self._finished[finished.key] = finished

    def take(self) -> dict[bytes, Finished]:
        """Return all of them, and forget them."""
        taken, self._finished = self._finished, {}
        return taken

    def keep(self, key: bytes) -> None:
        """Note that a block stays after all."""
        self._finished.pop(key, None)
