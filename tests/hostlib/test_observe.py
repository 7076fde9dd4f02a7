from __future__ import annotations

import asyncio
import time

import pytest

from hostlib.observe import SelfObserver, percentile


@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [([], 0.5, 0), ([3], 0.99, 3), ([4, 1, 3, 2], 0.5, 3), (range(100), 0.99, 99), (range(1000), 0.5, 500)],
)
def test_percentiles(values: list[float], share: float, expected: float) -> None:
    assert percentile(values, share) == expected


def test_a_blocked_loop_is_seen() -> None:
    async def main() -> None:
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

    asyncio.run(main())
