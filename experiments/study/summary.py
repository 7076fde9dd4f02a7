"""results/study/summary.json: each point with its seeds, mean, interval, p99 and cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from experiments.intervals import Interval
from experiments.study.adaptive import Coarse
from experiments.study.point import Point
from experiments.study.sample import MEAN, P99, Sample
from experiments.study.table import Table


def summary(
    about: Mapping[str, object],
    done: Sequence[tuple[Point, Sample]],
    first_seed: int,
    coarse: Sequence[Coarse],
    tables: Sequence[Table],
) -> dict[str, Any]:
    """For JSON. Times are to the first token, seconds; low and high are null where there is one run.

    `coarse`: comparisons that the budget left wider than wanted. Tables as lists of rows by column.
    """
    return {
        "about": dict(about),
        "points": [_point(*pair, first_seed) for pair in done],
        "coarse": [
            {"name": one.name, "seeds": one.seeds, "half": one.spread if isfinite(one.spread) else None}
            for one in coarse
        ],
        **{
            table.name: [dict(zip(table.columns, _finite(row), strict=True)) for row in table.rows]
            for table in tables
        },
    }


def _finite(row: Sequence[Any]) -> list[Any]:
    return [None if isinstance(value, float) and not isfinite(value) else value for value in row]


def _point(point: Point, sample: Sample, first_seed: int) -> dict[str, Any]:
    setting = point.setting
    return {
        "sweep": point.sweep,
        "value": point.value,
        "system": point.system,
        "variant": point.variant,
        "label": point.label,
        "nodes": setting.nodes,
        "stores": setting.stores,
        "requests": round(sample.mean("requests")),
        "seeds": list(range(first_seed, first_seed + len(sample.runs))),
        **_interval(sample.interval(*MEAN)),
        "p99": sample.mean(*P99),
        "p99_interval": _interval(sample.interval(*P99)),
        "start": _half(sample, "start_ttft_s"),
        "start_extra_wait_s": _interval(sample.start_wait_s),
        "steady": _half(sample, "steady_ttft_s"),
        "cost_per_hour": sample.cost,
        "total_cost_per_hour": sample.total_cost,
    }


def _half(sample: Sample, name: str) -> dict[str, float | None]:
    return {**_interval(sample.interval(name, "mean")), "p99": sample.mean(name, "p99")}


def _interval(found: Interval) -> dict[str, float | None]:
    finite = isfinite(found.half)
    return {
        "mean": found.mean,
        "low": found.low if finite else None,
        "high": found.high if finite else None,
    }
