"""Panels of a study with known figures."""

from math import isfinite
from random import Random
from typing import Any

import pytest

from experiments.study.panels import panels
from experiments.study.panels.panel import Found, Panel
from experiments.study.plan import points
from experiments.study.point import Point
from experiments.study.sample import STEADY, Sample
from experiments.study.setting_map import setting_points, verdicts
from experiments.study.systems import Setting
from simulator.money import bill
from tests.experiments.study.made import of_runs, run

SEEDS = 3


@pytest.fixture(scope="module")
def made() -> list[Panel]:
    """Of a quick study, a tenth of chance in each run."""
    draw = Random(2)
    mapped = setting_points(Setting(requests=100), "1")
    done = [(point, drawn(draw, point)) for point in points(Setting(requests=100), None, True, space=10)]
    samples = [drawn(draw, point) for point in mapped]
    done += zip(mapped, samples, strict=True)
    return panels(Found(done, [verdicts(mapped, samples)], [verdicts(mapped, samples, STEADY)]))


def drawn(draw: Random, point: Point) -> Sample:
    once, cost = (
        point.sweep == "hour" and point.value == 4,
        bill(point.scenario, point.setting.switches).cache,
    )
    runs = []
    for _ in range(1 if once or point.sweep == "space" else SEEDS):
        counted: dict[str, Any] = {"table_writes": 10 * draw.random(), "digests": 100 * draw.random()}
        if point.sweep == "hour":
            counted["parts_ttft_s"] = [run(draw.uniform(0.1, 0.2))["ttft_s"] for _ in range(12)]
        runs.append(run(draw.uniform(0.18, 0.2), cost, draw.uniform(0.18, 0.2), **counted))
    return of_runs(runs)


def test_every_panel_draws_p99_beside_what_it_draws_of_means(made: list[Panel]) -> None:
    assert len(made) >= 25
    for panel in made:
        assert any("p99" in said for _, said in panel.plots), panel.title


def test_every_table_has_p99_where_it_has_a_mean_and_the_number_of_seeds(made: list[Panel]) -> None:
    pairs = {
        "ttft_mean_s": "ttft_p99_s", "steady_mean_s": "steady_p99_s",
        "over_recomputing": "p99_over_recomputing",
        "lead": "p99_lead", "sooner": "p99_sooner", "ratio": "p99_ratio", "steady_lead": "steady_p99_lead",
        "steady_sooner": "steady_p99_sooner",
    }  # fmt: skip
    for panel in made:
        columns = panel.table.columns
        assert {"seeds", "twelfths", "settings"} & {*columns}, panel.title
        assert any(mean in columns for mean in pairs), panel.title
        for mean, tail in pairs.items():
            assert (mean in columns) == (tail in columns), (panel.title, mean)
        for time in ("ttft", "steady", "end_to_end"):
            mean, median = f"{time}_mean_s", f"{time}_p50_s"
            assert (mean in columns) == (median in columns), (panel.title, mean)


def test_a_time_that_was_played_more_than_once_has_a_finite_interval(made: list[Panel]) -> None:
    for panel in made:
        for row in panel.table.rows:
            cells = dict(zip(panel.table.columns, row, strict=True))
            for name in (
                "ttft_mean_s",
                "ttft_p99_s",
                "net_dollars_per_hour",
                "lead",
                "controller_cpu_s",
                "messages_mb",
            ):
                if name in cells and cells.get("seeds") != 1:
                    assert isfinite(cells[name].half), (panel.title, name)
