"""results/study/summary.json: each point with its seeds and cost, means, p50 and p99 with their intervals."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from commands.intervals import Interval
from experiments.study.adaptive import Coarse
from experiments.study.hours import HOUR, hour_sample
from experiments.study.point import Point
from experiments.study.references import References
from experiments.study.sample import START, STEADY, TTFT, Sample, ratio
from experiments.study.table import STATISTICS, Table, parts

Numbers = dict[str, float | None]

SUMMARY_TIMES = {
    "start": START[0],
    "steady": STEADY[0],
    "time_per_output_token": "tpot_s",
    "between_tokens": "between_tokens_s",
    "end_to_end": "end_to_end_s",
}
"""Names of times beside the time to the first token: here, and in results."""
DECODE_EXPLAINED = (
    "apart: other nodes decode and wait for nobody, so times between tokens are those of reading memory, the "
    "same for every system; batched: on the GPUs that prefill"
)
"""Explanation of `decode` of a point."""


def summary(
    about: Mapping[str, object],
    done: Sequence[tuple[Point, Sample]],
    first_seed: int,
    coarse: Sequence[Coarse],
    tables: Sequence[Table],
) -> dict[str, Any]:
    """Return the summary for JSON.

    Times are seconds, to the first token if no other is named. The bounds of an interval are null with one
    run. `coarse` are comparisons that are wider than wanted. Tables become lists of rows by column.
    """
    references = References(done)
    return {
        "about": {**about, "decode": DECODE_EXPLAINED},
        "points": [_point(*pair, first_seed, references) for pair in done],
        "coarse": [
            {"name": one.name, "seeds": one.seeds, "half": one.spread if isfinite(one.spread) else None}
            for one in coarse
        ],
        **{
            table.name: [dict(zip(table.columns, row, strict=True)) for row in table.rows]
            for table in (one.flat() for one in tables)
        },
    }


def as_text(record: Mapping[str, Any]) -> str:
    """Return the summary as JSON, with one line for each point or row of a table."""
    parts = []
    for name, value in record.items():
        text = json.dumps(value)
        if isinstance(value, list):
            text = "[\n" + ",\n".join(map(json.dumps, value)) + "\n]"
        parts.append(f"{json.dumps(name)}: {text}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _point(point: Point, sample: Sample, first_seed: int, references: References) -> dict[str, Any]:
    setting = point.setting
    return {
        "sweep": point.sweep,
        "value": point.value,
        "system": point.system,
        "variant": point.variant,
        "label": point.label,
        "nodes": setting.nodes,
        "stores": setting.stores,
        "decode": point.scenario.nodes.decode,
        "requests": round(sample.mean("requests")),
        "seeds": list(range(first_seed, first_seed + len(sample.runs))),
        **_time(sample, TTFT),
        **{name: _time(sample, path) for name, path in SUMMARY_TIMES.items()},
        "start_extra_wait_s": _interval(sample.start_wait_s),
        **_compared(point, sample, references),
        **({"hour_without_its_start": _time(hour_sample(sample), TTFT)} if point.sweep == HOUR else {}),
        "cost_per_hour": sample.cost,
        "total_cost_per_hour": sample.total_cost,
    }


def _compared(point: Point, sample: Sample, references: References) -> dict[str, Any]:
    """Return times over those of recomputing, and of the same system with a switch that only forwards."""
    found = {
        "over_recomputing": references.recomputing(point),
        "over_the_same_without": references.without(point),
    }
    return {
        name: {
            "first_token": _ratio(sample, other, TTFT),
            "steady": _ratio(sample, other, STEADY[0]),
            "end_to_end": _ratio(sample, other, SUMMARY_TIMES["end_to_end"]),
        }
        for name, other in found.items()
        if other is not None and other is not sample and len(other.runs) == len(sample.runs)
    }


def _ratio(sample: Sample, other: Sample, name: str) -> Numbers:
    return _numbers({part: ratio(sample, other, name, part) for part in STATISTICS})


def _time(sample: Sample, name: str) -> Numbers:
    return _numbers({part: sample.interval(name, part) for part in STATISTICS})


def _numbers(found: Mapping[str, Interval]) -> Numbers:
    """Return the mean with `low` and `high`, and other parts with both as suffixes."""
    numbers: Numbers = {}
    for part, interval in found.items():
        middle, low, high = parts(interval)
        prefix = "" if part == "mean" else f"{part}_"
        numbers |= {part: middle, f"{prefix}low": low, f"{prefix}high": high}
    return numbers


def _interval(found: Interval) -> Numbers:
    return dict(zip(("mean", "low", "high"), parts(found), strict=True))
