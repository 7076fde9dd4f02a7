"""Pairs of runs, and how far their medians lie apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from commands.intervals import Interval
from emulator import disturbance
from emulator.disturbance import COMPARED, FIGURES, LIMIT
from emulator.result import RunResult


@dataclass(frozen=True, slots=True)
class Pair:
    """One run of each kind, one right after the other."""

    no_pool: RunResult
    phantom: RunResult

    @property
    def counts(self) -> bool:
        """Return whether in both the machine kept up and all was served as it should be: what failed has no
        time."""
        return all(run.is_right and not run.overloaded for run in (self.no_pool, self.phantom))


def passed(pairs: Sequence[Pair]) -> bool:
    """Return whether all pairs count and all figures lie within the limit."""
    found = differences(pairs).values()
    return (
        all(pair.counts for pair in pairs)
        and len(found) == len(FIGURES)
        and all(difference.within(LIMIT) for difference in found)
    )


def order_of(pair: int) -> tuple[str, ...]:
    """Return the order of the two runs. Which one comes first alternates: what drifts in time hits both
    alike."""
    return COMPARED if pair % 2 == 0 else COMPARED[::-1]


def differences(pairs: Sequence[Pair]) -> dict[str, Interval]:
    """Relative difference of each figure, phantom against no pool, paired."""
    return disturbance.differences({name: [getattr(pair, name) for pair in pairs] for name in COMPARED})
