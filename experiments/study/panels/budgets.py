"""Who is best for how much: counts by budget, in the map and among the purchases."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.intervals import Interval
from experiments.study import figures
from experiments.study.budget import Place, Score, budget_claim, scores
from experiments.study.panels.panel import FAVOURED, Panel
from experiments.study.table import budget_table


def budgets(places: Sequence[Place], what: str, name: str) -> Panel:
    """Over all of these places; `what` they are, and `name` of the table."""
    found = scores(places)
    counts = {one.name: _exact(one.whole.fastest) for one in found}
    steady = {one.name: _exact(one.steady.fastest) for one in found}
    return Panel(
        f"Who is best by budget: {what}",
        budget_claim(found, len(places)),
        f"{FAVOURED}; the fastest by its mean may be so by a hair, so what is sure stands beside it; places "
        "count alike, whatever is gained there.",
        [
            figures.dots("places in which it is the fastest", {"whole run": counts, "steady state": steady}),
            figures.dots("mean and p99 sooner than recomputing by this share, over places", _gains(found)),
        ],
        counts,
        budget_table(name, found),
    )


def _exact(count: int) -> Interval:
    return Interval(count, count, count)


def _gains(found: Sequence[Score]) -> dict[str, dict[str, Interval]]:
    return {"mean": {one.name: one.gain for one in found}, "p99": {one.name: one.tail for one in found}}
