"""The fastest purchases within each budget, and the number of places where each is the fastest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isfinite
from typing import NamedTuple

from commands.intervals import Interval, mean_interval
from experiments.study.rivals import Purchase
from experiments.study.sample import MEAN, P99, STEADY, ratio, significantly_lower

BUDGETS = (0.0, 2.0, 5.0, inf)
"""Budgets in dollars an hour for what holds blocks beyond the nodes' own memory."""

Purchases = Sequence[Purchase]
"""All purchases at one place."""


class Count(NamedTuple):
    """Numbers of places where a purchase is the fastest or unbeaten."""

    fastest: int
    """Number of places where the purchase has the lowest mean within the budget."""
    significantly_fastest: int
    """Number of places where it is significantly lower than every other."""
    unbeaten: int
    """Number of places where no other is significantly lower."""


@dataclass(frozen=True, slots=True)
class Score:
    """Results of one purchase within one budget."""

    budget: float
    purchase: str
    places: int
    """Number of places where the budget buys it."""
    whole: Count
    steady: Count
    gain: Interval
    """Share by which its mean first token is sooner than recomputing's, over these places."""
    tail: Interval
    """Share by which its p99 is sooner."""

    @property
    def name(self) -> str:
        """Return the name that plots show."""
        return f"{self.purchase}, {budget_text(self.budget)}"


def budget_text(budget: float) -> str:
    """Return the budget in words."""
    if not isfinite(budget):
        return "at any price"
    return f"up to {budget:.0f} $/h" if budget else "for nothing"


def scores(places: Sequence[Purchases]) -> list[Score]:
    """Return, for each budget, the purchases that are the fastest or unbeaten in at least one place.

    The most often fastest comes first.
    """
    found = []
    for budget in BUDGETS:
        within = [[one for one in place if one.sample.cost <= budget] for place in places]
        labels = dict.fromkeys(one.label for place in within for one in place)
        mine = [_score(budget, label, within) for label in labels]
        shown = [
            one for one in mine if any(count.unbeaten or count.fastest for count in (one.whole, one.steady))
        ]
        found += sorted(shown, key=lambda one: (-one.whole.fastest, -one.whole.unbeaten))
    return found


def _score(budget: float, label: str, within: Sequence[Purchases]) -> Score:
    pairs = [(one, place) for place in within for one in place if one.label == label]
    gains, tails = (
        mean_interval([1 - ratio(one.sample, _nothing(place).sample, *path).mean for one, place in pairs])
        for path in (MEAN, P99)
    )
    whole, steady = (_count(pairs, path) for path in (MEAN, STEADY))
    return Score(budget, label, len(pairs), whole, steady, gains, tails)


def _count(pairs: Sequence[tuple[Purchase, Purchases]], path: tuple[str, str]) -> Count:
    fastest = significantly_fastest = unbeaten = 0
    for one, place in pairs:
        others = [other for other in place if other is not one]
        fastest += one is min(place, key=lambda other: other.sample.mean(*path))
        significantly_fastest += all(significantly_lower(one.sample, other.sample, *path) for other in others)
        unbeaten += not any(significantly_lower(other.sample, one.sample, *path) for other in others)
    return Count(fastest, significantly_fastest, unbeaten)


def _nothing(place: Purchases) -> Purchase:
    return next(one for one in place if one.system == "recompute" and not one.variant)
