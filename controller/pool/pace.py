"""Pace: so many within an interval: fragments that the controller has sent, or blocks that it hears of."""

from __future__ import annotations

from collections import deque
from itertools import repeat


class Pace:
    """Bound of `max_fragments` within `interval_s`. Times are those of a clock that only moves forward."""

    def __init__(self, max_fragments: int, interval_s: float) -> None:
        self._max_fragments, self._interval_s = max_fragments, interval_s
        self._sent_s: deque[float] = deque()

    def within(self, now_s: float) -> int:
        """Return how many were sent within the last interval."""
        while self._sent_s and self._sent_s[0] <= now_s - self._interval_s:
            self._sent_s.popleft()
        return len(self._sent_s)

    def room(self, now_s: float) -> bool:
        """Return whether another fragment may be sent."""
        return self.within(now_s) < self._max_fragments

    @property
    def due_s(self) -> float:
        """Return when there is room: at once, or when enough of what was sent first is so long ago."""
        excess = len(self._sent_s) - self._max_fragments
        return self._sent_s[excess] + self._interval_s if excess >= 0 else float("-inf")

    def sent(self, now_s: float, fragments: int = 1) -> None:
        """Note that so many were sent."""
        self._sent_s.extend(repeat(now_s, fragments))
