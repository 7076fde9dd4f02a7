"""Tables: an interval is one cell for who reads, three for who computes."""

import csv
import io

import pytest

from commands.intervals import Interval, mean_interval
from experiments.study.point import Point
from experiments.study.report import shown_rows
from experiments.study.systems import Setting, system
from experiments.study.table import Table, points_table
from tests.experiments.study.made import of_runs, run


@pytest.mark.parametrize(
    ("mean", "half", "shown"),
    [
        (0.18712, 0.0078, "0.1871 ± 0.0078"),
        (0.18712, 0.078, "0.187 ± 0.078"),
        (46_093.2, 1_126.4, "46,093 ± 1,126"),
        (-3.2, 12.65, "-3 ± 13"),
        (1.0, 0.0, "1 ± 0"),
        (0.0, 0.0, "0 ± 0"),
        (3.1e-6, 5.3e-6, "0.000003 ± 0.000005"),
        (0.2, float("inf"), "0.2"),
    ],
)
def test_an_interval_is_shown_with_the_digits_that_it_carries(mean: float, half: float, shown: str) -> None:
    table = Table("one", ("time",), ((Interval(mean, mean - half, mean + half),),))
    assert shown_rows(table) == [[shown]]


def test_a_file_has_the_mean_and_both_bounds_and_nothing_where_there_is_none() -> None:
    three, once = mean_interval([1.0, 2.0, 3.0]), mean_interval([4.0])
    table = Table("one", ("name", "time", "cost"), (("a", three, 1), ("b", once, 2), ("c", None, 3)))
    rows = list(csv.DictReader(io.StringIO(table.csv())))
    assert list(rows[0]) == ["name", "time", "time_low", "time_high", "cost"]
    assert float(rows[0]["time_low"]) == pytest.approx(three.low)
    assert float(rows[0]["time_high"]) == pytest.approx(three.high)
    assert [rows[1][name] for name in ("time", "time_low", "time_high", "cost")] == ["4.0", "", "", "2"]
    assert [rows[2][name] for name in ("time", "time_low", "time_high", "cost")] == ["", "", "", "3"]


def test_a_point_stands_beside_recomputing_with_the_same_seeds_or_not_at_all() -> None:
    """Seeds differ by ten percent, what is over recomputing by nothing."""
    setting = Setting()
    slow, fast, fewer = (of_runs([run(by * mean_s) for mean_s in (0.18, 0.2)]) for by in (1, 0.9, 0.8))
    done = [
        (Point("rivals", 16, name, setting, system(name, setting), variant), found)
        for name, variant, found in (
            ("recompute", "", slow),
            ("lent", "", fast),
            ("lent", "once", of_runs(fewer.runs[:1])),
        )
    ]
    table = points_table(done)
    _, lent, once = (dict(zip(table.columns, row, strict=True)) for row in table.rows)
    for name in ("over_recomputing", "p99_over_recomputing", "steady_over_recomputing"):
        assert lent[name].mean == pytest.approx(0.9)
        assert lent[name].half == pytest.approx(0.0, abs=1e-9)
        assert once[name] is None
    assert lent["ttft_mean_s"].half > 0
