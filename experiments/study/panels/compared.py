"""Systems beside one another at one place: purchases, designs, codecs, engines, a cold start, an hour."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from experiments.intervals import Interval
from experiments.study import figures
from experiments.study.against import (
    all_of,
    asked,
    favoured,
    held_by_warm,
    inference,
    queues,
    racks,
    scenarios_of,
)
from experiments.study.claims import joined
from experiments.study.design_rules import (
    Labelled,
    changes_claim,
    cold_claim,
    cold_cost,
    recompute_claim,
    tails_claim,
)
from experiments.study.designs import BLIND, CODECS, DECODERS, ENGINES, GATES, NO_CHOICE, WARMTHS
from experiments.study.hours import HOUR, compared_by, hour_sample
from experiments.study.panels.front import by_kind
from experiments.study.panels.panel import (
    TAIL,
    Panel,
    dots,
    labelled,
    part,
    tail_marked,
)
from experiments.study.played import Live
from experiments.study.point import label
from experiments.study.rivals import Done, purchases, rivals_claim
from experiments.study.sample import P99
from experiments.study.systems import BOUND, NAMES, SHARES
from experiments.study.table import Table, beside_table, points_table, waits_table

AGAINST_AN_HOUR = {
    "seeds": "few seeds, each by its mean over eleven twelfths of the hour, the first being left out as "
    "cold; p99 is the mean of the twelfths' own.",
    "twelfths": "one seed: intervals are over eleven twelfths of the hour, which have the same nodes and "
    "pool and so are not independent, the first being left out as cold.",
}
"""By what intervals are over."""
Pairs = Iterable[tuple[str, str]]
"""Labels of what is compared with what."""


def rivals(done: Done, nodes: int) -> Panel:
    """Purchases by their cost."""
    bought = purchases(done, nodes)
    mine, played = labelled(done, "rivals", nodes), scenarios_of(part(done, "rivals", nodes))
    plots, means = dots(mine, steady=True, kinds=by_kind(part(done, "rivals", nodes)))
    return Panel(
        f"What to buy for {nodes} nodes",
        rivals_claim(bought),
        all_of(
            favoured(played),
            asked(played),
            inference(played),
            f"the bound ({NAMES[BOUND]}) can't be bought",
            "prices of hardware are assumed (below: what the decision depends on), and what software costs "
            "is not in them",
        ),
        plots,
        means,
        points_table(part(done, "rivals", nodes), f"rivals_{nodes}"),
    )


def gate(done: Done, nodes: int, live: Live) -> Panel:
    """What a node knows before it fetches, and what overtakes what."""
    first, *others = GATES
    pairs = [
        (label(name, 2, variant), label(name, 2, first))
        for name in ("stores", "switch")
        for variant in others
    ]
    pairs += [(label("switch", 2, variant), label("stores", 2, variant)) for variant in GATES]
    return _compared(
        labelled(done, "gate", nodes),
        pairs,
        f"What the gate knows, and requests before blocks: {nodes} nodes, 2 storage nodes",
        all_of(asked(scenarios_of(part(done, "gate", nodes))), queues(live)),
        points_table(part(done, "gate", nodes), f"gate_{nodes}"),
        recompute=True,
    )


def designs(done: Done, nodes: int) -> Panel:
    """A switch in front of each kind of memory."""
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
            ("lent_merge", "lent"),
            ("lent_pool", "lent"),
            ("answered", "lent"),
            ("answered_merge", "answered"),
            ("answered_pool", "answered"),
            ("answered_pool", "lent"),
            (BOUND, "distributed"),
        )
    ]
    pairs += [
        (label(one, 2, variant), label("distributed", 2, variant))
        for variant in SHARES
        for one in ("distributed_merge", "distributed_pool")
    ]
    return _compared(
        labelled(done, "designs", nodes),
        [*pairs, *_blind(name)],
        f"The switch in front of each kind of memory: {nodes} nodes",
        all_of(*(told(scenarios_of(part(done, "designs", nodes))) for told in (favoured, asked, inference))),
        points_table(part(done, "designs", nodes), f"designs_{nodes}"),
    )


def _blind(name: Mapping[str, str]) -> Pairs:
    """Whether a pool spares the scheduler its knowledge, as Beluga has it: round robin with each, against
    the same with locality and against locality without any."""
    for system in ("switch", "distributed", "cxl"):
        mine = label(system, 2, BLIND)
        yield from ((mine, other) for other in (name[system], name["stores"], name["recompute"]))
    yield label("cxl", 2, BLIND), label("recompute", 2, BLIND)


def codec(done: Done, nodes: int) -> Panel:
    """Blocks as a codec leaves them."""
    plain, *coded = CODECS
    pairs = [
        (label(name, 2, variant), label(name, 2, plain))
        for name in ("stores", "switch", "distributed")
        for variant in coded
    ]
    pairs += [(label("switch", 2, variant), label("stores", 2, variant)) for variant in CODECS]
    return _compared(
        labelled(done, "codec", nodes),
        pairs,
        f"Blocks compressed fourfold, for everybody: {nodes} nodes, KV of two bytes",
        "sizes are those of KV of one small model; encoding takes no time, and what quality costs is not "
        "in it.",
        points_table(part(done, "codec", nodes), f"codec_{nodes}"),
    )


def engine(done: Done, nodes: int) -> Panel:
    """Decoding beside prefill."""
    pairs = [
        (label("switch", 2, engine), label(name, stores, engine))
        for engine in ENGINES
        for name, stores in (
            ("stores", 2),
            ("stores", 4),
            ("distributed", 2),
            ("lent", 2),
            ("cxl", 2),
            ("recompute", 2),
        )
    ]
    return _compared(
        labelled(done, "engine", nodes),
        pairs,
        f"Engines that decode on the same GPUs: {nodes} nodes",
        all_of(inference(scenarios_of(part(done, "engine", nodes)))),
        points_table(part(done, "engine", nodes), f"engine_{nodes}"),
    )


def decoders(done: Done, nodes: int) -> Panel:
    """Who decodes, where KV has to move there."""
    turn, load, network, *_ = DECODERS
    pairs = [
        (label(name, 2, one), label(name, 2, other))
        for name in ("recompute", "lent")
        for one, other in ((network, turn), (network, load), (NO_CHOICE, network))
    ]
    pairs += [(label("lent", 2, variant), label("recompute", 2, variant)) for variant in DECODERS]
    return _compared(
        labelled(done, "decoders", nodes),
        pairs,
        f"Who decodes, chosen by the network (NetKV-like): {nodes} nodes and as many decoders",
        all_of(
            "KV moves over links of its own, whole and first come first served",
            racks(scenarios_of(part(done, "decoders", nodes))),
        ),
        points_table(part(done, "decoders", nodes), f"decoders_{nodes}"),
    )


def cold(done: Done, nodes: int) -> Panel:
    """What it costs once that nodes are cold."""
    mine = labelled(done, "cold", nodes)
    costs: dict[str, Interval] = {}
    warmed: dict[str, str] = {}
    for name in ("recompute", "distributed", "stores", "switch"):
        warm = label(name, 2, WARMTHS["there"])
        for begun in (label(name, 2, word) for word in list(WARMTHS.values())[:-1]):
            if warm in mine and begun in mine:
                costs[begun], warmed[begun] = cold_cost(mine[begun], mine[warm]), warm
    return Panel(
        f"A cold start of {nodes} nodes",
        joined([cold_claim(costs), tails_claim(mine, warmed.items())]),
        all_of(
            "what is compared with are the same requests on nodes that "
            f"{held_by_warm(scenarios_of(part(done, 'cold', nodes)))} in the past",
            "a push knows these blocks from the past",
        ),
        [
            figures.dots("waiting of all requests beyond that on warm nodes, s, once", {"cold": costs}),
            figures.dots(TAIL, {"cold and warm": {name: one.interval(*P99) for name, one in mine.items()}}),
        ],
        costs | tail_marked(mine),
        waits_table(f"cold_{nodes}", mine, warmed, costs),
    )


def hour(done: Done, nodes: int) -> Panel:
    """Steady state."""
    pairs = [
        (label("switch", 2), label("stores", 2)),
        (label("switch", 2), label("stores", 4)),
        (label("switch", 2), NAMES["distributed"]),
        (label("switch", 2), NAMES["lent"]),
        (label("switch", 2), NAMES["recompute"]),
        *((NAMES[name], NAMES["lent"]) for name in ("lent_pool", "answered_pool", BOUND)),
    ]
    played = part(done, HOUR, nodes)
    requests = played[0][1].mean("completed")
    mine = {point.label: hour_sample(sample) for point, sample in played}
    unit = compared_by(played[0][1])
    return _compared(
        mine,
        pairs,
        f"An hour on {nodes} nodes, {requests:,.0f} requests",
        AGAINST_AN_HOUR[unit],
        beside_table(f"hour_{nodes}", mine, NAMES["recompute"], unit),
        recompute=True,
    )


def _compared(
    mine: Labelled, pairs: Pairs, title: str, against: str, points: Table, recompute: bool = False
) -> Panel:
    """Means and p99 of all, and what each pair says; `recompute`: also who is behind buying nothing."""
    plots, means = dots(mine)
    pairs = list(pairs)
    claims = [recompute_claim(mine, NAMES["recompute"])] if recompute else []
    claim = joined([*claims, changes_claim(mine, pairs), tails_claim(mine, pairs)])
    return Panel(title, claim, against, plots, means, points)
