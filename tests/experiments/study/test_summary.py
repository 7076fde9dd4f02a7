"""summary.json: every time with its interval and its p99, beside what it is compared with, seed by seed."""

import json
from typing import Any

import pytest

from experiments.study.point import Point
from experiments.study.sample import Sample
from experiments.study.summary import as_text, summary
from experiments.study.systems import Setting, system
from tests.experiments.study.made import of_runs, run, sample
from tests.experiments.summaries import check

TIMES = ("start", "steady", "time_per_output_token", "between_tokens", "end_to_end")
BOUNDS = ("mean", "low", "high", "p50", "p50_low", "p50_high", "p99", "p99_low", "p99_high")


def bought(name: str, found: Sample, stores: int = 2, variant: str = "") -> tuple[Point, Sample]:
    setting = Setting(nodes=16, stores=stores)
    return Point("rivals", 16, name, setting, system(name, setting), variant), found


def written(*done: tuple[Point, Sample]) -> list[dict[str, Any]]:
    found: dict[str, Any] = json.loads(as_text(summary({}, done, 1, (), ())))
    check("study", found)
    points: list[dict[str, Any]] = found["points"]
    return points


def test_every_time_has_bounds_of_its_mean_of_its_p50_and_of_its_p99() -> None:
    (point,) = written(bought("stores", sample(0.2, steady_s=0.19)))
    assert (point["mean"], point["p99"]) == (pytest.approx(0.2), pytest.approx(0.6))
    for time in (point, *(point[name] for name in TIMES)):
        assert time["low"] <= time["mean"] <= time["high"]
        assert time["p50_low"] <= time["p50"] <= time["p50_high"]
        assert time["p99_low"] <= time["p99"] <= time["p99_high"]
    assert point["p99_high"] - point["p99_low"] == pytest.approx(3 * (point["high"] - point["low"]))
    assert point["end_to_end"]["mean"] == pytest.approx(1.2)
    assert point["decode"] == "apart"


def test_one_run_has_no_bounds() -> None:
    (point,) = written(bought("stores", of_runs([run(0.2)])))
    for time in (point, *(point[name] for name in TIMES)):
        assert time["low"] is time["high"] is time["p99_low"] is time["p99_high"] is None
        assert time["p99"] >= time["mean"] > 0


def test_what_is_compared_is_so_seed_by_seed() -> None:
    """Seeds differ by ten percent, the ratio of each by nothing."""
    runs = [0.18, 0.2, 0.22]
    nothing, stores, pool = (of_runs([run(by * mean_s) for mean_s in runs]) for by in (1, 1.1, 0.9))
    found = {
        (point["system"], point["stores"]): point
        for point in written(
            bought("recompute", nothing), bought("stores", stores, 4), bought("switch", pool, 4)
        )
    }
    ratios = found["switch", 4]["over_recomputing"]
    assert [ratios["first_token"][name] for name in BOUNDS] == [pytest.approx(0.9)] * 9
    ratios = found["switch", 4]["over_the_same_without"]
    assert [ratios["steady"][name] for name in BOUNDS] == [pytest.approx(0.9 / 1.1)] * 9
    assert found["stores", 4].keys() & {"over_recomputing", "over_the_same_without"} == {"over_recomputing"}
    assert not found["recompute", 2].keys() & {"over_recomputing", "over_the_same_without"}


def test_a_variant_is_compared_with_plain_recomputing_where_there_is_one() -> None:
    """Tables and pages have one base, so that a scheduler's own gain is not hidden in it."""
    plain, other = sample(0.2), sample(0.4)
    batched = [
        bought(name, sample(mean_s), variant="batched")
        for name, mean_s in (("recompute", 0.4), ("lent", 0.2))
    ]
    (_, point) = written(*batched)
    assert point["over_recomputing"]["first_token"]["mean"] == pytest.approx(0.5)
    conductor = [
        bought("recompute", plain),
        bought("recompute", other, variant="conductor"),
        bought("stores", sample(0.2), variant="conductor"),
    ]
    (_, nothing, point) = written(*conductor)
    assert point["over_recomputing"]["first_token"]["mean"] == pytest.approx(1.0)
    assert nothing["over_recomputing"]["first_token"]["mean"] == pytest.approx(2.0)


def test_an_hour_has_the_bounds_of_its_parts_without_the_first() -> None:
    one = run(0.2)
    one["parts_ttft_s"] = [{"mean": mean_s, "p50": mean_s, "p99": 3 * mean_s} for mean_s in (0.9, 0.2, 0.3)]
    setting = Setting(nodes=16)
    (point,) = written((Point("hour", 16, "stores", setting, system("stores", setting)), of_runs([one])))
    assert point["low"] is None
    assert point["hour_without_its_start"]["mean"] == pytest.approx(0.25)
    assert point["hour_without_its_start"]["low"] < 0.25 < point["hour_without_its_start"]["high"]
