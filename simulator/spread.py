"""Distributions: of values at hand, and of times between tokens, which are too many to keep."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_WIDTH = math.log(1.01)


@dataclass(frozen=True, slots=True)
class Spread:
    """Mean and percentiles (nearest rank), seconds; zeros where there is nothing."""

    mean: float = 0.0
    p50: float = 0.0
    p90: float = 0.0
    p99: float = 0.0


SHARES = (0.5, 0.9, 0.99)
"""Of the percentiles of a Spread."""


def spread(values: Sequence[float]) -> Spread:
    """Return the spread of any values."""
    if not values:
        return Spread()
    ordered = sorted(values)
    ranks = (ordered[min(len(ordered) - 1, int(share * len(ordered)))] for share in SHARES)
    return Spread(sum(ordered) / len(ordered), *ranks)


class Gaps:
    """How long tokens came after the one before, counted in classes 1 % wide; the mean is exact."""

    def __init__(self) -> None:
        self._classes: dict[int, float] = defaultdict(float)
        self._tokens = self._total_s = 0.0

    def add(self, gap_s: float, tokens: float) -> None:
        """Count tokens that came so long after their predecessors."""
        if gap_s > 0 and tokens > 0:
            self._tokens += tokens
            self._total_s += gap_s * tokens
            self._classes[round(math.log(gap_s) / _WIDTH)] += tokens


def spread_of(gaps: Iterable[Gaps]) -> Spread:
    """Return the spread of all of them together; zeros where there are none."""
    classes: dict[int, float] = defaultdict(float)
    tokens = total_s = 0.0
    for some in gaps:
        for place, count in some._classes.items():
            classes[place] += count
        tokens += some._tokens
        total_s += some._total_s
    if not tokens:
        return Spread()
    return Spread(total_s / tokens, *(_percentile(classes, share * tokens) for share in SHARES))


def _percentile(classes: dict[int, float], rank: float) -> float:
    seen, place = 0.0, 0
    for place in sorted(classes):
        seen += classes[place]
        if seen > rank:
            break
    return math.exp(place * _WIDTH)
