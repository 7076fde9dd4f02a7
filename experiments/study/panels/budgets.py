"""Who is best for how much: counts by budget, in the map and among the purchases."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.intervals import Interval
from experiments.study import figures
from experiments.study.against import all_of, favoured, inference, scenarios_of
from experiments.study.budget import Place, Score, budget_claim, scores
from experiments.study.panels.panel import Panel
from experiments.study.rivals import Done
from experiments.study.table import budget_table


def budgets(places: Sequence[Place], what: str, name: str, played: Done) -> Panel:
    """Over all of these places; `what` they are, `name` of the table, and what was `played` there. Drawn is
    who is the fastest anywhere; the table has all."""
    found = scores(places)
    first = [one for one in found if one.whole.fastest or one.steady.fastest]
    counts = {one.name: _exact(one.whole.fastest) for one in first}
    steady = {one.name: _exact(one.steady.fastest) for one in first}
    return Panel(
        f"Who is best by budget: {what}",
        budget_claim(found, len(places)),
        all_of(
            favoured(scenarios_of(played)),
            inference(scenarios_of(played)),
            "the fastest by its mean may be so by a hair, so what is sure stands beside it",
            "places count alike, whatever is gained there",
        ),
        [
            figures.dots("places in which it is the fastest", {"whole run": counts, "second half": steady}),
            figures.dots("mean and p99 sooner than recomputing by this share, over places", _gains(first)),
        ],
        counts,
        budget_table(name, found),
    )


def _exact(count: int) -> Interval:
    return Interval(count, count, count)


def _gains(found: Sequence[Score]) -> dict[str, dict[str, Interval]]:
    return {"mean": {one.name: one.gain for one in found}, "p99": {one.name: one.tail for one in found}}
