"""What is seen of the machine while a run is played."""

from __future__ import annotations

import time

from experiments.run.machine import SAMPLE_PERIOD_S, CpuWatch


def test_a_busy_machine_is_seen_from_the_first_sample_on() -> None:
    watch = CpuWatch()
    watch.start()
    until_s = time.monotonic() + 1.5 * SAMPLE_PERIOD_S  # one sample
    while time.monotonic() < until_s:
        pass
    assert watch.stop().mean > 0.05
