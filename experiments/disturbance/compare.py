"""Pairs of runs, and how far their medians lie apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from experiments.intervals import Interval, mean_interval
from experiments.run.result import RunResult

COMPARED = ("no_pool", "phantom")
LIMIT = 0.02
"""What the control plane may add to a median before comparisons on this machine are biased by it."""
FIGURES: dict[str, Callable[[RunResult], float]] = {
    "GET p50": lambda run: run.get_ms.p50,
    "TTFT p50": lambda run: run.ttft_ms.p50,
}


@dataclass(frozen=True, slots=True)
class Pair:
    """One run of each kind, one right after the other."""

    no_pool: RunResult
    phantom: RunResult

    @property
    def counts(self) -> bool:
        """Whether the machine kept up in both."""
        return not (self.no_pool.overloaded or self.phantom.overloaded)


def order_of(pair: int) -> tuple[str, ...]:
    """Which run comes first alternates: what drifts in time hits both alike."""
    return COMPARED if pair % 2 == 0 else COMPARED[::-1]


def differences(pairs: Sequence[Pair]) -> dict[str, Interval]:
    """Relative difference of each figure, phantom against no pool, paired."""
    return {
        name: mean_interval([figure(pair.phantom) / figure(pair.no_pool) - 1 for pair in pairs])
        for name, figure in FIGURES.items()
    }


def verdict(difference: Interval) -> str:
    """What an interval says of the limit."""
    if difference.within(LIMIT):
        return "within"
    if difference.low > LIMIT or difference.high < -LIMIT:
        return "outside"
    return "undecided: more RUNS, or a quieter machine"
