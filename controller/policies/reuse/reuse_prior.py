"""What is known of reuse beforehand: counts of other traces, and by which of them to go here.

A trace says little of ages that it has hardly reached, and what becomes of blocks at such ages is much alike
in traces of one kind. So counts of other traces (`known.npz`: mixes of drawn services, and the conversation
trace published with Mooncake) are added to those made here, each with the weight that it has earned by
foretelling which blocks are asked for again, beside what was learned here alone.

That is a partial likelihood, as in Cox's regression: how likely it is that it was this block, of all at
risk, that was asked for again. How much is asked for again in all, which differs most from trace to trace,
has no part in it. Weights are multiplied by it, and a small part of them is dealt out anew each time, so that
traffic that changes is soon found out: fixed share (Herbster and Warmuth, Tracking the Best Expert, 1998).
At ages that nothing here has passed yet nothing was foretold, and what is assumed from cold holds: a loop far
larger than the pool is not taken for traffic that comes once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from controller.policies.reuse.reuse_ages import AGE_EDGES, BUCKETS, TICK_TOKENS, USUAL_BLOCK_TOKENS
from controller.policies.reuse.reuse_classes import (
    CHILD_EDGES,
    CLASSES,
    COUNT_EDGES,
    GAP_CLASSES,
    GAP_STEPS_PER_TICK,
    LEVEL_COUNTS,
    MIN_CHILDREN,
)

Floats = NDArray[np.float64]

KNOWN = Path(__file__).with_name("known.npz")
"""Counts of other traces by name (`experiments/policies/known.py`)."""
CONVERSATION = "conversation_trace"
"""Which of them is the conversation trace published with Mooncake."""
SCHEME = (
    f"classes and ages: counts {COUNT_EDGES}, children {CHILD_EDGES} from {MIN_CHILDREN} on, "
    f"{GAP_CLASSES} gaps from 1/{GAP_STEPS_PER_TICK} tick, levels {LEVEL_COUNTS}; "
    f"ticks of {TICK_TOKENS} tokens, {BUCKETS} ages to {AGE_EDGES[-1]} ticks; "
    f"blocks of {USUAL_BLOCK_TOKENS} tokens"
)
"""What the numbers of classes and ages in a file mean."""
KNOWN_REUSES = 10_000.0
"""What is known weighs as so many reuses, times its weight: half of what a quarter of an hour of the
conversation trace has."""
REUSES_AT_ONCE = 24.0
"""Blocks of a request come again together, so that so many reuses tell as much as one: so many blocks has a
request of the conversation trace on average."""
SHARE = 0.001
"""Part of the weights that is dealt out anew at each refresh with reuses since the one before."""
OWN_SHARE = 0.99
"""Of what is dealt out, the part of what was learned here alone; what is known of other traces share the
rest."""


@dataclass(frozen=True, eq=False)
class Counts:
    """Reuses and exposure (blocks at risk times ticks), each [class, bucket of ages]."""

    reuses: Floats
    exposure: Floats

    def plus(self, other: Counts) -> Counts:
        """Those of both."""
        return Counts(self.reuses + other.reuses, self.exposure + other.exposure)

    def scaled(self, reuses: float) -> Counts:
        """The same hazards from so many reuses in all. Raises CountsError where there are none."""
        counted = self.reuses.sum()
        if not counted > 0:
            raise CountsError("counts without a reuse tell no hazards: leave them out")
        factor = reuses / counted
        return Counts(self.reuses * factor, self.exposure * factor)


class CountsError(ValueError):
    """Counts that tell nothing, or that were made for other classes or ages."""


def write_counts(path: Path, known: Mapping[str, Counts]) -> None:
    """Counts by name, to the nearest whole number."""
    np.savez_compressed(
        path,
        scheme=np.array(SCHEME),
        names=np.array(list(known)),
        reuses=np.array([np.rint(counts.reuses) for counts in known.values()], dtype=np.uint64),
        exposure_block_ticks=np.array(
            [np.rint(counts.exposure) for counts in known.values()], dtype=np.uint64
        ),
    )


def read_counts(path: Path) -> dict[str, Counts]:
    """What `write_counts` wrote. Raises CountsError where its numbers mean other classes or ages."""
    with np.load(path, allow_pickle=False) as file:
        if str(file["scheme"]) != SCHEME:
            raise CountsError(
                f"{path}: made for other classes or ages than those of reuse_classes.py and reuse_ages.py "
                f"({SCHEME}); python -m experiments.policies.known makes it anew"
            )
        rows = zip(file["names"], file["reuses"], file["exposure_block_ticks"], strict=True)
        return {
            str(name): Counts(reuses.astype(float), exposure.astype(float)) for name, reuses, exposure in rows
        }


@cache
def shipped() -> Mapping[str, Counts]:
    """What is known unless one says otherwise."""
    return read_counts(KNOWN)


class Forecasts:
    """Counts of other traces, of equal weight, and the hazards that follow from them."""

    def __init__(self, known: Sequence[Counts], hazards: Callable[[Floats, Floats], Floats]) -> None:
        scaled = [counts.scaled(KNOWN_REUSES) for counts in known]
        made = [hazards(counts.reuses, counts.exposure) for counts in scaled]
        self.reuses = _flat([counts.reuses for counts in scaled])
        self.exposure = _flat([counts.exposure for counts in scaled])
        self.hazard = _flat(made)
        """Each [trace, class and bucket]."""
        self.log_hazard = np.log(self.hazard)

    def __len__(self) -> int:
        return len(self.hazard)


class Trust:
    """How much each forecast weighs here, beside what was learned here: by how well they, and the hazards
    learned here until one refresh (`go_on`), foretell what is counted until the next (`see`)."""

    def __init__(self, forecasts: Forecasts, usual_blocks: float = 1.0) -> None:
        """A block counts as so many of the usual size."""
        others = len(forecasts)
        self._reuses_at_once = REUSES_AT_ONCE / usual_blocks
        self._forecasts = forecasts
        self._dealt = np.array([OWN_SHARE, *[(1 - OWN_SHARE) / others] * others])
        self.weights = self._dealt
        """Of what was learned here, then of each forecast; 1 in sum."""
        self._own_hazard = self._reuses = self._exposure = np.zeros((CLASSES, BUCKETS))

    def see(self, reuses: Floats, exposure: Floats) -> None:
        """Weigh forecasts by what was counted since `go_on`; `reuses` and `exposure` are sums with what was
        counted before, each [class, bucket]. Without reuses nothing changes."""
        reuses, exposure = (reuses - self._reuses).ravel(), (exposure - self._exposure).ravel()
        total, own = reuses.sum(), self._own_hazard.ravel()
        expected = own @ exposure
        if total <= 0 or expected <= 0:
            return
        forecasts = self._forecasts
        nats = forecasts.log_hazard @ reuses - np.log(own) @ reuses
        nats -= total * np.log(forecasts.hazard @ exposure / expected)
        gained = np.append(0.0, nats) / self._reuses_at_once + np.log(self.weights)
        weights = np.exp(gained - gained.max())
        self.weights = (1 - SHARE) * weights / weights.sum() + SHARE * self._dealt

    def go_on(self, reuses: Floats, exposure: Floats, own_hazard: Floats) -> None:
        """From here on: the counts as they are, and the hazards learned here alone, each [class, bucket]."""
        self._reuses, self._exposure, self._own_hazard = reuses, exposure, own_hazard

    @property
    def counts(self) -> Counts | None:
        """All that is known, by its weights; None if that is less than one reuse."""
        of_others, forecasts = self.weights[1:], self._forecasts
        if of_others.sum() * KNOWN_REUSES < 1.0:
            return None
        return Counts(
            (of_others @ forecasts.reuses).reshape(CLASSES, BUCKETS),
            (of_others @ forecasts.exposure).reshape(CLASSES, BUCKETS),
        )


def _flat(tables: Sequence[Floats]) -> Floats:
    return np.array(tables).reshape(len(tables), -1)
