"""What a panel of the report claims, with the comparisons that its plot must show for it to be true."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import isfinite

from experiments.errors import ExperimentError
from experiments.intervals import Interval

Plotted = Mapping[str, Interval]
"""What a plot draws: a value with its interval by the name that it has in the plot."""


class ContradictionError(ExperimentError):
    """A sentence that its plot contradicts."""


@dataclass(frozen=True, slots=True)
class Fact:
    """`less` lies below `more` in the plot."""

    less: str
    more: str

    def holds(self, plotted: Plotted) -> bool:
        """Whether the plot shows it."""
        return (
            self.less in plotted
            and self.more in plotted
            and plotted[self.less].mean < plotted[self.more].mean
        )


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence, and what must be seen in the plot under it."""

    text: str
    facts: tuple[Fact, ...] = ()


def joined(claims: Iterable[Claim]) -> Claim:
    """Several as one."""
    every = list(claims)
    return Claim(" ".join(one.text for one in every), tuple(fact for one in every for fact in one.facts))


def contradictions(claim: Claim, plotted: Plotted) -> list[Fact]:
    """What the sentence says and the plot does not show."""
    return [fact for fact in claim.facts if not fact.holds(plotted)]


def must_hold(claim: Claim, plotted: Plotted) -> None:
    """Raise ContradictionError for the first sentence that the plot contradicts."""
    for fact in contradictions(claim, plotted):
        raise ContradictionError(f"the plot does not show {fact.less} below {fact.more}: {claim.text}")


def told(value: Interval, unit: str = "s", digits: int = 3) -> str:
    """A mean and half its 95 % interval as text."""
    return f"{value:,.{digits}f} {unit}".strip()


def share(value: Interval) -> str:
    """A share as a percentage with its interval and its sign."""
    return f"{value:+.1%}" + ("" if isfinite(value.half) else " (one run, no interval)")
