"""Panels of systems at one place: purchases, designs, codecs, engines, a cold start, an hour."""

from __future__ import annotations

from commands.intervals import Interval
from experiments.study import figures
from experiments.study.designs import WARMTH_LABELS
from experiments.study.hours import HOUR, compared_by, hour_sample
from experiments.study.panels.front import by_kind
from experiments.study.panels.panel import TAIL, Panel, dots, labelled, part
from experiments.study.point import label
from experiments.study.rivals import Done
from experiments.study.sample import P99
from experiments.study.systems import NAMES
from experiments.study.table import beside_table, points_table, waits_table
from experiments.study.waits import cold_cost

INTERVALS_OF_AN_HOUR = {
    "seeds": "Intervals are over seeds, each by its mean over eleven twelfths of the hour; p99 is the mean "
    "of the twelfths' own. The first twelfth is left out as cold.",
    "twelfths": "One seed: intervals are over eleven twelfths of the hour, which share nodes and pool and so "
    "are not independent. The first twelfth is left out as cold.",
}
"""Explanations of an hour's intervals, by the unit of comparison."""


def rivals(done: Done, nodes: int) -> Panel:
    """Return the panel of all purchases for this number of nodes."""
    played = part(done, "rivals", nodes)
    return Panel(
        f"What to buy for {nodes} nodes",
        [dots(labelled(done, "rivals", nodes), steady=True, kinds=by_kind(played))],
        points_table(played, f"rivals_{nodes}"),
        "Prices of hardware are assumed; what software costs is not in them. The bound can't be bought.",
    )


def gate(done: Done, nodes: int) -> Panel:
    """Return the panel of what a node knows before it fetches, and of requests that overtake blocks."""
    title = f"What the gate knows, and requests before blocks: {nodes} nodes, 2 storage nodes"
    return _compared(done, "gate", nodes, title)


def designs(done: Done, nodes: int) -> Panel:
    """Return the panel of a switch in front of each kind of memory."""
    return _compared(done, "designs", nodes, f"The switch in front of each kind of memory: {nodes} nodes")


def codec(done: Done, nodes: int) -> Panel:
    """Return the panel of blocks compressed by a codec."""
    return _compared(
        done,
        "codec",
        nodes,
        f"Blocks compressed fourfold, for everybody: {nodes} nodes, KV of two bytes",
        "Sizes are those of KV of one small model. Encoding takes no time; what quality costs is left out.",
    )


def engine(done: Done, nodes: int) -> Panel:
    """Return the panel of decoding on the GPUs that prefill."""
    return _compared(done, "engine", nodes, f"Engines that decode on the same GPUs: {nodes} nodes")


def decoders(done: Done, nodes: int) -> Panel:
    """Return the panel of the choice of the decoder, if KV has to move there."""
    return _compared(
        done,
        "decoders",
        nodes,
        f"Who decodes, chosen by the network (NetKV-like): {nodes} nodes and as many decoders",
        "KV moves over links of its own, whole and first come first served.",
    )


def cold(done: Done, nodes: int) -> Panel:
    """Return the panel of the waiting that cold nodes cost once."""
    mine = labelled(done, "cold", nodes)
    costs: dict[str, Interval] = {}
    warmed: dict[str, str] = {}
    for name in ("recompute", "distributed", "stores", "switch"):
        warm = label(name, 2, WARMTH_LABELS["there"])
        for begun in (label(name, 2, word) for word in list(WARMTH_LABELS.values())[:-1]):
            if warm in mine and begun in mine:
                costs[begun], warmed[begun] = cold_cost(mine[begun], mine[warm]), warm
    return Panel(
        f"A cold start of {nodes} nodes",
        [
            figures.dots("waiting of all requests beyond that on warm nodes, s, once", {"cold": costs}),
            figures.dots(TAIL, {"cold and warm": {name: one.interval(*P99) for name, one in mine.items()}}),
        ],
        waits_table(f"cold_{nodes}", mine, warmed, costs),
        "Each system is compared with itself on the same requests, with nodes that hold what was used most. "
        "A push knows the same blocks.",
    )


def hour(done: Done, nodes: int) -> Panel:
    """Return the panel of an hour, which shows steady state."""
    played = part(done, HOUR, nodes)
    requests = played[0][1].mean("completed")
    mine = {point.label: hour_sample(sample) for point, sample in played}
    unit = compared_by(played[0][1])
    return Panel(
        f"An hour on {nodes} nodes, {requests:,.0f} requests",
        [dots(mine)],
        beside_table(f"hour_{nodes}", mine, NAMES["recompute"], unit),
        INTERVALS_OF_AN_HOUR[unit],
    )


def _compared(done: Done, sweep: str, nodes: int, title: str, note: str = "") -> Panel:
    """Return a panel with means and p99 of all that was simulated at one place of a sweep."""
    table = points_table(part(done, sweep, nodes), f"{sweep}_{nodes}")
    return Panel(title, [dots(labelled(done, sweep, nodes))], table, note)
