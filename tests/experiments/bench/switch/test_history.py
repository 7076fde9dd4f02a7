"""Recorded ratios: one line a workload, appended."""

import csv
from pathlib import Path

from experiments.bench.switch import history
from experiments.bench.switch.measure import Measurement


def measured(lossless: float, overload: float) -> Measurement:
    return Measurement(lossless, overload, 1000.0, 1.0, 10.0, 20.0, generator_limited=False)


ROUNDS = {
    "hits": {"echo": [measured(200, 190)], "embedded": [measured(180, 171)], "bmv2": [measured(9, 8)]},
    "l3": {"embedded": [measured(100, 100)]},
    "misses": {"echo": [measured(1, 1)]},
}


def test_ratios_to_what_was_measured_beside_it() -> None:
    hits, l3 = history.lines(ROUNDS, "2026-11-20", "abc")
    assert hits == {
        "date": "2026-11-20",
        "revision": "abc",
        "workload": "hits",
        "lossless_to_echo": "0.90",
        "lossless_to_bmv2": "20.00",
        "overload_to_echo": "0.90",
        "overload_to_lossless": "0.95",
        "lossless_per_s": "180",
    }
    assert (l3["workload"], l3["lossless_to_echo"], l3["overload_to_lossless"]) == ("l3", "", "1.00")


def test_a_second_run_is_appended(tmp_path: Path) -> None:
    path = tmp_path / "history.csv"
    assert history.record(ROUNDS, "2026-11-20", "abc", path) == 2
    assert history.record(ROUNDS, "2026-11-21", "def", path) == 2
    with path.open() as file:
        rows = list(csv.DictReader(file))
    assert [row["revision"] for row in rows] == ["abc", "abc", "def", "def"]
    assert tuple(rows[0]) == history.COLUMNS
