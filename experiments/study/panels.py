"""The panels of the report: a claim, the plot that shows it, what argues against it, and the table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from experiments.intervals import Interval
from experiments.page.report import Plot
from experiments.study import figures
from experiments.study.adaptive import Coarse
from experiments.study.atlas import Verdicts
from experiments.study.claims import Claim, Plotted, joined, must_hold
from experiments.study.design_rules import (
    changes_claim,
    cold_claim,
    cold_cost,
    ledger_claim,
    map_claim,
    recompute_claim,
    tornado_claim,
)
from experiments.study.designs import CODECS, ENGINES, GATES, WARMTHS
from experiments.study.ledger import Entry, entry
from experiments.study.plan import AXES, Axis
from experiments.study.point import Point, label
from experiments.study.rivals import STEADY_MARK, Done, fan_ins, purchases, rivals_claim
from experiments.study.rules import ablation_sentence, axis_sentence, control_sentence, systems_sentence
from experiments.study.sample import MEAN, P99, STEADY, Sample, hour_sample, ratio
from experiments.study.systems import BOUND, NAMES
from experiments.study.table import (
    Table,
    ledger_table,
    map_table,
    points_table,
    shares_table,
    tornado_table,
)
from experiments.study.tornado import Bar, bars, swings

TTFT = "mean time to first token, s"
FAVOURED = "distributed DRAM and the CXL pool wait at no CPU and in no fabric here, which favours them"
ORACLE = "what homes and switches answer before a fetch takes a round trip and no CPU"


@dataclass(frozen=True, slots=True)
class Panel:
    """One section of the page."""

    title: str
    claim: Claim
    against: str
    plots: Sequence[Plot]
    plotted: Plotted
    table: Table

    def __post_init__(self) -> None:
        must_hold(self.claim, self.plotted)


@dataclass(frozen=True, slots=True)
class Found:
    """Everything that was simulated, as far as the budget went."""

    done: Done
    verdicts: Sequence[Verdicts] = ()
    steady: Sequence[Verdicts] = ()
    """The same settings, by the second half of the arrivals."""
    around: int = 0
    """Of the verdicts those whose settings were drawn around others."""
    coarse: Sequence[Coarse] = field(default_factory=tuple)


def panels(found: Found) -> list[Panel]:
    """Those whose sweeps were played, in reading order."""
    done = found.done
    played = {point.sweep for point, _ in done}
    made = [_rivals(done, nodes) for nodes in fan_ins(done)]
    made += [_map(found)] if found.verdicts else []
    made += [_gate(done, nodes) for nodes in places(done, "gate")]
    made += [_designs(done, nodes) for nodes in places(done, "designs")]
    made += [_codec(done, nodes) for nodes in places(done, "codec")]
    made += [_engine(done, nodes) for nodes in places(done, "engine")]
    made += [_cold(done, nodes) for nodes in places(done, "cold")]
    made += [_hour(done)] if "hour" in played else []
    made += _tornado(done) if "tornado" in played else []
    made += [_ledger(done)] if "ledger" in played else []
    made += [_systems(done)] if "shape" in played else []
    made += [_axis(axis, done) for axis in AXES if axis.field in played]
    made += [_ablation(done)] if "ablation" in played else []
    return made + ([_control(done)] if "control" in played else [])


def places(done: Done, sweep: str) -> list[Any]:
    """The values of a sweep, in order."""
    return list(dict.fromkeys(point.value for point, _ in done if point.sweep == sweep))


def by_system(done: Done, sweep: str) -> dict[str, dict[Any, Sample]]:
    """System -> value -> sample of one sweep."""
    found: dict[str, dict[Any, Sample]] = {}
    for point, sample in done:
        if point.sweep == sweep:
            found.setdefault(point.system, {})[point.value] = sample
    return found


def labelled(done: Done, sweep: str, value: Any) -> dict[str, Sample]:
    """Label -> sample at one place."""
    return {point.label: sample for point, sample in done if (point.sweep, point.value) == (sweep, value)}


def _part(done: Done, sweep: str, *values: Any) -> list[tuple[Point, Sample]]:
    return [pair for pair in done if pair[0].sweep == sweep and (not values or pair[0].value in values)]


def _table(name: str, mine: Sequence[tuple[Point, Sample]]) -> Table:
    whole = points_table(mine)
    return Table(name, whole.columns, whole.rows)


def _means(mine: Mapping[str, Sample]) -> dict[str, Interval]:
    """By label, the fastest first."""
    order = sorted(mine, key=lambda name: mine[name].mean(*MEAN))
    return {name: mine[name].interval(*MEAN) for name in order}


def _dots(mine: Mapping[str, Sample], steady: bool = False) -> tuple[list[Plot], dict[str, Interval]]:
    """Means, these seed by seed against recomputing, and p99; and what the claims are held to."""
    means = _means(mine)
    tails = {name: mine[name].interval(*P99) for name in means}
    drawn = {TTFT.replace(" to ", "<br>to "): means}
    nothing = [name for name in means if name.startswith(NAMES["recompute"])]
    reference = min(nothing, key=len, default=None)  # that without a variant, where there is one
    if reference is not None:
        drawn["mean over recomputing's,<br>seed by seed"] = {
            name: ratio(mine[name], mine[reference], *MEAN) for name in means
        }
    plotted = dict(means)
    if steady:
        drawn["mean in steady state,<br>s"] = {name: mine[name].interval(*STEADY) for name in means}
        plotted |= {name + STEADY_MARK: mine[name].interval(*STEADY) for name in means}
    drawn["p99 of the time<br>to first token, s"] = tails
    return [figures.columns(drawn)], plotted


def _rivals(done: Done, nodes: int) -> Panel:
    bought = purchases(done, nodes)
    mine = labelled(done, "rivals", nodes)
    plots, means = _dots(mine, steady=True)
    costs = {one.label: (one.sample.cost, one.sample.mean(*MEAN), one.label) for one in bought}
    pools = [costs[one.label] for one in bought if one.pooled]
    others = [costs[one.label] for one in bought if not one.pooled and one.sample.cost > 0]
    plots.append(figures.scatter("cache, $/h", TTFT, {"with a pool or merging": pools, "without": others}))
    return Panel(
        f"What to buy for {nodes} nodes",
        rivals_claim(bought),
        f"{FAVOURED}; {ORACLE}; the bound ({NAMES[BOUND]}) can't be bought.",
        plots,
        means,
        _table(f"rivals_{nodes}", _part(done, "rivals", nodes)),
    )


def _map(found: Found) -> Panel:
    groups: dict[str, list[tuple[float, float, str]]] = {}
    for one in found.verdicts:
        kind = "surely best" if one.best else "surely beaten" if one.beaten else "not decided"
        text = f"{one.setting.model}, {one.setting.shape}: {one.pool.label} against {one.rival.label}"
        groups.setdefault(kind, []).append((one.setting.nodes, 100 * one.lead, text))
    central: dict[str, list[tuple[float, float, str]]] = {}
    for one in found.verdicts:
        kind = "surely best" if one.central_best else "surely beaten" if one.central_beaten else "not decided"
        text = f"{one.setting.nodes} nodes, {one.setting.link_gbit_s:.0f} Gbit/s, {one.setting.shape}"
        central.setdefault(kind, []).append((one.setting.nodes, 100 * one.central_lead, text))
    return Panel(
        "Who is best where",
        map_claim(found.verdicts, found.steady, found.around),
        f"{FAVOURED}; settings are few for a space of seven axes, and what lies between them was not "
        f"simulated.",
        [
            figures.scatter("nodes", "lead over the best at that cost, %", groups),
            figures.scatter("nodes", "the same against storage nodes and recomputing alone, %", central),
        ],
        {},
        map_table(found.verdicts, found.steady),
    )


def _gate(done: Done, nodes: int) -> Panel:
    mine = labelled(done, "gate", nodes)
    first, *others = GATES
    pairs = [
        (label(name, 2, variant), label(name, 2, first))
        for name in ("stores", "switch")
        for variant in others
    ]
    pairs += [(label("switch", 2, variant), label("stores", 2, variant)) for variant in GATES]
    plots, means = _dots(mine)
    return Panel(
        f"What the gate knows, and requests before blocks: {nodes} nodes, 2 storage nodes",
        joined([recompute_claim(mine, NAMES["recompute"]), changes_claim(mine, pairs)]),
        f"{ORACLE}; a second queue at each port is common in switches, but the emulator here has one.",
        plots,
        means,
        _table(f"gate_{nodes}", _part(done, "gate", nodes)),
    )


def _designs(done: Done, nodes: int) -> Panel:
    mine = labelled(done, "designs", nodes)
    name = {system: label(system, 2) for system in NAMES}
    pairs = [
        (name[one], name[other])
        for one, other in (
            ("merging", "stores"),
            ("switch", "stores"),
            ("switch", "merging"),
            ("distributed_merge", "distributed"),
            ("distributed_pool", "distributed"),
            ("cxl_merge", "cxl"),
            ("cxl_pool", "cxl"),
            (BOUND, "distributed"),
        )
    ]
    pairs.append((label("switch", 2, "round robin"), name["stores"]))
    plots, means = _dots(mine)
    return Panel(
        f"The switch in front of each kind of memory: {nodes} nodes",
        changes_claim(mine, pairs),
        f"{FAVOURED}; a switch in front of them merges without digests or limits of its tables.",
        plots,
        means,
        _table(f"designs_{nodes}", _part(done, "designs", nodes)),
    )


def _codec(done: Done, nodes: int) -> Panel:
    mine = labelled(done, "codec", nodes)
    plain, *coded = CODECS
    pairs = [
        (label(name, 2, variant), label(name, 2, plain))
        for name in ("stores", "switch", "distributed")
        for variant in coded
    ]
    pairs += [(label("switch", 2, variant), label("stores", 2, variant)) for variant in CODECS]
    plots, means = _dots(mine)
    return Panel(
        f"Blocks compressed fourfold, for everybody: {nodes} nodes, KV of two bytes",
        changes_claim(mine, pairs),
        "sizes are those of KV of one small model; encoding takes no time, and what quality costs is not "
        "in it.",
        plots,
        means,
        _table(f"codec_{nodes}", _part(done, "codec", nodes)),
    )


def _engine(done: Done, nodes: int) -> Panel:
    mine = labelled(done, "engine", nodes)
    pairs = [
        (label("switch", 2, engine), other)
        for engine in ENGINES
        for other in (
            label("stores", 2, engine),
            label("stores", 4, engine),
            label("distributed", 2, engine),
            label("recompute", 2, engine),
        )
    ]
    plots, means = _dots(mine)
    return Panel(
        f"Engines that decode on the same GPUs: {nodes} nodes",
        changes_claim(mine, pairs),
        "chunks of 8,192 tokens, and 64 GB for requests that run; loads of blocks do not hold up decoding.",
        plots,
        means,
        _table(f"engine_{nodes}", _part(done, "engine", nodes)),
    )


def _cold(done: Done, nodes: int) -> Panel:
    mine = labelled(done, "cold", nodes)
    costs = {}
    for name in ("recompute", "distributed", "stores", "switch"):
        warm = mine.get(label(name, 2, WARMTHS["there"]))
        for word in list(WARMTHS.values())[:-1]:
            cold = mine.get(label(name, 2, word))
            if warm is not None and cold is not None:
                costs[label(name, 2, word)] = cold_cost(cold, warm)
    return Panel(
        f"A cold start of {nodes} nodes",
        cold_claim(costs),
        "the same requests on nodes that hold 16 GB of the past's hottest blocks are what is compared "
        "with; a push knows "
        "these blocks from the past.",
        [figures.dots("waiting of all requests beyond that on warm nodes, s, once", {"cold": costs})],
        costs,
        _table(f"cold_{nodes}", _part(done, "cold", nodes)),
    )


def _hour(done: Done) -> Panel:
    mine = {point.label: hour_sample(sample) for point, sample in _part(done, "hour")}
    plots, means = _dots(mine)
    pairs = [
        (label("switch", 2), label("stores", 2)),
        (label("switch", 2), label("stores", 4)),
        (label("switch", 2), NAMES["distributed"]),
        (label("switch", 2), NAMES["recompute"]),
    ]
    return Panel(
        "An hour of steady state on 16 nodes",
        joined([recompute_claim(mine, NAMES["recompute"]), changes_claim(mine, pairs)]),
        "one seed: intervals are over eleven twelfths of the hour, the first being left out as cold.",
        plots,
        means,
        _table("hour", _part(done, "hour")),
    )


def tornado_bars(done: Done) -> list[Bar]:
    """All changes at the decision point, prices included."""
    found: dict[str, dict[str, tuple[Point, Sample]]] = {}
    for point, sample in _part(done, "tornado"):
        found.setdefault(point.value, {})[point.system] = (point, sample)
    return bars(found)


def _tornado(done: Done) -> list[Panel]:
    made = tornado_bars(done)
    found = []
    for number, rival in enumerate(dict.fromkeys(bar.rival for bar in made), 1):
        rows = [
            (name, low.net_dollars, high.net_dollars)
            for name, low, high in swings(made, rival)
            if low.net_dollars != high.net_dollars
        ]
        found.append(
            Panel(
                f"What the decision depends on: 32 nodes, 2 storage nodes and pool against {rival}",
                tornado_claim(made, rival),
                "a second of waiting is priced at a second of a node, which is a convention; two changes "
                "at once are not shown.",
                [figures.swings("$/h that the pool is ahead", rows)],
                {},
                tornado_table(f"tornado_{number}", made, rival),
            )
        )
    return found


def ledger_entries(done: Done) -> list[Entry]:
    """By number of nodes."""
    found = []
    for nodes in places(done, "ledger"):
        mine = {point.system: (point, sample) for point, sample in _part(done, "ledger", nodes)}
        samples = {name: sample for name, (_, sample) in mine.items()}
        found.append(entry(nodes, mine["switch"][0].setting.switches, samples))
    return found


def _ledger(done: Done) -> Panel:
    entries = ledger_entries(done)
    xs = [one.nodes for one in entries]

    def line(values: Iterable[float]) -> tuple[Sequence[float], Sequence[Interval]]:
        return xs, [Interval(value, value, value) for value in values]

    return Panel(
        "What management costs, and what it earns",
        ledger_claim(entries),
        "two storage nodes at any number of nodes; controllers' CPU is the measured cost of a digest in "
        "bursts of 20, on a "
        "busy machine, times their number.",
        [
            figures.lines(
                "an hour",
                "nodes",
                {
                    "digests": line(one.digests for one in entries),
                    "table updates": line(one.updates for one in entries),
                    "Writes": line(one.writes for one in entries),
                },
                True,
            ),
            figures.lines(
                "saved waiting, s an hour, steady state",
                "nodes",
                {
                    "against the same storage nodes": (xs, [one.saved_s for one in entries]),
                    "against recomputing": (xs, [one.against_recompute_s for one in entries]),
                },
                True,
            ),
        ],
        {},
        ledger_table(entries),
    )


def _systems(done: Done) -> Panel:
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
        shares_table(_part(done, "shape")),
    )


def _axis(axis: Axis, done: Done) -> Panel:
    found = by_system(done, axis.field)
    values = list(found["switch"])
    if axis.field == "scheduler":
        drawn = figures.dots(
            TTFT,
            {
                NAMES[name]: {str(at): one.interval(*MEAN) for at, one in mine.items()}
                for name, mine in found.items()
            },
        )
    else:
        series = {
            NAMES[name]: (list(mine), [sample.interval(*MEAN) for sample in mine.values()])
            for name, mine in found.items()
        }
        drawn = figures.lines(TTFT, axis.label, series, axis.log)
    by_place: dict[Any, Mapping[str, Sample]] = {
        value: {name: mine[value] for name, mine in found.items() if value in mine} for value in values
    }
    return Panel(
        f"By {axis.label}",
        Claim(axis_sentence(by_place)),
        "one axis at a time around 16 nodes and 2 storage nodes; other numbers of storage nodes are above.",
        [drawn],
        {},
        _table(f"by_{axis.field}", _part(done, axis.field)),
    )


def _ablation(done: Done) -> Panel:
    mine = {str(point.value): sample for point, sample in _part(done, "ablation")}
    egress = {name: ratio(sample, mine["no pool"], "storage_egress_bytes") for name, sample in mine.items()}
    return Panel(
        "What each mechanism contributes",
        Claim(ablation_sentence(mine)),
        "a pool of 4 GB that fills, at one setting; policies that learn do better in longer runs "
        "(docs/policies.md).",
        [figures.dots("bytes that storage nodes send, relative to no pool", {"bytes": egress})],
        egress,
        _table("ablation", _part(done, "ablation")),
    )


def _control(done: Done) -> Panel:
    mine = {str(point.value): sample for point, sample in _part(done, "control")}
    values = {name: sample.interval("control_bytes") for name, sample in mine.items()}
    return Panel(
        "What a slow control plane changes",
        Claim(control_sentence(mine)),
        "one setting.",
        [figures.dots("messages of the control plane in a run, bytes", {"bytes": values})],
        values,
        _table("control", _part(done, "control")),
    )
