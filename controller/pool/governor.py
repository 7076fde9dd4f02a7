"""Keeps the rate of reports bearable by raising the count from which switches send them."""

from __future__ import annotations

from typing import Final

_WINDOW_S: Final = 1.0
_MAX_COUNT: Final = 0x8000


class ReportGovernor:
    """Doubles the threshold in a second with too many reports, halves it again when there are few."""

    def __init__(self, count: int, max_per_s: int) -> None:
        self.count = count
        self._base, self._max_per_s = count, max_per_s
        self._reports = 0
        self._window_end_s: float | None = None

    def reported(self, reports: int) -> None:
        """Count reports that arrived, or that were dropped on the way."""
        self._reports += reports

    @property
    def due_s(self) -> float:
        """Return when a raised threshold may be lowered again, though nothing is reported any more."""
        return float("inf") if self.count == self._base else self._window_end_s or 0.0

    def adjust(self, now_s: float) -> int | None:
        """Return the new threshold at the end of a second, None where it stays."""
        if self._window_end_s is None:
            self._window_end_s = now_s + _WINDOW_S
        if now_s < self._window_end_s:
            return None
        rate = self._reports / (now_s - self._window_end_s + _WINDOW_S)
        self._window_end_s, self._reports = now_s + _WINDOW_S, 0
        wanted = self.count
        if rate > self._max_per_s:
            wanted = min(_MAX_COUNT, self.count * 2)
        elif rate < self._max_per_s / 4:
            wanted = max(self._base, self.count // 2)
        if wanted == self.count:
            return None
        self.count = wanted
        return wanted
