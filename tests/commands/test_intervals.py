"""Intervals hold the mean as often as they say."""

from __future__ import annotations

import random

import pytest

from commands.intervals import Interval, mean_interval, ratio_interval


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


def test_an_interval_is_printed_with_its_half_and_scaled_as_a_whole() -> None:
    assert f"{100 * mean_interval([0.01, 0.015, 0.02]):+.1f}" == "+1.5 ± 1.2"
    assert f"{mean_interval([1234.0]):,.0f}" == "1,234"
    assert f"{Interval(-0.00001, -0.00002, 0.0):+.2%}" == "+0.00% ± 0.00%"
    assert f"{Interval(-0.0001, -0.0002, 0.0):.2%}" == "-0.01% ± 0.01%"


def test_by_how_much_something_is_less_turns_the_interval_round() -> None:
    assert 1 - Interval(0.75, 0.5, 1.25) == Interval(0.25, -0.25, 0.5)


def test_a_ratio_of_sums_holds_the_true_ratio_in_about_19_of_20() -> None:
    chance = random.Random(7)
    held = 0
    for _ in range(1000):
        others = [chance.uniform(1.0, 9.0) for _ in range(20)]
        interval = ratio_interval([(1.3 * other + chance.gauss(0.0, 1.0), other) for other in others])
        held += interval.low <= 1.3 <= interval.high
    assert held / 1000 == pytest.approx(0.95, abs=0.025)


def test_a_ratio_of_sums_weighs_by_size() -> None:
    assert ratio_interval([(1.0, 10.0), (1.0, 1.0)]).mean == pytest.approx(2 / 11)
    assert ratio_interval([(2.0, 1.0), (6.0, 3.0)]).half == pytest.approx(0.0)


def test_where_there_is_nothing_to_compare_with_a_ratio_is_1() -> None:
    assert ratio_interval([(0.0, 0.0), (0.0, 0.0)]) == Interval(1.0, 1.0, 1.0)
