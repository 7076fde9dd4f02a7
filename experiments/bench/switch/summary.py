"""Figures of a run, computed from its rounds: medians, their spread, and ratios between engines."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields

from experiments.bench.switch.measure import Measurement

Rounds = Mapping[str, Mapping[str, Sequence[Measurement]]]
"""Measurements by workload and engine, one for each round."""


@dataclass(frozen=True, slots=True)
class Figure:
    """Median over the rounds, with the lowest and highest value."""

    median: float
    low: float
    high: float


def figure(values: Sequence[float]) -> Figure:
    """Return the figure of the values that are not NaN; its fields are NaN if all values are."""
    counted = [value for value in values if not math.isnan(value)]
    if not counted:
        return Figure(math.nan, math.nan, math.nan)
    return Figure(statistics.median(counted), min(counted), max(counted))


def figures(rounds: Sequence[Measurement]) -> dict[str, Figure]:
    """Return one figure for each field of a measurement."""
    return {
        field.name: figure([float(getattr(one, field.name)) for one in rounds])
        for field in fields(Measurement)
    }


def ratios(of: Sequence[Measurement], to: Sequence[Measurement], name: str) -> Figure:
    """Return the ratio of the field `name` in `of` to that in `to`, taken within each round."""
    pairs = zip(of, to, strict=True)
    return figure([_ratio(getattr(one, name), getattr(other, name)) for one, other in pairs])


def _ratio(one: float, other: float) -> float:
    return one / other if other else math.nan


def to_json(rounds: Rounds) -> dict[str, object]:
    """Return all results as {workload: {engine: {figures, ratios, rounds}}}."""
    return {
        workload: {engine: _engine_json(engine, engines) for engine in engines}
        for workload, engines in rounds.items()
    }


def _engine_json(engine: str, engines: Mapping[str, Sequence[Measurement]]) -> dict[str, object]:
    others = [other for other in engines if other != engine]
    return {
        **{name: _plain(value) for name, value in figures(engines[engine]).items()},
        "lossless_ratio_to": {
            other: _plain(ratios(engines[engine], engines[other], "lossless_per_s")) for other in others
        },
        "overload_ratio_to": {
            other: _plain(ratios(engines[engine], engines[other], "overload_per_s")) for other in others
        },
        "rounds": [_finite(asdict(one)) for one in engines[engine]],
    }


def _plain(value: Figure) -> dict[str, float | None]:
    return _finite(asdict(value))


def _finite(record: dict[str, float]) -> dict[str, float | None]:
    """Return the record with None for NaN, which JSON does not have."""
    return {name: None if math.isnan(value) else value for name, value in record.items()}
