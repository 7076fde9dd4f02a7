"""What a run compared and found is said in words that need no others."""

from dataclasses import asdict, replace
from typing import Any

import pytest

from emulator.result import Percentiles
from experiments.run.words import answer, in_bytes, question, reliability, sketch
from scenario.modes import MODES
from tests.experiments.run.test_page import ABOUT, RESULT
from topologies.star import star


def runs(**results: Any) -> dict[str, Any]:
    return {name: {"result": asdict(result)} for name, result in results.items()}


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (0, "0 B"), (999, "999 B"), (1000, "1 kB"), (5_260, "5.26 kB"), (300_000, "300 kB"),
        (999_900, "1 MB"), (12_345_678, "12.3 MB"), (2.5e9, "2.5 GB"),
    ],
)  # fmt: skip
def test_bytes_have_three_digits_so_that_small_ones_are_seen(count: float, said: str) -> None:
    assert in_bytes(count) == said


def test_every_mode_is_explained() -> None:
    said = question(ABOUT, runs(**dict.fromkeys(MODES, RESULT)))
    assert all(mode.title in said for mode in MODES.values())
    assert all(name not in said for name in ("no_pool", "sigma"))


def test_more_bytes_are_said_so() -> None:
    worse = replace(RESULT, storage_egress_bytes=2500)
    assert "25% more bytes: 2.5 kB instead of 2 kB" in answer(runs(no_pool=RESULT, pool=worse), lends=False)


def test_long_times_are_in_seconds() -> None:
    slow = replace(RESULT, ttft_ms=Percentiles(2516.0, 9000.0))
    assert "within 2.52 s instead of 100 ms" in answer(runs(no_pool=RESULT, pool=slow), lends=True)


def test_with_one_mode_there_is_nothing_to_compare() -> None:
    assert "nothing to compare" in answer(runs(pool=RESULT), lends=False)


def test_it_is_said_whether_to_believe_it() -> None:
    assert "RUNS=5" in reliability(runs(pool=RESULT), 1, [])
    assert "RUNS=5" not in reliability(runs(pool=RESULT), 5, [])
    late = reliability(runs(no_pool=RESULT, pool=replace(RESULT, overloaded=True)), 1, ["CPU"])
    assert "did not keep up (pool)" in late


def test_the_network_is_a_line_before_it_is_started() -> None:
    assert sketch(star(8, 2, 1e7)).strip() == "node1, node2 … node8 ══════ s1 ══════ store1, store2"
