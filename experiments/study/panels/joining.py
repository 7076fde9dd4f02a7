"""Panels of nodes that join others: what their empty memory costs, and what a push to them saves."""

from __future__ import annotations

from commands.intervals import Interval
from experiments.study import figures
from experiments.study.designs import JOINED, JOINED_BY, JOINING_SHARE
from experiments.study.panels.panel import TAIL, Panel, labelled
from experiments.study.point import label
from experiments.study.rivals import Done
from experiments.study.sample import P99
from experiments.study.table import waits_table
from experiments.study.waits import cold_cost


def joining(done: Done, place: str) -> Panel:
    """Return the panel of one place of the sweep."""
    mine = labelled(done, "joining", place)
    costs: dict[str, Interval] = {}
    warm: dict[str, str] = {}
    for name, kinds in JOINED_BY.items():
        *begun, there = (label(name, 2, JOINED[kind]) for kind in kinds)
        if there in mine:
            costs |= {one: cold_cost(mine[one], mine[there]) for one in begun if one in mine}
            warm |= dict.fromkeys(begun, there)
    return Panel(
        f"One node in {JOINING_SHARE} joins: {place}",
        [
            figures.dots("waiting of all requests beyond that with warm ones, s, once", {"joined": costs}),
            figures.dots(TAIL, {"all": {name: one.interval(*P99) for name, one in mine.items()}}),
        ],
        waits_table(f"joining_{place.replace(', ', ' ').replace(' ', '_')}", mine, warm, costs),
        "Each system is compared with itself on the same requests, with joining nodes that hold what was "
        "used most. A push knows the same blocks.",
    )
