"""What a case shows, and how it compares with what Beluga's paper says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from commands.intervals import Interval, mean_interval
from experiments.guidelines.cases import PUBLISHED, Case, Published


@dataclass(frozen=True, slots=True)
class Measured:
    """One case, once."""

    mbyte_s: float
    latency_ms: float
    """Median of the nodes' medians, of a request."""
    failed: int
    """Requests that could not be loaded."""


@dataclass(frozen=True, slots=True)
class Compared:
    """A ratio of ours beside a published one."""

    published: Published
    ratio: Interval
    """Of the two cases' throughputs, run by run."""

    @property
    def direction(self) -> str:
        """Whether ours grows where theirs does, with the whole interval; published ratios are above 1."""
        if self.ratio.low > 1:
            return "the same"
        return "the other" if self.ratio.high < 1 else "not clear"

    @property
    def of_published(self) -> float:
        """Ours over theirs, or over the end of their range that is nearer; 1 within it."""
        nearest = min(max(self.ratio.mean, self.published.low), self.published.high)
        return self.ratio.mean / nearest

    def cells(self) -> list[str]:
        """Of a table: ratio of, here, published, direction, of published."""
        published = self.published
        theirs = f"{published.low:g}"
        if published.high > published.low:
            theirs += f" to {published.high:g}"
        ours = f"{self.ratio:.2f}"
        what = f"{published.other} to {published.base}"
        return [what, ours, theirs, self.direction, f"{self.of_published:.2f}"]


def compare(found: Mapping[Case, Sequence[Measured]]) -> list[Compared]:
    """All published ratios whose two cases were measured."""
    by_label = {(case.guideline, case.label): runs for case, runs in found.items()}
    compared = []
    for published in PUBLISHED:
        base = by_label.get((published.guideline, published.base), [])
        other = by_label.get((published.guideline, published.other), [])
        ratios = [two.mbyte_s / one.mbyte_s for one, two in zip(base, other, strict=False) if one.mbyte_s]
        if ratios:
            compared.append(Compared(published, mean_interval(ratios)))
    return compared
