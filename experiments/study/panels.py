"""The panels of the report: a plot, sentences by the rules of rules.py, and its table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from experiments.intervals import Interval
from experiments.study import charts
from experiments.study.plan import AXES, Axis
from experiments.study.rivals import Done, fan_ins, purchases, rivals_answer, start_sentence
from experiments.study.rules import ablation_sentence, axis_sentence, control_sentence, systems_sentence
from experiments.study.sample import MEAN, P99, STEADY, Sample, ratio
from experiments.study.search import Edge
from experiments.study.systems import NAMES
from experiments.study.table import Table, edges_table, points_table, shares_table

TTFT = "mean time to first token, s"


@dataclass(frozen=True, slots=True)
class Panel:
    """One section of the page."""

    title: str
    sentence: str
    svg: str
    table: Table


def panels(done: Done, edges: Sequence[Edge]) -> list[Panel]:
    """Those whose sweeps were played, in reading order."""
    played = {point.sweep for point, _ in done}
    made = [_rivals(done, nodes) for nodes in fan_ins(done)]
    made += [_systems(done)] if "shape" in played else []
    made += [_surface(edges)] if edges else []
    made += [_axis(axis, done) for axis in AXES if axis.field in played]
    made += [_ablation(done)] if "ablation" in played else []
    return made + ([_control(done)] if "control" in played else [])


def by_system(done: Done, sweep: str) -> dict[str, dict[Any, Sample]]:
    """System -> value -> sample of one sweep."""
    found: dict[str, dict[Any, Sample]] = {}
    for point, sample in done:
        if point.sweep == sweep:
            found.setdefault(point.system, {})[point.value] = sample
    return found


def _table(name: str, done: Done, sweep: str) -> Table:
    whole = points_table([pair for pair in done if pair[0].sweep == sweep])
    return Table(name, whole.columns, whole.rows)


def _rivals(done: Done, nodes: int) -> Panel:
    bought = sorted(purchases(done, nodes), key=lambda one: one.sample.mean(*STEADY))
    values = {
        f"{one.label}, {one.sample.cost:.2f} $/h": {
            "start": one.sample.interval("start_ttft_s", "mean"),
            "steady": one.sample.interval(*STEADY),
            "p99": one.sample.interval(*P99),
        }
        for one in bought
    }
    mine = [pair for pair in done if pair[0].sweep == "rivals" and pair[0].value == nodes]
    names = {"start": "mean, first half (cold)", "steady": "mean, second half", "p99": "p99, all"}
    fan_in = [told for told in rivals_answer(done) if told.startswith(f"{nodes} nodes,")]
    sentence = " ".join([*fan_in, start_sentence(bought)])
    return Panel(
        f"What to buy for {nodes} nodes",
        sentence,
        charts.rows(values, "time to first token, s", names),
        Table(f"rivals_{nodes}", points_table(mine).columns, points_table(mine).rows),
    )


def _systems(done: Done) -> Panel:
    found = by_system(done, "shape")
    shapes = list(found["switch"])
    values = {shape: {name: found[name][shape].interval(*MEAN) for name in found} for shape in shapes}
    sentence = " ".join(
        systems_sentence(shape, {name: found[name][shape] for name in found}) for shape in shapes
    )
    mine = [pair for pair in done if pair[0].sweep == "shape"]
    return Panel(
        "Against the three baselines", sentence, charts.groups(values, TTFT, NAMES), shares_table(mine)
    )


def _surface(edges: Sequence[Edge]) -> Panel:
    """How many settings of the searched grid have a pool that earns its cost."""
    values: dict[str, dict[str, Interval]] = {}
    counts = {"stores": 0, "best": 0}
    for edge in edges:
        group = values.setdefault(
            f"{edge.setting.nodes} nodes", {"stores": charts.NOTHING, "best": charts.NOTHING}
        )
        if edge.from_gb is not None:
            counts[edge.against] += 1
            more = group[edge.against].mean + 1
            group[edge.against] = Interval(more, more, more)
    each = len(edges) // 2
    sentence = (
        f"In steady state some pool from 0.1 GB to 4 TB earns more than it costs in "
        f"{counts['stores']} of {each} settings against the same storage nodes without it, and in "
        f"{counts['best']} of {each} against the best of the three baselines."
    )
    names = {"stores": "against the same storage nodes", "best": "against the best baseline"}
    drawn = charts.groups(values, f"settings of {each // len(values)} in which a pool earns its cost", names)
    return Panel("Break-even", sentence, drawn, edges_table(edges))


def _axis(axis: Axis, done: Done) -> Panel:
    found = by_system(done, axis.field)
    values = list(found["switch"])
    if axis.field == "scheduler":
        drawn = charts.groups(
            {
                value: {name: found[name][value].interval(*MEAN) for name in found if value in found[name]}
                for value in values
            },
            TTFT,
            NAMES,
        )
    else:
        series = {
            name: (list(mine), [sample.interval(*MEAN) for sample in mine.values()])
            for name, mine in found.items()
        }
        drawn = charts.lines(series, (axis.label, TTFT), axis.log, NAMES)
    places: dict[Any, Mapping[str, Sample]] = {
        value: {name: mine[value] for name, mine in found.items() if value in mine} for value in values
    }
    return Panel(
        f"By {axis.label}", axis_sentence(places), drawn, _table(f"by_{axis.field}", done, axis.field)
    )


def _ablation(done: Done) -> Panel:
    mine = {str(point.value): sample for point, sample in done if point.sweep == "ablation"}
    egress = {label: ratio(sample, mine["no pool"], "storage_egress_bytes") for label, sample in mine.items()}
    return Panel(
        "What each mechanism contributes",
        ablation_sentence(mine),
        charts.bars(egress, "bytes that storage nodes send, relative to no pool"),
        _table("ablation", done, "ablation"),
    )


def _control(done: Done) -> Panel:
    mine = {str(point.value): sample for point, sample in done if point.sweep == "control"}
    values = {label: sample.interval("control_bytes") for label, sample in mine.items()}
    return Panel(
        "What the controller costs",
        control_sentence(mine),
        charts.bars(values, "messages of the control plane in a run, bytes"),
        _table("control", done, "control"),
    )
