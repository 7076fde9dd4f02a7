"""One thing changed at a time: kinds of traffic, axes, mechanisms, the control plane's pace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from experiments.page.report import Plot
from experiments.study import figures
from experiments.study.claims import Claim
from experiments.study.panels.panel import FAVOURED, TAIL, TTFT, Panel, by_system, part, table
from experiments.study.plan import Axis
from experiments.study.rivals import Done
from experiments.study.rules import ablation_sentence, axis_sentence, control_sentence, systems_sentence
from experiments.study.sample import MEAN, P99, Sample, ratio
from experiments.study.systems import NAMES
from experiments.study.table import shares_table


def systems(done: Done) -> Panel:
    """Against the baselines, by traffic."""
    found = by_system(done, "shape")
    shapes = list(found["switch"])
    values = {NAMES[name]: {shape: found[name][shape].interval(*MEAN) for shape in shapes} for name in found}
    sentence = " ".join(
        systems_sentence(shape, {name: found[name][shape] for name in found}) for shape in shapes
    )
    return Panel(
        "Against the three baselines, by traffic",
        Claim(sentence),
        f"{FAVOURED}.",
        [figures.dots(TTFT, values)],
        {},
        shares_table(part(done, "shape")),
    )


def axis(axis: Axis, done: Done) -> Panel:
    """All systems along one axis."""
    found = by_system(done, axis.field)
    values = list(found["switch"])
    by_place: dict[Any, Mapping[str, Sample]] = {
        value: {name: mine[value] for name, mine in found.items() if value in mine} for value in values
    }
    return Panel(
        f"By {axis.label}",
        Claim(axis_sentence(by_place)),
        "one axis at a time around 16 nodes and 2 storage nodes; other numbers of storage nodes are above.",
        [_along(axis, found, what, path) for what, path in ((TTFT, MEAN), (TAIL, P99))],
        {},
        table(f"by_{axis.field}", part(done, axis.field)),
    )


def _along(axis: Axis, found: Mapping[str, Mapping[Any, Sample]], what: str, path: tuple[str, str]) -> Plot:
    """One figure of every system; words in place of numbers have no order, and so no line."""
    if axis.field == "scheduler":
        values = {
            NAMES[name]: {str(at): one.interval(*path) for at, one in mine.items()}
            for name, mine in found.items()
        }
        return figures.dots(what, values)
    series = {
        NAMES[name]: (list(mine), [sample.interval(*path) for sample in mine.values()])
        for name, mine in found.items()
    }
    return figures.lines(what, axis.label, series, axis.log)


def ablation(done: Done) -> Panel:
    """What each mechanism contributes."""
    mine = {str(point.value): sample for point, sample in part(done, "ablation")}
    egress = {name: ratio(sample, mine["no pool"], "storage_egress_bytes") for name, sample in mine.items()}
    return Panel(
        "What each mechanism contributes",
        Claim(ablation_sentence(mine)),
        "a pool of 4 GB that fills, at one setting; policies that learn do better in longer runs "
        "(docs/policies.md).",
        [figures.dots("bytes that storage nodes send, relative to no pool", {"bytes": egress})],
        egress,
        table("ablation", part(done, "ablation")),
    )


def control(done: Done) -> Panel:
    """What a slow control plane changes."""
    mine = {str(point.value): sample for point, sample in part(done, "control")}
    values = {name: sample.interval("control_bytes") for name, sample in mine.items()}
    return Panel(
        "What a slow control plane changes",
        Claim(control_sentence(mine)),
        "one setting.",
        [figures.dots("messages of the control plane in a run, bytes", {"bytes": values})],
        values,
        table("control", part(done, "control")),
    )
