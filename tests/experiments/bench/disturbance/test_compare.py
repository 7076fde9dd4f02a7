"""What pairs of runs say of the machine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from commands.intervals import Interval
from emulator.disturbance import COMPARED, verdict
from emulator.result import Percentiles
from experiments.bench.disturbance.__main__ import _write_page, another_fits
from experiments.bench.disturbance.compare import Pair, differences, order_of, passed
from tests.experiments.run.test_report import RESULT


def pair(no_pool_ms: float, phantom_ms: float, **phantom: object) -> Pair:
    first, second = (
        replace(RESULT, get_ms=Percentiles(ms, 2 * ms), ttft_ms=Percentiles(3 * ms, 4 * ms))
        for ms in (no_pool_ms, phantom_ms)
    )
    return Pair(first, replace(second, **phantom))  # type: ignore[arg-type]


def test_differences_are_those_of_the_pairs_and_not_of_the_means() -> None:
    found = differences([pair(10, 11), pair(100, 110), pair(50, 55)])  # the machine's speed drifts
    for interval in found.values():
        assert interval.mean == pytest.approx(0.1)
        assert interval.high - interval.low == pytest.approx(0, abs=1e-9)


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


def test_each_kind_of_run_comes_first_as_often() -> None:
    assert [order_of(number)[0] for number in range(4)] == [*COMPARED, *COMPARED]


@pytest.mark.parametrize(
    ("pairs", "took_s", "fits"), [(0, 0, True), (1, 900, True), (2, 40, True), (2, 41, False), (9, 53, True)]
)
def test_pairs_end_within_the_minutes_but_there_are_two(pairs: int, took_s: float, fits: bool) -> None:
    assert another_fits(pairs, took_s, 60.0) == fits
    assert another_fits(pairs, took_s, 0.0)


def test_a_pair_counts_when_the_machine_kept_up_in_both() -> None:
    assert pair(1, 1).counts
    assert not pair(1, 1, overloaded=True).counts


def test_a_pair_whose_requests_failed_does_not_count() -> None:
    assert not pair(1, 1, failed=1).counts


def test_a_trace_that_fetches_nothing_leaves_a_report_and_does_not_pass(tmp_path: Path) -> None:
    pairs = [replace(one, no_pool=replace(one.no_pool, get_ms=Percentiles(0, 0))) for one in [pair(1, 1)] * 3]
    _write_page(tmp_path, {}, pairs)
    assert "nothing to compare" in "".join(file.read_text() for file in tmp_path.glob("*.html"))
    assert not passed(pairs)
    assert passed([pair(1, 1)] * 3)
