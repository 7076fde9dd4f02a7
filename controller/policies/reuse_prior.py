"""What is known of reuse beforehand: counts of a trace seen elsewhere, and whether to go by them here.

A trace says little of ages that it has hardly reached, and what becomes of blocks at such ages is much alike
in traces of one kind. So counts of a published trace (`conversation.csv`) are added to those made here, but
only while they foretell which blocks are asked for again better than what was learned here alone.

That is a partial likelihood, as in Cox's regression: how likely it is that it was this block, of all at
risk, that was asked for again. How much is asked for again in all, which differs most from trace to trace,
has no part in it, and as long as nothing came again neither is better: what is assumed from cold holds. What
is known has to be better by a lead, which is bounded, so that traffic that changes is soon found out.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from controller.policies.reuse_ages import AGE_EDGES, BUCKETS, TICK_ACCESSES
from controller.policies.reuse_classes import (
    CHILD_EDGES,
    CLASSES,
    COUNT_EDGES,
    GAP_CLASSES,
    GAP_STEPS_PER_TICK,
    LEVEL_COUNTS,
    MIN_CHILDREN,
)

Floats = NDArray[np.float64]

CONVERSATION = Path(__file__).with_name("conversation.csv")
"""Counts of the conversation trace published with Mooncake (`experiments/policies/known.py`)."""
SCHEME = (
    f"classes and ages: counts {COUNT_EDGES}, children {CHILD_EDGES} from {MIN_CHILDREN} on, "
    f"{GAP_CLASSES} gaps from 1/{GAP_STEPS_PER_TICK} tick, levels {LEVEL_COUNTS}; "
    f"ticks of {TICK_ACCESSES} accesses, {BUCKETS} ages to {AGE_EDGES[-1]} ticks"
)
"""What the numbers of classes and ages in a file mean."""
KNOWN_REUSES = 10_000.0
"""What is known weighs as so many reuses, half of what a quarter of an hour of that trace has. With 3,000
its quarters, each with the counts of the other three, save 1.077 instead of 1.091 of the best of 14
baselines."""
LEAD_NATS = 500.0
"""So much likelier must what was seen be by what is known. Blocks of a request come again together, so that
is what some twenty requests tell. With 300 the same quarters save 1.089; generated shapes that are unlike
that trace have been seen to reach 280 by chance."""


@dataclass(frozen=True, eq=False)
class Counts:
    """Reuses and exposure (blocks at risk times ticks), each [class, bucket of ages]."""

    reuses: Floats
    exposure: Floats

    def plus(self, other: Counts) -> Counts:
        """Those of both."""
        return Counts(self.reuses + other.reuses, self.exposure + other.exposure)

    def scaled(self, reuses: float) -> Counts:
        """The same hazards from so many reuses in all."""
        factor = reuses / self.reuses.sum()
        return Counts(self.reuses * factor, self.exposure * factor)

    def write(self, path: Path, source: str) -> None:
        """A line for each class and age that was seen."""
        with path.open("w") as lines:
            lines.write(f"# {source}\n# {SCHEME}\nclass,age_bucket,reuses,exposure_block_ticks\n")
            for kind, bucket in np.argwhere(self.exposure > 0):
                reuses, exposure = self.reuses[kind, bucket], self.exposure[kind, bucket]
                lines.write(f"{kind},{bucket},{reuses:.0f},{exposure:.1f}\n")


class CountsError(ValueError):
    """Counts that were made for other classes or ages."""


def read_counts(path: Path) -> Counts:
    """What `Counts.write` wrote. Raises CountsError where its numbers mean other classes or ages."""
    counts = Counts(np.zeros((CLASSES, BUCKETS)), np.zeros((CLASSES, BUCKETS)))
    lines = path.read_text().splitlines()
    if f"# {SCHEME}" not in lines:
        raise CountsError(
            f"{path}: made for other classes or ages than those of reuse_classes.py and reuse_ages.py "
            f"({SCHEME}); python -m experiments.policies.known makes it anew"
        )
    for row in csv.DictReader(line for line in lines if not line.startswith("#")):
        place = int(row["class"]), int(row["age_bucket"])
        counts.reuses[place] = float(row["reuses"])
        counts.exposure[place] = float(row["exposure_block_ticks"])
    return counts


@cache
def conversation() -> Counts:
    """What is known unless one says otherwise."""
    return read_counts(CONVERSATION)


class Trust:
    """Whether what is known foretells what is seen better than what was learned here."""

    def __init__(self, known_hazard: Floats) -> None:
        self.lead_nats = 0.0
        """By how much what was seen is likelier by what is known; at most twice LEAD_NATS either way."""
        self._known_hazard = known_hazard
        self._own_hazard = known_hazard
        self._reuses = self._exposure = np.zeros_like(known_hazard)

    @property
    def is_given(self) -> bool:
        """Whether to go by what is known."""
        return self.lead_nats > LEAD_NATS

    def see(self, reuses: Floats, exposure: Floats) -> None:
        """Counts, by now."""
        reuses, exposure = reuses - self._reuses, exposure - self._exposure
        total = reuses.sum()
        if total <= 0 or exposure.max() <= 0:
            return
        known, own = self._known_hazard, self._own_hazard
        gain = (reuses * np.log(known / own)).sum()
        gain -= total * np.log((known * exposure).sum() / (own * exposure).sum())
        most = 2 * LEAD_NATS
        self.lead_nats = min(most, max(-most, self.lead_nats + float(gain)))

    def go_on(self, reuses: Floats, exposure: Floats, own_hazard: Floats) -> None:
        """Counts from which the next ones are told apart, and the hazards learned here alone until then."""
        self._reuses, self._exposure, self._own_hazard = reuses, exposure, own_hazard
