"""What may be said of p99, with what a plot of it must show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from experiments.intervals import Interval
from experiments.study.claims import Alike, Claim, Fact, Shown
from experiments.study.sample import P99, Sample, ratio

TAIL_MARK = " (p99)"
"""Behind the names of values that a plot of p99 shows."""
TAIL_SHARE = 0.005
"""What differs by less is not worth a sentence, however certain."""


@dataclass(frozen=True, slots=True)
class Tail:
    """p99 of one sample beside that of another, each with its name in plots."""

    name: str
    one: Sample
    other_name: str
    other: Sample

    @property
    def change(self) -> Interval:
        """Over that of the other, seed by seed."""
        return ratio(self.one, self.other, *P99)

    @property
    def moved(self) -> bool:
        """Whether the two are told apart, and not against the means that are drawn."""
        change = self.change
        drawn = self.one.mean(*P99) - self.other.mean(*P99)
        return apart(change) and drawn * (change.mean - 1) > 0

    @property
    def shown(self) -> tuple[Shown, ...]:
        """What a plot must show where this is said: one below the other, or intervals that overlap."""
        mine, others = self.name + TAIL_MARK, self.other_name + TAIL_MARK
        if self.moved:
            return (Fact(mine, others) if self.change.mean < 1 else Fact(others, mine),)
        alike = Alike(mine, others)
        drawn = {mine: self.one.interval(*P99), others: self.other.interval(*P99)}
        return (alike,) if alike.holds(drawn) else ()  # else they are apart by less than is worth a word

    def __str__(self) -> str:
        return f"{self.change - 1:+.1%}"


def apart(change: Interval) -> bool:
    """Beyond the interval, and by more than TAIL_SHARE."""
    return not change.low <= 1 <= change.high and abs(change.mean - 1) > TAIL_SHARE


def tails(found: Mapping[str, Tail]) -> Claim:
    """Where p99 moves beyond its interval, and by how much; by what the sentence calls each."""
    moved = [f"{name} ({tail})" for name, tail in found.items() if tail.moved]
    text = (
        f"p99 differs at {', '.join(moved)}"
        if moved
        else f"p99 is nowhere told apart by {TAIL_SHARE:.1%} or more"
    )
    return Claim(text, _shown(found))


def tails_from(what: str, found: Mapping[str, Tail]) -> Claim:
    """The same, and how far the others are from it at most."""
    moved = [f"{name} ({tail})" for name, tail in found.items() if tail.moved]
    text = f"told from {what} {'with ' + ', '.join(moved) if moved else 'nowhere'}"
    others = {name: tail for name, tail in found.items() if not tail.moved}
    if others:
        name = max(others, key=lambda one: abs(others[one].change.mean - 1))
        text += f"; of the other {len(others)} furthest with {name} ({others[name]})"
    return Claim(text, _shown(found))


def _shown(found: Mapping[str, Tail]) -> tuple[Shown, ...]:
    return tuple(fact for tail in found.values() for fact in tail.shown)
