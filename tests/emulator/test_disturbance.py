"""Runs without a pool, and with one that is never hit, show whether the machine disturbs the figures."""

from __future__ import annotations

from dataclasses import replace

import pytest

from commands.intervals import Interval
from emulator.disturbance import complaints, differences, verdict
from emulator.result import Percentiles, RunResult
from tests.experiments.run.test_report import RESULT


def at(get_ms: float) -> RunResult:
    return replace(RESULT, get_ms=Percentiles(get_ms, 2 * get_ms), ttft_ms=Percentiles(3 * get_ms, 9))


def test_differences_are_those_of_the_pairs_and_not_of_the_means() -> None:
    drifting = {"no_pool": [at(10), at(100), at(50)], "phantom": [at(11), at(110), at(55)]}
    for interval in differences(drifting).values():
        assert interval.mean == pytest.approx(0.1)
        assert interval.high - interval.low == pytest.approx(0, abs=1e-9)
    assert len(complaints(drifting)) == 2


def test_a_trace_that_fetches_nothing_has_no_difference() -> None:
    assert differences({"no_pool": [at(0)] * 3, "phantom": [at(1)] * 3}) == {}


@pytest.mark.parametrize(
    ("interval", "said"),
    [
        (Interval(0.0, -0.01, 0.01), "within"),
        (Interval(0.05, 0.03, 0.07), "outside"),
        (Interval(-0.05, -0.07, -0.03), "outside"),
        (Interval(0.0, -0.05, 0.05), "undecided"),
    ],
)
def test_the_verdict_is_of_the_whole_interval(interval: Interval, said: str) -> None:
    assert verdict(interval).startswith(said)
