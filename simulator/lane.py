"""Flow control of a node towards one home, as in hostlib.client.lane, for parts of blocks instead of
fragments.

Its timeouts are left out: nothing is lost in a simulation.
"""

from __future__ import annotations

from collections import deque
from math import inf
from typing import Generic, TypeVar

from hostlib.client.lane import SHRINK, UNSHARED, LaneOptions


class Item:
    """Something of so many fragments."""

    __slots__ = ("fragments",)
    fragments: int


Kind = TypeVar("Kind", bound=Item)


class Lane(Generic[Kind]):
    """What waits to be sent, and how much is in flight within the window."""

    __slots__ = (
        "_heard_s",
        "_initial",
        "_least",
        "_merged_backlog_ms",
        "_most",
        "_most_open",
        "_opening",
        "_shared",
        "_target_backlog_ms",
        "_timeout_s",
        "in_flight",
        "waiting",
        "window",
    )

    def __init__(self, options: LaneOptions) -> None:
        self.window = self._initial = float(options.initial_window)
        self.in_flight = 0
        self.waiting: deque[Kind] = deque()
        self._least = options.min_window
        self._target_backlog_ms, self._merged_backlog_ms = (
            options.target_backlog_ms,
            options.merged_backlog_ms,
        )
        self._timeout_s = options.min_timeout_s
        self._most = options.max_window
        self._most_open = min(options.opened_window, options.max_window)
        self._heard_s = 0.0
        self._shared = 0
        self._opening = True

    @property
    def allowed(self) -> int:
        """Fragments that may be in flight: the window, and more while replies are shared."""
        allowed = int(self.window) + self._shared
        return allowed if allowed < self._most else self._most

    def take(self, now_s: float, room: float = inf) -> list[Kind]:
        """What may be sent now, at most so many fragments. A part larger than the window goes alone."""
        waiting = self.waiting
        taken: list[Kind] = []
        if not waiting:
            return taken
        in_flight = self.in_flight
        if in_flight <= 0:
            self._restart(now_s)
        allowed = self.allowed
        while waiting:
            fragments = waiting[0].fragments
            # Below 0 for a moment where a reply to an earlier request answers one that still waits here.
            if fragments > room or (in_flight > 0 and in_flight + fragments > allowed):
                break
            in_flight += fragments
            room -= fragments
            taken.append(waiting.popleft())
        self.in_flight = in_flight
        return taken

    def settle(self, fragments: int, now_s: float, backlog_ms: float | None, merged: bool = False) -> None:
        """So many fragments are answered: by the home with its backlog, or by someone nearer (None).

        `merged`: the reply is a copy of one that went to other nodes too.
        """
        self.in_flight -= fragments
        if backlog_ms is None:
            self._open(fragments)
            return
        self._heard_s = now_s
        if merged:
            if backlog_ms <= self._merged_backlog_ms:
                self._shared += fragments
            return
        if self._shared:
            self._shared = max(0, self._shared - UNSHARED * fragments)
        if backlog_ms <= self._target_backlog_ms:
            if not self._open(fragments) and self.window < self._most:
                self.window = min(self._most, self.window + fragments / self.window)
        else:
            self._opening = False
            self.window = max(self._least, self.window - SHRINK * fragments)

    def _open(self, fragments: int) -> bool:
        if not self._opening or self.window >= self._most_open:
            return False
        self.window = min(self._most_open, self.window + fragments)
        return True

    def _restart(self, now_s: float) -> None:
        """Nothing was asked for: what was learned of the home's load has aged."""
        if now_s - self._heard_s >= self._timeout_s:
            self.window = self._initial
            self._opening = True
        self._heard_s = now_s
        self._shared = 0
