from __future__ import annotations

import asyncio
import time

import pytest

from hostlib.process.observe import Histogram, SelfObserver, percentile
from tests.asynchronous import in_real_time


@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [([], 0.5, 0), ([3], 0.99, 3), ([4, 1, 3, 2], 0.5, 3), (range(100), 0.99, 99), (range(1000), 0.5, 500)],
)
def test_percentiles(values: list[float], share: float, expected: float) -> None:
    assert percentile(values, share) == expected


@in_real_time
async def test_a_blocked_loop_is_seen() -> None:
    observer = SelfObserver(period_s=0.005)
    observer.start()
    await asyncio.sleep(0.01)
    busy_until_s = time.process_time() + 0.1
    while time.process_time() < busy_until_s:
        pass
    await asyncio.sleep(0.01)
    report = observer.report()
    observer.stop()
    assert report["timer_late_ms"]["max"] >= 90
    assert report["cpu_s"] >= 0.1
    assert report["wall_s"] >= 0.12
    assert 0 < report["cpu_share"] <= 1.1


def test_a_histogram_counts_what_was_at_most_so_long() -> None:
    histogram = Histogram()
    for duration_s in (0.001, 0.0011, 3.0, 99.0):
        histogram.observe(duration_s)
    said = histogram.report()
    up_to = dict(zip(said["bounds_s"], said["up_to"], strict=False))
    assert (up_to[0.001], up_to[0.002], up_to[2.0], up_to[5.0], up_to[10.0]) == (1, 2, 2, 3, 3)
    assert said["up_to"][-1] == 4
    assert said["sum_s"] == pytest.approx(102.0021)
