"""Nodes that join while others serve: what their empty memory costs, and what a push to them saves."""

from __future__ import annotations

from experiments.intervals import mean_interval
from experiments.study import figures
from experiments.study.against import all_of, asked, held_by_warm, scenarios_of
from experiments.study.claims import joined
from experiments.study.design_rules import joining_claim, longer_waits_s, tails_claim
from experiments.study.designs import JOINED, JOINED_BY, JOINING_SHARE
from experiments.study.panels.panel import TAIL, Panel, labelled, part, tail_marked
from experiments.study.point import label
from experiments.study.rivals import Done
from experiments.study.sample import P99
from experiments.study.table import waits_table


def joining(done: Done, place: str) -> Panel:
    """At one place of the sweep."""
    mine = labelled(done, "joining", place)
    waits_s: dict[str, list[float]] = {}
    warm: dict[str, str] = {}
    for name, kinds in JOINED_BY.items():
        *begun, there = (label(name, 2, JOINED[kind]) for kind in kinds)
        if there in mine:
            waits_s |= {one: longer_waits_s(mine[one], mine[there]) for one in begun if one in mine}
            warm |= dict.fromkeys(begun, there)
    pushed = label("switch", 2, JOINED["pool"])
    rivals = [label("switch", 2, JOINED[kind]) for kind in ("no", "unicast", "multicast")]
    pairs = [(pushed, other) for other in (*rivals, label("distributed", 2, JOINED["no"]))]
    pairs.append((label("stores", 2, JOINED["multicast"]), label("stores", 2, JOINED["no"])))
    costs = {name: mean_interval(by_seed) for name, by_seed in waits_s.items()}
    played = scenarios_of(part(done, "joining", place))
    return Panel(
        f"One node in {JOINING_SHARE} joins: {place}",
        joined([joining_claim(waits_s, pairs), tails_claim(mine, [*pairs, *warm.items()])]),
        all_of(
            f"nodes join when {played[0].nodes.joins_at:.0%} of the requests have come, "
            f"{played[0].nodes.lead_s:g} s before they are sent any",
            "what is compared with are the same requests on the same system, with joining nodes that "
            + held_by_warm(played),
            "a push knows what was used most",
            asked(played),
        ),
        [
            figures.dots("waiting of all requests beyond that with warm ones, s, once", {"joined": costs}),
            figures.dots(TAIL, {"all": {name: one.interval(*P99) for name, one in mine.items()}}),
        ],
        costs | tail_marked(mine),
        waits_table(f"joining_{place.replace(', ', ' ').replace(' ', '_')}", mine, warm, costs),
    )
