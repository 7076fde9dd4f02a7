"""Distributions: of given values, and of times between tokens, which are too many to store."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_WIDTH = math.log(1.01)


@dataclass(frozen=True, slots=True)
class Spread:
    """Mean and percentiles (nearest rank) in seconds; zeros without values."""

    mean: float = 0.0
    p50: float = 0.0
    p90: float = 0.0
    p99: float = 0.0


SHARES = (0.5, 0.9, 0.99)
"""Ranks of a Spread's percentiles, as shares."""


def spread(values: Sequence[float]) -> Spread:
    """Return the spread of values in any order."""
    if not values:
        return Spread()
    ordered = sorted(values)
    ranks = (ordered[min(len(ordered) - 1, int(share * len(ordered)))] for share in SHARES)
    return Spread(sum(ordered) / len(ordered), *ranks)


class Gaps:
    """Times between tokens, counted in classes 1 % wide; their mean is exact."""

    def __init__(self) -> None:
        self._classes: dict[int, float] = defaultdict(float)
        self._tokens = self._total_s = 0.0

    def add(self, gap_s: float, tokens: float) -> None:
        """Count `tokens` tokens that each came `gap_s` seconds after the one before."""
        if gap_s > 0 and tokens > 0:
            self._tokens += tokens
            self._total_s += gap_s * tokens
            self._classes[round(math.log(gap_s) / _WIDTH)] += tokens


def spread_of(gaps: Iterable[Gaps]) -> Spread:
    """Return the spread of all gaps together; zeros without gaps."""
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
