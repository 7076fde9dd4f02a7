"""Panels of one change at a time: kinds of traffic, axes, mechanisms, the control plane's pace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from commands.intervals import Interval
from experiments.study import figures
from experiments.study.benefit import benefit
from experiments.study.figures import Plot
from experiments.study.panels.panel import TAIL, TTFT, Panel, by_system, part
from experiments.study.plan import Axis
from experiments.study.rivals import Done
from experiments.study.sample import MEAN, P99, STEADY, Sample, ratio
from experiments.study.systems import NAMES
from experiments.study.table import points_table, shares_table

EGRESS = ("storage_egress_bytes",)


def systems(done: Done) -> Panel:
    """Return the panel of all systems by traffic."""
    found = by_system(done, "shape")
    shapes = list(found["switch"])
    values, tails = (
        {shape: {NAMES[name]: found[name][shape].interval(*path) for name in found} for shape in shapes}
        for path in (MEAN, P99)
    )
    over = {
        shape: {NAMES[name]: ratio(found[name][shape], found["recompute"][shape], *MEAN) for name in found}
        for shape in shapes
    }
    return Panel(
        "Against the three baselines, by traffic",
        [
            figures.columns({f"{shape}: {what}": mine for shape, mine in drawn.items()})
            for what, drawn in (("mean, s", values), ("mean over<br>recomputing's", over), ("p99, s", tails))
        ],
        shares_table(part(done, "shape")),
    )


def axis(axis: Axis, done: Done) -> Panel:
    """Return the panel of all systems along one axis."""
    found = by_system(done, axis.field)
    net_dollars: dict[str, dict[Any, Interval]] = {
        name: {value: benefit(one, found["stores"][value]).net_dollars for value, one in found[name].items()}
        for name in ("switch", "sram")
        if name in found
    }
    return Panel(
        f"By {axis.label}",
        [
            _along(axis, _over_stores(found), "over the same storage nodes, seed by seed", even=1.0),
            *(
                _along(axis, _by_name({name: _of(mine, path) for name, mine in found.items()}), what)
                for what, path in ((TTFT, MEAN), ("mean in the second half, s", STEADY), (TAIL, P99))
            ),
            _along(
                axis,
                _by_name(net_dollars),
                "$ an hour in the second half: waiting saved, less what the pool costs more",
                even=0.0,
            ),
        ],
        points_table(part(done, axis.field), f"by_{axis.field}"),
    )


def _of(mine: Mapping[Any, Sample], path: tuple[str, str]) -> dict[Any, Interval]:
    """Return one figure of a system by place."""
    return {value: sample.interval(*path) for value, sample in mine.items()}


def _over_stores(found: Mapping[str, Mapping[Any, Sample]]) -> dict[str, dict[Any, Interval]]:
    """Return the pool's times over those of the same storage nodes without it."""
    pairs = {value: (one, found["stores"][value]) for value, one in found["switch"].items()}
    return {
        what: {value: ratio(*pair, *path) for value, pair in pairs.items()}
        for what, path in (("mean", MEAN), ("mean, second half", STEADY), ("p99", P99))
    }


def _by_name(found: Mapping[str, Mapping[Any, Interval]]) -> dict[str, Mapping[Any, Interval]]:
    return {NAMES[name]: mine for name, mine in found.items()}


def _along(
    axis: Axis, found: Mapping[str, Mapping[Any, Interval]], what: str, even: float | None = None
) -> Plot:
    """Return a plot of one figure by series; words have no order, so that they get dots and no line.

    `even` is the value at which neither of two systems is ahead.
    """
    if isinstance(axis.values[0], str):
        values = {name: {str(at): one for at, one in mine.items()} for name, mine in found.items()}
        return figures.dots(what, values)
    series = {name: (list(mine), list(mine.values())) for name, mine in found.items()}
    return figures.lines(what, axis.label, series, axis.log, even)


def ablation(done: Done) -> Panel:
    """Return the panel of what each mechanism contributes."""
    mine = {str(point.value): sample for point, sample in part(done, "ablation")}
    egress = {name: ratio(sample, mine["no pool"], *EGRESS) for name, sample in mine.items()}
    means = {name: sample.interval(*MEAN) for name, sample in mine.items()}
    return Panel(
        "What each mechanism contributes",
        [
            figures.dots("bytes that storage nodes send, relative to no pool", {"bytes": egress}),
            figures.dots(TTFT, {"mean": means}),
            figures.dots(TAIL, {"p99": {name: sample.interval(*P99) for name, sample in mine.items()}}),
        ],
        points_table(part(done, "ablation"), "ablation"),
        "A pool of 4 GB that fills, at one setting. Policies that learn do better in longer runs.",
    )


def control(done: Done) -> Panel:
    """Return the panel of what a slow control plane changes."""
    mine = {str(point.value): sample for point, sample in part(done, "control")}
    values = {name: sample.interval("control_bytes") for name, sample in mine.items()}
    means = {name: sample.interval(*MEAN) for name, sample in mine.items()}
    return Panel(
        "What a slow control plane changes",
        [
            figures.dots(TTFT, {"mean": means}),
            figures.dots(TAIL, {"p99": {name: sample.interval(*P99) for name, sample in mine.items()}}),
            figures.dots("messages of the control plane in a run, bytes", {"bytes": values}),
        ],
        points_table(part(done, "control"), "control"),
    )
