"""What was objected to studies of such a pool, each with the figure that answers it, where it was played."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Any

from experiments.study.design_rules import cold_cost
from experiments.study.designs import CODECS, ENGINES, GATES, WARMTHS
from experiments.study.panels.panel import Found, by_system, labelled, part, places
from experiments.study.point import label
from experiments.study.rivals import Done
from experiments.study.rules import beat_everything, sram_sentence
from experiments.study.sample import MEAN, P99, STEADY, Sample, ratio, seconds, told_change
from experiments.study.systems import BOUND, NAMES, SHARES
from experiments.study.table import Table

LARGE = 32
"""Nodes from which on links to storage nodes jam."""

Row = tuple[str, str]
"""An objection and the figures."""
NONE, LENT = NAMES["recompute"], NAMES["lent"]
STORES, POOL = label("stores", 2), label("switch", 2)
NEARLY = 1.05
"""So many times the cost is still called the same."""


def objections(found: Found, validated: Path) -> Table:
    """All that can be answered from what was played; `validated`: the summary of make validate, if any."""
    done = found.done
    rows = [
        *_purchases(done),
        *_fan_in(done),
        *_gate(done),
        *_tails(done),
        *_seeds(found),
        *_cold(done),
        *_designs(done),
        *_engines(done),
        *_mechanisms(done),
        *_believed(validated),
    ]
    return Table("objections", ("objection", "figures"), tuple(rows))


def _change(mine: Mapping[str, Sample], one: str, other: str, path: tuple[str, str] = MEAN) -> str:
    return told_change(mine[one], mine[other], *path)


def _by_nodes(done: Done, sweep: str) -> Iterator[tuple[int, dict[str, Sample]]]:
    """A sweep's samples by label, for each number of nodes."""
    for nodes in places(done, sweep):
        yield nodes, labelled(done, sweep, nodes)


def _purchases(done: Done) -> Iterator[Row]:
    told = [
        f"{nodes} nodes, against {other}: {_change(mine, POOL, other)}, in steady state "
        f"{_change(mine, POOL, other, STEADY)} ({mine[POOL].cost:.2f} and {mine[other].cost:.2f} $/h)"
        for nodes, mine in _by_nodes(done, "rivals")
        if POOL in mine
        for other in (*_as_dear(done, nodes, mine[POOL].cost), LENT, NONE)
        if other in mine
    ]
    if told:
        yield "The pool was compared with two storage nodes at any fan-in", f"{POOL}: {'; '.join(told)}"
    billed = {mine[NONE].cost for _, mine in _by_nodes(done, "rivals") if NONE in mine}
    if billed:
        yield "Recomputing was billed for storage", f"{max(billed):.2f} $/h"
    queues = [
        f"{nodes} nodes: {_change(mine, label('lent', 2, 'conductor'), LENT)}; in steady state "
        f"{_change(mine, label('lent', 2, 'conductor'), LENT, STEADY)}"
        for nodes, mine in _by_nodes(done, "rivals")
        if label("lent", 2, "conductor") in mine
    ]
    if queues:
        said = f"Mooncake's conductor with {LENT}, against the cache-aware one: {'; '.join(queues)}"
        yield "The scheduler had no estimates of queues and transfers", said
    bound = [
        f"{nodes} nodes: the bound is {_change(mine, NAMES[BOUND], LENT)}"
        + "".join(
            f", {variant} {_change(mine, label('distributed', 2, variant), NAMES['distributed'])}"
            for variant in SHARES
            if label("distributed", 2, variant) in mine
        )
        for nodes, mine in _by_nodes(done, "rivals")
        if NAMES[BOUND] in mine and LENT in mine
    ]
    if bound:
        yield "Distributed DRAM had no queues", "; ".join(bound)


def _fan_in(done: Done) -> Iterator[Row]:
    """Around the centre: what is gained against the same storage nodes, and against buying nothing."""
    found = by_system(done, "nodes")
    if not {"switch", "stores", "recompute"} <= found.keys():
        return
    told = [
        f"{nodes} nodes, against {STORES}: {told_change(pool, found['stores'][nodes], *MEAN)}, "
        f"against {NONE}: {told_change(pool, found['recompute'][nodes], *MEAN)}"
        for nodes, pool in found["switch"].items()
        if nodes >= LARGE
    ]
    if told:
        yield "A pool was said to pay where recomputing was better than both", f"{POOL}: {'; '.join(told)}"


def _as_dear(done: Done, nodes: int, cost: float) -> list[str]:
    """Storage nodes alone: the most that cost no more than a pool, and as many as cost nearly the same."""
    alone = sorted(
        {
            (sample.cost, point.label)
            for point, sample in part(done, "rivals", nodes)
            if point.system == "stores" and not point.variant
        }
    )
    dearest = [name for its_cost, name in alone if its_cost <= cost][-1:]
    near = [name for its_cost, name in alone if cost < its_cost <= NEARLY * cost]
    return dearest + near


def _gate(done: Done) -> Iterator[Row]:
    first, *_, last = GATES
    told = []
    for nodes, mine in _by_nodes(done, "gate"):
        before, now = label("stores", 2, first), label("stores", 2, last)
        if {before, now, NONE} <= mine.keys():
            told.append(
                f"{nodes} nodes: {_timed(mine[before])} by last answers, {_timed(mine[now])} where homes are "
                f"asked and requests go first, recomputing {_timed(mine[NONE])}"
            )
    if told:
        yield "The gate fetched from jammed homes", "; ".join(told)


def _timed(sample: Sample) -> str:
    return f"{seconds(sample.interval(*MEAN))} (p99 {seconds(sample.interval(*P99))})"


def _tails(done: Done) -> Iterator[Row]:
    told = []
    for nodes, mine in _by_nodes(done, "rivals"):
        changes = {name: ratio(one, mine[NONE], *P99) for name, one in mine.items() if NONE in mine}
        if changes:
            name = max(changes, key=lambda one: abs(changes[one].mean - 1))
            change = changes[name]
            half = f" ± {change.half:.1%}" if isfinite(change.half) else ""
            told.append(
                f"{nodes} nodes: furthest from recomputing's with {name}, {change.mean - 1:+.1%}{half}"
            )
    if told:
        yield "Means only; p99 was the same", "; ".join(told)


def _seeds(found: Found) -> Iterator[Row]:
    repeated = [len(sample.runs) for point, sample in found.done if point.sweep not in ("hour", "space")]
    if not repeated:
        return
    wide = [one for one in found.coarse if isfinite(one.spread)]
    text = f"{min(repeated)} to {max(repeated)} seeds, the same for all that is compared"
    if wide:
        widest = max(wide, key=lambda one: one.spread)
        text += f"; {len(wide)} comparisons are wider than wanted, "
        text += f"the widest ({widest.name}) ±{widest.spread:.1%}"
    yield "One seed, and a noise that nobody measured", text


def _cold(done: Done) -> Iterator[Row]:
    told = []
    for nodes, mine in _by_nodes(done, "cold"):
        costs = [
            f"{cold_cost(mine[label(name, 2, WARMTHS['no'])], mine[label(name, 2, WARMTHS['there'])]):.0f} s "
            f"with {label(name, 2)}"
            for name in ("switch", "stores", "distributed", "recompute")
            if {label(name, 2, WARMTHS["no"]), label(name, 2, WARMTHS["there"])} <= mine.keys()
        ]
        told += [f"{nodes} nodes: {', '.join(costs)}"] if costs else []
    if told:
        said = f"waiting of all requests together, once, no dollars an hour: {'; '.join(told)}"
        yield "A cold start was told as dollars an hour", said


def _designs(done: Done) -> Iterator[Row]:
    told = []
    for nodes, mine in _by_nodes(done, "designs"):
        own, front = NAMES["answered_pool"], NAMES["lent_pool"]
        if {own, front, LENT} <= mine.keys():
            told.append(
                f"{nodes} nodes, against none: with the switches' own pool and control plane "
                f"{_change(mine, own, LENT)}, idealised {_change(mine, front, LENT)}"
            )
    if told:
        yield "A switch in front of lent DRAM was an idealised one", "; ".join(told)
    coded = []
    for nodes, mine in _by_nodes(done, "codec"):
        pairs = {name: (label("switch", 2, name), label("stores", 2, name)) for name in CODECS}
        leads = [
            f"{name}: {_change(mine, *pair)}" for name, pair in pairs.items() if set(pair) <= mine.keys()
        ]
        coded += [f"{nodes} nodes, {'; '.join(leads)}"] if leads else []
    if coded:
        said = f"the pool against the same 2 storage nodes: {'; '.join(coded)}"
        yield "Blocks compressed fourfold might make the pool unnecessary", said


def _engines(done: Done) -> Iterator[Row]:
    told = []
    for nodes, mine in _by_nodes(done, "engine"):
        for engine in ENGINES:
            pool, stores, none = (label(name, 2, engine) for name in ("switch", "stores", "recompute"))
            if {pool, stores, none} <= mine.keys():
                told.append(
                    f"{nodes} nodes, {engine}: against {STORES} {_change(mine, pool, stores)}, against "
                    f"recomputing {_change(mine, pool, none)}"
                )
    if told:
        yield "Nodes only prefilled, one request after the other", f"{POOL}: {'; '.join(told)}"


def _mechanisms(done: Done) -> Iterator[Row]:
    systems = by_system(done, "block_tokens")
    if "sram" in systems:
        value = next(iter(systems["sram"]))
        mine = {name: one[value] for name, one in systems.items() if value in one}
        yield "SRAM that serves next to nothing was said to pay", sram_sentence(value, mine)
    ablation = {str(point.value): sample for point, sample in part(done, "ablation")}
    if "everything" in ablation and "no pool" in ablation:
        better = beat_everything(ablation)
        yield (
            "Variants beat the whole design, and nothing said so",
            "; ".join(better) or "none surely does now",
        )


def _believed(validated: Path) -> Iterator[Row]:
    try:
        summary: dict[str, Any] = json.loads(validated.read_text())
    except (OSError, ValueError):
        return
    judged: dict[str, list[bool]] = {}
    overloaded = set(summary.get("overloaded") or [])
    for row in summary.get("emulator") or []:
        if row.get("tolerance") is not None and row["scenario"] not in overloaded:
            judged.setdefault(row["scenario"], []).append(bool(row["agrees"]))
    of = summary.get("revisions") or {}
    when = {
        kind: f"(make validate, revision {of.get(kind, summary.get('revision', 'unknown'))})"
        for kind in ("literature", "emulator")
    }
    if judged:
        said = (
            f"in {sum(map(all, judged.values()))} of {len(judged)} plays all figures agree within their "
            f"tolerance, a pool's hits relative to these hits {when['emulator']}"
        )
        yield "The simulator was compared with the emulator relative to all blocks", said
    rows = [row for row in summary.get("literature") or [] if not row.get("fitted")]
    if rows:
        said = f"of published rows, none fitted, {_near(rows)} {when['literature']}"
        sources = {row["source"]: [one for one in rows if one["source"] == row["source"]] for row in rows}
        if len(sources) > 1:  # one source may have most rows
            said += f"; {'; '.join(f'{name}: {_near(own)}' for name, own in sources.items())}"
        yield "Nothing was compared with published figures", said


def _near(rows: Sequence[Mapping[str, Any]]) -> str:
    within = [sum(abs(row["deviation"]) <= limit for row in rows) for limit in (0.15, 0.25)]
    return f"{within[0]} of {len(rows)} within 15 %, {within[1]} within 25 %"
