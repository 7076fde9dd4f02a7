"""Intervals hold the mean as often as they say."""

from __future__ import annotations

import random

import pytest

from experiments.intervals import mean_interval


@pytest.mark.parametrize("runs", [2, 5, 10, 40])
def test_about_19_of_20_intervals_hold_the_true_mean(runs: int) -> None:
    chance = random.Random(runs)
    trials = 2000
    held = sum(
        interval.low <= 3.0 <= interval.high
        for interval in (mean_interval([chance.gauss(3.0, 1.0) for _ in range(runs)]) for _ in range(trials))
    )
    assert held / trials == pytest.approx(0.95, abs=0.02)


def test_one_measurement_says_nothing_of_the_spread() -> None:
    assert mean_interval([5.0]).mean == 5.0
    assert not mean_interval([0.0]).within(1e9)


def test_an_interval_is_within_a_limit_only_as_a_whole() -> None:
    interval = mean_interval([0.01, 0.015, 0.02])
    assert interval.low < 0.015 < interval.high
    assert interval.within(0.03)
    assert not interval.within(0.02)
