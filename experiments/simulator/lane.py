"""Flow control of a node towards one home, as in hostlib.lane, for parts of blocks instead of fragments."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Generic, Protocol, TypeVar

from hostlib.lane import LaneOptions

SHRINK = 0.2
"""Fragments by which each reply shrinks the window while the home's backlog is long (hostlib.lane)."""


class Item(Protocol):
    """Something of so many fragments."""

    fragments: int


Kind = TypeVar("Kind", bound=Item)


class Lane(Generic[Kind]):
    """What waits to be sent, and how much is in flight within the window."""

    __slots__ = ("_options", "in_flight", "waiting", "window")

    def __init__(self, options: LaneOptions) -> None:
        self.window = float(options.initial_window)
        self.in_flight = 0
        self.waiting: deque[Kind] = deque()
        self._options = options

    def take(self) -> Iterator[Kind]:
        """What may be sent now. A part larger than the window goes alone."""
        waiting = self.waiting
        while waiting:
            fragments = waiting[0].fragments
            # Below 0 for a moment where a reply to an earlier request answers one that still waits here.
            if self.in_flight > 0 and self.in_flight + fragments > self.window:
                return
            self.in_flight += fragments
            yield waiting.popleft()

    def settle(self, fragments: int, backlog_ms: float | None) -> None:
        """So many fragments are answered: by the home with its backlog, or by someone nearer (None)."""
        self.in_flight -= fragments
        if backlog_ms is None:
            return
        options = self._options
        if backlog_ms <= options.target_backlog_ms:
            self.window = min(options.max_window, self.window + fragments / self.window)
        else:
            self.window = max(options.min_window, self.window - SHRINK * fragments)
