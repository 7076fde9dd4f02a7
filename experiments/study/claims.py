"""What a panel of the report claims, with the comparisons that its plot must show for it to be true."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import isfinite

from experiments.errors import ExperimentError
from experiments.intervals import Interval

EVEN = "even"
"""The name of 0 in a plot of leads or of dollars."""
ZERO = Interval(0.0, 0.0, 0.0)
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

    def __str__(self) -> str:
        return f"{self.less} below {self.more}"


@dataclass(frozen=True, slots=True)
class Alike:
    """The intervals of two values overlap in the plot."""

    one: str
    other: str

    def holds(self, plotted: Plotted) -> bool:
        """Whether the plot shows it."""
        if self.one not in plotted or self.other not in plotted:
            return False
        one, other = plotted[self.one], plotted[self.other]
        return one.low <= other.high and other.low <= one.high

    def __str__(self) -> str:
        return f"{self.one} no other than {self.other}"


Shown = Fact | Alike
"""What a plot must show for a sentence to be true."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What is said, a line for each thing, and what must be seen in the plot under it."""

    text: str
    facts: tuple[Shown, ...] = ()


def joined(claims: Iterable[Claim]) -> Claim:
    """Several as one, each on lines of its own."""
    every = list(claims)
    return Claim("\n".join(one.text for one in every), tuple(fact for one in every for fact in one.facts))


def against_even(name: str, lead: Interval) -> list[Shown]:
    """What a plot of leads must show of one whose interval leaves 0 out."""
    if lead.low > 0:
        return [Fact(EVEN, name)]
    return [Fact(name, EVEN)] if lead.high < 0 else []


def contradictions(claim: Claim, plotted: Plotted) -> list[Shown]:
    """What the sentence says and the plot does not show."""
    return [fact for fact in claim.facts if not fact.holds(plotted)]


def must_hold(claim: Claim, plotted: Plotted) -> None:
    """Raise ContradictionError for the first sentence that the plot contradicts."""
    for fact in contradictions(claim, plotted):
        raise ContradictionError(f"the plot does not show {fact}: {claim.text}")


def told(value: Interval, unit: str = "s", digits: int = 3) -> str:
    """A mean and half its 95 % interval as text."""
    return f"{value:,.{digits}f} {unit}".strip()


def share(value: Interval) -> str:
    """A share as a percentage with its interval and its sign."""
    return f"{value:+.1%}" + ("" if isfinite(value.half) else " (one run, no interval)")
