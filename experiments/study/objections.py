"""What was objected to studies of such a pool, each with the figure that answers it, where it was played."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from pathlib import Path

from experiments.study.believed import believed
from experiments.study.design_rules import cold_cost
from experiments.study.designs import BLIND, CODECS, ENGINES, GATES, WARMTHS
from experiments.study.opening import STORES as FEW_STORES
from experiments.study.panels.panel import Found, Panel, by_system, labelled, part, places
from experiments.study.point import label
from experiments.study.rivals import Done
from experiments.study.rules import EGRESS, EVERYTHING, beat_everything, sram_sentence
from experiments.study.sample import MEAN, P50, P99, STEADY, Sample, ratio, seconds, told_change
from experiments.study.structure import structure
from experiments.study.systems import BOUND, NAMES, SHARES
from experiments.study.table import Table
from experiments.study.tails import Tail, tails_from
from experiments.study.tornado import BASE, NODES, bars

LARGE = 32
"""Nodes from which on links to storage nodes jam."""

Row = tuple[str, str]
"""An objection and the figures."""
NONE, LENT = NAMES["recompute"], NAMES["lent"]
STORES, POOL = label("stores", 2), label("switch", 2)
NEARLY = 1.05
"""So many times the cost is still called the same."""
LRU = "LRU instead of reuse value"
BOUGHT = re.compile(r"What to buy for (\d+) nodes")
"""Titles of panels of purchases."""


def objections(found: Found, validated: Path, told: Sequence[str] = (), made: Sequence[Panel] = ()) -> Table:
    """All that can be answered from what was played; `validated`: the summary of make validate, if any;
    `told`, `made`: the report's answers and panels."""
    done = found.done
    rows = [
        *_purchases(done),
        *_memory(done),
        *_fan_in(done),
        *_dollars(done),
        *_gate(done),
        *_tails(done),
        *_seeds(found),
        *_cold(done),
        *_designs(done),
        *_engines(done),
        *_mechanisms(done),
        *_sizes(found),
        *_report(done, told, made),
        *believed(validated),
        *structure(),
    ]
    return Table("objections", ("objection", "figures"), tuple(rows))


def _lines(of_what: str, told: Sequence[str]) -> str:
    """Figures of one thing, a line for each place."""
    return "\n".join((f"{of_what}:", *told))


def _change(mine: Mapping[str, Sample], one: str, other: str, path: tuple[str, str] = MEAN) -> str:
    return _both(mine[one], mine[other], path)


def _both(one: Sample, other: Sample, path: tuple[str, str] = MEAN) -> str:
    """By how much the mean is sooner or later, and what p99 does."""
    tail = ratio(one, other, path[0], "p99")
    return f"{told_change(one, other, *path)} (p99: time {tail - 1:+.1%})"


def _by_nodes(done: Done, sweep: str) -> Iterator[tuple[int, dict[str, Sample]]]:
    """A sweep's samples by label, for each number of nodes."""
    for nodes in places(done, sweep):
        yield nodes, labelled(done, sweep, nodes)


def _purchases(done: Done) -> Iterator[Row]:
    told = [
        f"{nodes} nodes, against {other}: {_change(mine, POOL, other)}, in the second half "
        f"{_change(mine, POOL, other, STEADY)} ({mine[POOL].cost:.2f} and {mine[other].cost:.2f} $/h)"
        for nodes, mine in _by_nodes(done, "rivals")
        if POOL in mine
        for other in (*_as_dear(done, nodes, mine[POOL].cost), LENT, NONE)
        if other in mine
    ]
    if told:
        yield "The pool was compared with two storage nodes at any fan-in", _lines(POOL, told)
    billed = {mine[NONE].cost for _, mine in _by_nodes(done, "rivals") if NONE in mine}
    if billed:
        yield "Recomputing was billed for storage", f"{max(billed):.2f} $/h"
    queues = [
        f"{nodes} nodes: {_change(mine, label('lent', 2, 'conductor'), LENT)}; in the second half "
        f"{_change(mine, label('lent', 2, 'conductor'), LENT, STEADY)}"
        for nodes, mine in _by_nodes(done, "rivals")
        if label("lent", 2, "conductor") in mine
    ]
    if queues:
        said = _lines(f"Mooncake's conductor with {LENT}, against the cache-aware one", queues)
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
        yield "Distributed DRAM had no queues", "\n".join(bound)


def _memory(done: Done) -> Iterator[Row]:
    """Shared memory by number of storage nodes, over all fan-ins."""
    held: dict[int, set[float]] = {}
    for point, _ in part(done, "rivals"):
        storage = point.scenario.storage
        if point.system in ("stores", "switch"):
            total_tb = storage.count * (storage.dram_gb + storage.ssd_gb) / 1000
            held.setdefault(storage.count, set()).add(total_tb)
    if held:
        each = [
            f"{' or '.join(f'{tb:g}' for tb in sorted(held[count]))} TB with {count}"
            for count in sorted(held)
        ]
        yield "More storage nodes had more memory", f"{', '.join(each)} storage nodes"


def _fan_in(done: Done) -> Iterator[Row]:
    """Around the centre: what is gained against the same storage nodes, and against buying nothing."""
    found = by_system(done, "nodes")
    if not {"switch", "stores", "recompute"} <= found.keys():
        return
    told = [
        f"{nodes} nodes, against {STORES}: {_both(pool, found['stores'][nodes])}, "
        f"against {NONE}: {_both(pool, found['recompute'][nodes])}"
        for nodes, pool in found["switch"].items()
        if nodes >= LARGE
    ]
    if told:
        yield "A pool was said to pay where recomputing was better than both", _lines(POOL, told)


def _dollars(done: Done) -> Iterator[Row]:
    """What the pool is worth at a node's price for waiting, against its rivals and not against a jam."""
    base = {point.system: (point, sample) for point, sample in part(done, "tornado", BASE)}
    told = [
        f"{bar.pool} {bar.net_dollars:.1f} $/h against {bar.rival} (mean first token sooner by "
        f"{bar.faster:+.1%}, p99 by {bar.tail:+.1%})"
        for bar in bars({BASE: base})
        if bar.change == BASE
    ]
    if told:
        yield (
            "A pool was said to be worth 132 $/h, against two jammed storage nodes",
            _lines(f"{NODES} nodes, second half", told),
        )


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
        yield "The gate fetched from jammed homes", "\n".join(told)


def _timed(sample: Sample) -> str:
    return f"{seconds(sample.interval(*MEAN))} (p99 {seconds(sample.interval(*P99))})"


def _tails(done: Done) -> Iterator[Row]:
    """Of each fan-in: whose p99 is told from recomputing's, and how far the others' is from it."""
    told = []
    for nodes, mine in _by_nodes(done, "rivals"):
        others = {
            name: Tail(name, one, NONE, mine[NONE])
            for name, one in mine.items()
            if NONE in mine and name != NONE
        }
        if others:
            told.append(f"{nodes} nodes: {tails_from('recomputing', others).text}")
    if told:
        yield "Means only; p99 was the same", "\n".join(told)
    middle = [
        f"{nodes} nodes: p50 {told_change(mine[LENT], mine[NONE], *P50)}, mean {_change(mine, LENT, NONE)}"
        for nodes, mine in _by_nodes(done, "rivals")
        if {LENT, NONE} <= mine.keys()
    ]
    if middle:
        yield "p50 was not told", _lines(f"{LENT}, against recomputing", middle)


def _seeds(found: Found) -> Iterator[Row]:
    repeated = [len(sample.runs) for point, sample in found.done if point.sweep not in ("hour", "space")]
    if not repeated:
        return
    wide = [one for one in found.coarse if isfinite(one.spread)]
    numbers = " to ".join(map(str, sorted({min(repeated), max(repeated)})))
    text = f"{numbers} seeds, the same for all that is compared"
    if wide:
        widest = max(wide, key=lambda one: one.spread)
        text += f"\n{len(wide)} comparisons of means are wider than wanted, "
        text += f"the widest ({widest.name}) ±{widest.spread:.1%}"
    yield "One seed, and a noise that nobody measured", text + _single(found.done)


def _single(done: Done) -> str:
    """What single seeds would have said at the smallest number of nodes, beside what all of them say."""
    for nodes, mine in _by_nodes(done, "rivals"):
        if {POOL, STORES} <= mine.keys() and len(mine[POOL].runs) > 1:
            gains = [
                1 - ratio(Sample((one,)), Sample((other,)), *MEAN).mean
                for one, other in zip(mine[POOL].runs, mine[STORES].runs, strict=True)
            ]
            whole = 1 - ratio(mine[POOL], mine[STORES], *MEAN)
            return (
                f"\n{nodes} nodes, {POOL} against {STORES}: single seeds say {min(gains):+.1%} to "
                f"{max(gains):+.1%} sooner, all {len(gains)} {whole:+.1%}"
            )
    return ""


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
        said = _lines("waiting of all requests together, once, no dollars an hour", told)
        largest = _largest_start(done)
        yield "A cold start was told as dollars an hour", said + largest


def _largest_start(done: Done) -> str:
    """At the most nodes of that axis, of which a cold start was once most of the bill."""
    found = {name: mine for name, mine in by_system(done, "nodes").items() if name in ("switch", "stores")}
    if not found:
        return ""
    nodes = max(max(mine) for mine in found.values())
    waits = [
        f"{mine[nodes].start_wait_s:.0f} s with {label(name, FEW_STORES)}"
        for name, mine in found.items()
        if nodes in mine
    ]
    return f"\n{nodes} nodes, the first half of the requests beyond the second's mean: {', '.join(waits)}"


def _designs(done: Done) -> Iterator[Row]:
    told = []
    for nodes, mine in _by_nodes(done, "rivals"):
        own, front = NAMES["answered_pool"], NAMES["lent_pool"]
        if {own, front, LENT} <= mine.keys():
            told.append(
                f"{nodes} nodes, against none: with the switches' own pool and control plane "
                f"{_change(mine, own, LENT)}, idealised {_change(mine, front, LENT)}"
            )
    if told:
        yield "A switch in front of lent DRAM was an idealised one", "\n".join(told)
    blind = [
        f"{nodes} nodes: {_change(mine, label('cxl', 2, BLIND), other)} than {other}"
        for nodes, mine in _by_nodes(done, "designs")
        for other in (NONE, STORES, NAMES["cxl"])
        if {label("cxl", 2, BLIND), other} <= mine.keys()
    ]
    if blind:
        said = _lines(f"{label('cxl', 2, BLIND)}, against locality", blind)
        yield "Round robin with a pool was not tried on Beluga's own pool", said
    coded = []
    for nodes, mine in _by_nodes(done, "codec"):
        pairs = {name: (label("switch", 2, name), label("stores", 2, name)) for name in CODECS}
        leads = [
            f"{name}: {_change(mine, *pair)}" for name, pair in pairs.items() if set(pair) <= mine.keys()
        ]
        coded += [f"{nodes} nodes, {'; '.join(leads)}"] if leads else []
    if coded:
        said = _lines("the pool against the same 2 storage nodes", coded)
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
        yield "Nodes only prefilled, one request after the other", _lines(POOL, told)


def _mechanisms(done: Done) -> Iterator[Row]:
    systems = by_system(done, "block_tokens")
    if "sram" in systems:
        value = next(iter(systems["sram"]))
        mine = {name: one[value] for name, one in systems.items() if value in one}
        yield "SRAM that serves next to nothing was said to pay", sram_sentence(value, mine)
    ablation = {str(point.value): sample for point, sample in part(done, "ablation")}
    if "everything" in ablation and "no pool" in ablation:
        better = beat_everything(ablation)
        text = "; ".join(better) or "none surely does now"
        if LRU in ablation:
            sent = ratio(ablation[LRU], ablation[EVERYTHING], *EGRESS)
            text += (
                f"; {LRU}: mean first token {_both(ablation[LRU], ablation[EVERYTHING])}, "
                f"storage nodes send {sent.mean - 1:+.1%} ± {sent.half:.1%}"
            )
        yield "Variants (LRU) beat the whole design, and nothing said so", text


def _sizes(found: Found) -> Iterator[Row]:
    """Break-even by the pool's size was one dot."""
    mine = by_system(found.done, "pool_gb")
    if not {"switch", "stores"} <= mine.keys():
        return
    sizes = sorted(mine["switch"].keys() & mine["stores"].keys())
    ends = dict.fromkeys((sizes[0], sizes[-1]))
    told = [
        f"{size:g} GB {1 - ratio(mine['switch'][size], mine['stores'][size], *MEAN):+.1%} "
        f"(p99 {1 - ratio(mine['switch'][size], mine['stores'][size], *P99):+.1%})"
        for size in ends
    ]
    text = f"{len(sizes)} sizes, the mean first token sooner by: {' to '.join(told)}"
    drawn = [one.setting.pool_gb for one in found.verdicts]
    if drawn:
        text += f"; {len(drawn)} settings of the map, with pools of {min(drawn):,.0f} to {max(drawn):,.0f} GB"
    yield "The plot of breaking even was one dot", text


def _report(done: Done, told: Sequence[str], made: Sequence[Panel]) -> Iterator[Row]:
    """Whether answers, first sentence and panels say the same, and what sentences are held to."""
    claims = [panel.claim for panel in made]
    if not claims:
        return
    said = [text.partition("? ")[2] for text in told if "? " in text]
    same = sum(any(text in claim.text for claim in claims) for text in said)
    text = f"{same} of {len(said)} answers are word for word what the panel of their data claims"
    bought = [found.group(1) for panel in made if (found := BOUGHT.fullmatch(panel.title))]
    first = [str(nodes) for nodes in places(done, "rivals")]
    if bought:
        text += f"; the first sentence is of {', '.join(first)} nodes, the panels of {', '.join(bought)}"
    yield "Answer 1 said 32 nodes, the panel 16", text
    facts = sum(len(claim.facts) for claim in claims)
    yield (
        "Sentences said the opposite of the plot under them",
        f"{facts} comparisons in the claims of {len(claims)} panels were held to what is drawn; one that is "
        "not drawn so ends the report (experiments/study/claims.py)",
    )
