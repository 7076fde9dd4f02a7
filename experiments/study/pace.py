"""Speed of a sweep, and the time that it still takes."""

from __future__ import annotations

import time
from datetime import timedelta


class Pace:
    """Points a second, of those that are computed and were not known before."""

    def __init__(self) -> None:
        self._known, self._total, self._began_s = -1, -1, 0.0

    def text(self, done: int, total: int, known: int, now_s: float | None = None) -> str:
        """Return the rate and the estimated time left, or "" before anything is known of them.

        `now_s` is time.monotonic(). A change of `total` or `known` means another sweep.
        """
        now_s = time.monotonic() if now_s is None else now_s
        if (known, total) != (self._known, self._total):
            self._known, self._total, self._began_s = known, total, now_s
        computed, took_s = done - known, now_s - self._began_s
        if computed <= 0 or took_s <= 0:
            return ""
        rate = computed / took_s
        left = timedelta(seconds=round((total - done) / rate))
        return f"{rate:.3g} points/s, {left} left"
