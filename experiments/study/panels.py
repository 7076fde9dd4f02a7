"""The panels of the report: a plot, a sentence that says what it means, and its table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from experiments.study import charts
from experiments.study.benefit import benefit
from experiments.study.plan import AXES, Axis, Point
from experiments.study.results import Figures
from experiments.study.search import Edge
from experiments.study.systems import BASELINES, NAMES
from experiments.study.table import Table, edges_table, points_table, shares_table

TTFT = "mean time to first token, s"
Done = Sequence[tuple[Point, Figures]]


@dataclass(frozen=True, slots=True)
class Panel:
    """One section of the page."""

    title: str
    sentence: str
    svg: str
    table: Table


def panels(done: Done, edges: Sequence[Edge]) -> list[Panel]:
    """All of them, in reading order."""
    made = [_systems(done), _surface(edges)]
    made += [_axis(axis, done) for axis in AXES if any(point.sweep == axis.field for point, _ in done)]
    return [*made, _ablation(done), _control(done)]


def ttft(found: Figures) -> float:
    """The figure that most panels show."""
    mean: float = found["ttft_s"]["mean"]
    return mean


def by_system(done: Done, sweep: str) -> dict[str, dict[Any, Figures]]:
    """System -> value -> figures of one sweep."""
    found: dict[str, dict[Any, Figures]] = {}
    for point, figures in done:
        if point.sweep == sweep:
            found.setdefault(point.system, {})[point.value] = figures
    return found


def _table(name: str, done: Done, sweep: str) -> Table:
    mine = [(point, figures) for point, figures in done if point.sweep == sweep]
    whole = points_table([point for point, _ in mine], [figures for _, figures in mine])
    return Table(name, whole.columns, whole.rows)


def _systems(done: Done) -> Panel:
    found = by_system(done, "shape")
    shapes = list(found["switch"])
    values = {shape: {name: ttft(found[name][shape]) for name in found} for shape in shapes}
    told = []
    for shape in shapes:
        best = min(BASELINES, key=lambda name, shape=shape: ttft(found[name][shape]))  # type: ignore[misc]
        ratio = ttft(found["switch"][shape]) / ttft(found[best][shape])
        told.append(f"{shape}: {_ratio(ratio)} than the fastest baseline ({NAMES[best]})")
    points = [point for point, _ in done if point.sweep == "shape"]
    figures = [figures for point, figures in done if point.sweep == "shape"]
    return Panel(
        "Against the three baselines",
        f"With the pool in the switch the mean first token comes, by traffic, {'; '.join(told)}.",
        charts.groups(values, TTFT, NAMES),
        shares_table(points, figures),
    )


def _ratio(ratio: float) -> str:
    return f"{1 - ratio:.0%} sooner" if ratio <= 1 else f"{ratio - 1:.0%} later"


def _surface(edges: Sequence[Edge]) -> Panel:
    mine = [edge for edge in edges if edge.against == "stores"]
    reuses = sorted({edge.setting.reuse for edge in mine})
    series = {}
    for reuse in reuses:
        pairs = [
            (edge.setting.nodes, edge.from_gb)
            for edge in mine
            if edge.setting.reuse == reuse and edge.from_gb
        ]
        if pairs:
            xs, ys = zip(*sorted(pairs), strict=True)
            series[f"reuse {reuse:.0%}"] = (xs, ys)
    paying = sum(edge.from_gb is not None for edge in mine)
    wins = sum(edge.from_gb is not None for edge in edges if edge.against == "best")
    sentence = (
        f"The smallest pool that earns its memory back against the same storage nodes without it, by "
        f"fan-in and "
        f"reuse: it exists in {paying} of {len(mine)} settings; against the best of the three "
        f"baselines some pool "
        f"pays in {wins} of {len(mine)}. Where a line has no point, no pool from 0.1 GB to 4 TB pays."
    )
    labels = ("inference nodes (fan-in)", "smallest pool that pays, GB")
    return Panel(
        "Break-even", sentence, charts.lines(series, labels, True, {}, log_y=True), edges_table(edges)
    )


def _axis(axis: Axis, done: Done) -> Panel:
    found = by_system(done, axis.field)
    labels = (axis.label, TTFT)
    if axis.field == "scheduler":
        values = list(found["switch"])
        drawn = charts.groups(
            {value: {name: ttft(found[name][value]) for name in found} for value in values}, TTFT, NAMES
        )
    else:
        series = {
            name: (list(values), [ttft(figures) for figures in values.values()])
            for name, values in found.items()
        }
        drawn = charts.lines(series, labels, axis.log, NAMES)
    return Panel(
        f"By {axis.label}", _axis_sentence(axis, found), drawn, _table(f"by_{axis.field}", done, axis.field)
    )


def _axis_sentence(axis: Axis, found: Mapping[str, Mapping[Any, Figures]]) -> str:
    """How much the pool shortens the wait at the ends of the axis, and where it pays."""
    gains = {value: benefit(found["switch"][value], found["stores"][value]) for value in found["switch"]}
    paying = [value for value, gain in gains.items() if gain.pays]
    first, last = next(iter(gains)), list(gains)[-1]
    where = f"it pays at {_list(paying)}" if paying else "it pays nowhere on this axis"
    return (
        f"Against the same storage nodes without a pool, the mean first token comes "
        f"{_ratio(gains[first].ttft_ratio)} "
        f"at {first:g} and {_ratio(gains[last].ttft_ratio)} at {last:g}; {where}."
        if axis.field != "scheduler"
        else "Against the same storage nodes without a pool: "
        + "; ".join(f"{value}: {_ratio(gain.ttft_ratio)}" for value, gain in gains.items())
        + "."
    )


def _list(values: Sequence[Any]) -> str:
    return ", ".join(f"{value:g}" if isinstance(value, int | float) else str(value) for value in values)


def _ablation(done: Done) -> Panel:
    mine = {point.value: figures for point, figures in done if point.sweep == "ablation"}
    whole, none = mine["everything"], mine["no pool"]
    saved = {label: 1 - ttft(figures) / ttft(none) for label, figures in mine.items()}
    egress = {
        label: figures["storage_egress_bytes"] / none["storage_egress_bytes"]
        for label, figures in mine.items()
    }
    forgetting = mine["stores that forget, no reclaim"]["prefill_s"]
    reclaimed = 1 - mine["reclaim from stores that forget"]["prefill_s"] / forgetting
    sentence = (
        f"With everything, storage nodes send {egress['everything']:.0%} of what they send without a "
        f"pool, and "
        f"the mean first token comes {_ratio(1 - saved['everything'])}. Without merging they send "
        f"{egress['no merging']:.0%}, with merging alone {egress['merging only, nothing cached']:.0%}. "
        "Copies one by one instead of multicast change the mean TTFT by "
        f"{abs(ttft(whole) / ttft(mine['no multicast']) - 1):.1%}; where storage nodes forget, reclaim "
        f"saves {reclaimed:.1%} of the GPU time for prefill."
    )
    return Panel(
        "What each mechanism contributes",
        sentence,
        charts.bars(egress, "bytes that storage nodes send, relative to no pool"),
        _table("ablation", done, "ablation"),
    )


def _control(done: Done) -> Panel:
    mine = {point.value: figures for point, figures in done if point.sweep == "control"}
    base = next(iter(mine.values()))
    rate: Callable[[Figures], float] = lambda figures: figures["control_bytes"] / figures["duration_s"]  # noqa: E731
    share = (
        rate(base) * base["duration_s"] / max(1.0, base["storage_egress_bytes"] + base["switch_served_bytes"])
    )
    sentence = (
        f"The controller of one switch takes {base['digests'] / base['duration_s']:.1f} digests and makes "
        f"{base['table_updates'] / base['duration_s']:.1f} table updates a second, "
        f"{rate(base) / 1e3:.0f} kB/s in all, "
        f"{share:.1e} of the bytes that blocks move, and "
        f"{base['control_cpu_s'] / base['duration_s']:.1%} of a core; "
        "slower tables and later digests change the mean TTFT by "
        f"{max(abs(ttft(figures) / ttft(base) - 1) for figures in mine.values()):.1%} at most."
    )
    values = {label: rate(figures) / 1e3 for label, figures in mine.items()}
    return Panel(
        "What the controller costs",
        sentence,
        charts.bars(values, "messages of the control plane, kB/s"),
        _table("control", done, "control"),
    )
