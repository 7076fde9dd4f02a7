"""Panels of budgets: how often each purchase is the fastest, in the map and among the purchases."""

from __future__ import annotations

from collections.abc import Sequence

from commands.intervals import Interval
from experiments.study import figures
from experiments.study.budget import Purchases, Score, scores
from experiments.study.panels.panel import Panel
from experiments.study.table import budget_table


def budgets(places: Sequence[Purchases], what: str, name: str) -> Panel:
    """Return the panel of all these places; `what` names them, and `name` is the table's name."""
    found = scores(places)
    first = [one for one in found if one.whole.fastest or one.steady.fastest]
    counts = {one.name: _exact(one.whole.fastest) for one in first}
    steady = {one.name: _exact(one.steady.fastest) for one in first}
    return Panel(
        f"Who is best by budget: {what}",
        [
            figures.dots("places in which it is the fastest", {"whole run": counts, "second half": steady}),
            figures.dots("mean and p99 sooner than recomputing by this share, over places", _gains(first)),
        ],
        budget_table(name, found),
        "The table also counts the places in which a purchase is significantly faster than every other.",
    )


def _exact(count: int) -> Interval:
    return Interval(count, count, count)


def _gains(found: Sequence[Score]) -> dict[str, dict[str, Interval]]:
    return {"mean": {one.name: one.gain for one in found}, "p99": {one.name: one.tail for one in found}}
