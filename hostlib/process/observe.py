"""A process that watches itself: a scale model is only true while the machine keeps up."""

from __future__ import annotations

import asyncio
import time
from bisect import bisect_left
from collections import deque
from itertools import accumulate
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable


def percentile(values: Iterable[float], share: float) -> float:
    """Return the value below which `share` of `values` lie (nearest rank); 0 for none."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


OBSERVE_S = 0.05
"""Default of seconds between two measurements of how late timers are."""
BOUNDS_S = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)


class Histogram:
    """Number of durations up to each bound; the last bucket has those beyond all bounds."""

    def __init__(self) -> None:
        self._counts = [0] * (len(BOUNDS_S) + 1)
        self._sum_s = 0.0

    def observe(self, duration_s: float) -> None:
        """Count one observation."""
        self._counts[bisect_left(BOUNDS_S, duration_s)] += 1
        self._sum_s += duration_s

    def report(self) -> dict[str, Any]:
        """Return bounds in seconds, counts up to and with each bound (the last: of all), and the sum in
        seconds."""
        return {"bounds_s": BOUNDS_S, "up_to": list(accumulate(self._counts)), "sum_s": self._sum_s}


class SelfObserver:
    """CPU used and lateness of timers since `start`; sampled every `period_s`."""

    def __init__(self, period_s: float = OBSERVE_S, samples_kept: int = 20_000) -> None:
        self._period_s = period_s
        self._late_s: deque[float] = deque(maxlen=samples_kept)
        self._max_late_s = 0.0
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._started_s = time.monotonic()
        self._started_cpu_s = time.process_time()

    def start(self) -> None:
        """Count from now on."""
        self.stop()
        self._late_s.clear()
        self._max_late_s = 0.0
        self._started_s = time.monotonic()
        self._started_cpu_s = time.process_time()
        self._schedule()

    def stop(self) -> None:
        """Stop sampling."""
        if self._timer is not None:
            self._timer.cancel()

    def report(self) -> dict[str, Any]:
        """Return what was seen: wall and CPU seconds, their ratio, and how late timers were, in ms."""
        wall_s = time.monotonic() - self._started_s
        cpu_s = time.process_time() - self._started_cpu_s
        return {
            "wall_s": round(wall_s, 3),
            "cpu_s": round(cpu_s, 3),
            "cpu_share": round(cpu_s / wall_s, 4) if wall_s else 0.0,
            "timer_late_ms": {
                "p99": round(1000 * percentile(self._late_s, 0.99), 3),
                "max": round(1000 * self._max_late_s, 3),
            },
        }

    def _schedule(self) -> None:
        due_s = self._loop.time() + self._period_s
        self._timer = self._loop.call_at(due_s, self._sample, due_s)

    def _sample(self, due_s: float) -> None:
        late_s = max(0.0, self._loop.time() - due_s)
        self._late_s.append(late_s)
        self._max_late_s = max(self._max_late_s, late_s)
        self._schedule()
