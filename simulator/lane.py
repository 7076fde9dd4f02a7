"""Flow control of a node towards one home: the hosts' window, for parts of blocks instead of fragments.

It has no timeouts: nothing is lost in a simulation.
"""

from __future__ import annotations

from collections import deque
from math import inf
from typing import Generic, TypeVar

from hostlib.native.flow_window import FlowWindow
from hostlib.native.lane_options import LaneOptions


class Item:
    """Message that stands for a number of fragments."""

    __slots__ = ("fragments",)
    fragments: int


Kind = TypeVar("Kind", bound=Item)


class Lane(FlowWindow, Generic[Kind]):
    """Queue of messages to one home, and the number of fragments in flight within the window."""

    __slots__ = ("in_flight", "waiting")

    def __init__(self, options: LaneOptions) -> None:
        super().__init__(options)
        self.in_flight = 0
        self.waiting: deque[Kind] = deque()

    def take(self, now_s: float, room: float = inf) -> list[Kind]:
        """Return what may be sent now, at most `room` fragments; a part larger than the window goes alone."""
        waiting = self.waiting
        taken: list[Kind] = []
        if not waiting:
            return taken
        in_flight = self.in_flight
        if in_flight <= 0:
            self.restart(now_s)
        allowed = self.allowed
        while waiting:
            fragments = waiting[0].fragments
            # `in_flight` is below 0 for a moment if a reply to an earlier request answers one that still
            # waits here.
            if fragments > room or (in_flight > 0 and in_flight + fragments > allowed):
                break
            in_flight += fragments
            room -= fragments
            taken.append(waiting.popleft())
        self.in_flight = in_flight
        return taken

    def settle(self, fragments: int, now_s: float, backlog_ms: float | None, merged: bool = False) -> None:
        """Take answered fragments out of flight; the rest is as in `FlowWindow.answered`."""
        self.in_flight -= fragments
        self.answered(fragments, now_s, backlog_ms, merged)
