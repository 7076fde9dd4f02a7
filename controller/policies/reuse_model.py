"""When blocks are asked for again: hazards learned online by class and age, and the index that ranks blocks
by them.

Blocks are grouped into classes (`reuse_classes.py`). The age of a block is the number of accesses since it
was last asked for, in ticks, and then in buckets that widen with age. For each class and bucket the model
counts reuses and exposure (blocks at risk times ticks), whether the pool holds a block or only remembers
it, so what it learns does not depend on what was kept. Both fade, so old habits are forgotten.

hazard = (reuses + K * prior) / (exposure + K), K worth PRIOR_REUSES reuses. The prior is the hazard of all
classes at that age times how much more this class is reused than they are (proportional hazards): a class
seen seldom borrows the shape of all.

The index of a class and age is its Gittins index: the highest rate of hits per tick that holding the block
on can reach, over all ages until which one might hold it. A hit counts one plus what holding the block is
worth in the class it then enters. Unlike the hazard, the index looks ahead: a turn that comes in a minute
is worth waiting for."""

from __future__ import annotations

from operator import add

import numpy as np
from numpy.typing import NDArray

from controller.policies.reuse_classes import CLASSES, COUNT_EDGES, FIRST_COUNT_CLASS, next_class_prior
from controller.policies.reuse_parts import Parts

TICK_ACCESSES = 64
"""The grain of ages: a few requests' worth of blocks."""
AGE_EDGES = (1, *[edge for octave in range(1, 13) for edge in (2**octave, 3 * 2 ** (octave - 1))], 8192)
"""Ages in ticks at which a bucket begins: two an octave, up to half a million accesses."""
BUCKETS = len(AGE_EDGES) + 1
FADE_TICKS = 4096.0
"""Counts fade to 1/e in that time."""
PRIOR_REUSES = 1.0
"""Weight of the prior of a class and bucket, in reuses."""
CLASS_PRIOR_REUSES = 2.0
"""Weight of the prior of a class's relative hazard, in reuses."""
MOVE_PRIOR = 4.0
"""Weight of the prior of the next class, in moves."""
COUNT_EXPONENT = 0.5
"""Before anything is seen, reuse grows with the square root of the count."""
START_REUSES, START_TICKS = 0.8, 8.0
"""Before anything is seen, the hazard is START_REUSES / START_TICKS / (1 + age)."""

Floats = NDArray[np.float64]

_WIDTHS = np.diff(np.array((0, *AGE_EDGES, 2 * AGE_EDGES[-1]), dtype=float))
_MIDDLES = np.array((0, *AGE_EDGES), dtype=float) + _WIDTHS / 2
_BUCKET_OF_AGE = [sum(age >= edge for edge in AGE_EDGES) for age in range(AGE_EDGES[-1] + 1)]
_FROM_ON = np.triu(np.ones((BUCKETS, BUCKETS), dtype=bool))
_CHARGE_LOG_STEP = 1.0 / 6
_CHARGE_LOG_START = -6.0
_CHARGES = 10.0 ** (_CHARGE_LOG_START + _CHARGE_LOG_STEP * np.arange(49))
"""Charges per tick at which the worth of entering a class is tabulated."""
_WORTH_LIMIT = 1e4
_WORTH_STEPS = 2
_INDEX_STEPS = 3


def bucket_of(age_ticks: int) -> int:
    """The bucket of an age."""
    return _BUCKET_OF_AGE[age_ticks] if age_ticks < len(_BUCKET_OF_AGE) else BUCKETS - 1


class ReuseModel:
    """Counts of reuse and exposure, and the tables made of them; told of what happens to blocks."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self.index: list[list[float]] = []
        """[class][bucket]: hits per tick that holding on can reach."""
        self.chance: list[list[float]] = []
        """[class][bucket]: chance of being asked for again at all."""
        self._reuses = _table()
        self._exposure = _table()
        self._at_risk = [[0] * BUCKETS for _ in range(CLASSES)]
        self._moves = [[0.0] * CLASSES for _ in range(CLASSES)]
        self._move_prior = next_class_prior()
        self._worth: Floats = np.zeros((CLASSES, len(_CHARGES)))
        self._index: Floats = np.zeros((CLASSES, BUCKETS))
        self.refresh(0)

    def entered(self, kind: int) -> None:
        """A block was asked for and is of this class now, at age 0."""
        self._at_risk[kind][0] += 1
        # On average it enters in the middle of the tick.
        self._exposure[kind][0] += 0.5

    def left(self, kind: int, bucket: int) -> None:
        """A block of this class and age is no longer observed."""
        self._at_risk[kind][bucket] -= 1

    def reused(self, kind: int, bucket: int, next_kind: int) -> None:
        """A block of this class and age was asked for again and changes class."""
        self._reuses[kind][bucket] += 1.0
        self._at_risk[kind][bucket] -= 1
        self._moves[kind][next_kind] += 1.0

    def repeated(self, kind: int, times: int) -> None:
        """A block that has just entered this class was asked for more times at once."""
        self._reuses[kind][0] += times

    def aged(self, kind: int, bucket: int, blocks: int) -> None:
        """So many blocks of this class passed from the bucket before into this one."""
        at_risk = self._at_risk[kind]
        at_risk[bucket - 1] -= blocks
        at_risk[bucket] += blocks

    def ticked(self) -> None:
        """A tick went by for all blocks at risk; age 0 is accounted for by entering."""
        for exposure, at_risk in zip(self._exposure, self._at_risk, strict=True):
            if any(at_risk):
                at_age_0 = exposure[0]
                exposure[:] = map(add, exposure, at_risk)
                exposure[0] = at_age_0

    def refresh(self, ticks: float) -> None:
        """Fade the counts by `ticks` since the last time and make the tables anew."""
        fade = float(np.exp(-ticks / FADE_TICKS))
        reuses, exposure, moves = (np.array(t) * fade for t in (self._reuses, self._exposure, self._moves))
        self._reuses, self._exposure, self._moves = reuses.tolist(), exposure.tolist(), moves.tolist()
        hazard = _hazards(reuses, exposure)
        chances = (moves + MOVE_PRIOR * self._move_prior) / (moves.sum(1, keepdims=True) + MOVE_PRIOR)
        self._tabulate(hazard, chances)

    def _tabulate(self, hazard: Floats, next_class: Floats) -> None:
        stay = np.exp(-hazard * _WIDTHS)
        held_ticks = (1.0 - stay) / hazard
        for _ in range(_WORTH_STEPS if self._parts.gain else 0):
            gain = 1.0 + next_class @ self._worth
            self._worth = np.minimum(_entering_worth(stay, held_ticks, gain), _WORTH_LIMIT)
        gain = 1.0 + next_class @ self._worth
        survival = np.concatenate([np.ones((CLASSES, 1)), np.cumprod(stay, axis=1)], axis=1)
        rate = _best_hit_rate(survival, held_ticks) if self._parts.lookahead else hazard
        self._index = _with_gain(rate, gain, np.maximum(self._index, rate))
        self.index = self._index.tolist()
        self.chance = (1.0 - survival[:, -1:] / np.maximum(survival[:, :-1], 1e-300)).tolist()


def _table() -> list[list[float]]:
    return [[0.0] * BUCKETS for _ in range(CLASSES)]


def _hazards(reuses: Floats, exposure: Floats) -> Floats:
    """Hazard per tick by class and bucket, shrunk towards proportional hazards."""
    of_all = (reuses.sum(0) + START_REUSES / (1.0 + _MIDDLES)) / (exposure.sum(0) + START_TICKS)
    expected = (exposure * of_all).sum(1)
    relative = (reuses.sum(1) + CLASS_PRIOR_REUSES) / (expected + CLASS_PRIOR_REUSES)
    for kind in range(FIRST_COUNT_CLASS + 1, CLASSES):
        position = kind - FIRST_COUNT_CLASS
        growth = (COUNT_EDGES[position] / COUNT_EDGES[position - 1]) ** COUNT_EXPONENT
        prior = CLASS_PRIOR_REUSES * relative[kind - 1] * growth
        relative[kind] = (reuses[kind].sum() + prior) / (expected[kind] + CLASS_PRIOR_REUSES)
    prior_hazard = of_all * relative[:, None]
    weight = PRIOR_REUSES / prior_hazard
    hazard: Floats = (reuses + PRIOR_REUSES) / (exposure + weight)
    return hazard


def _entering_worth(stay: Floats, held_ticks: Floats, gain: Floats) -> Floats:
    """Worth of a block that enters a class, [class, charge]: hits to come less the charge for holding.

    From the last bucket back: hold the block through the bucket, or let go where that is worth nothing.
    """
    worth: Floats = np.zeros_like(gain)
    for bucket in range(BUCKETS - 1, -1, -1):
        kept = stay[:, bucket : bucket + 1]
        held = (1.0 - kept) * gain - held_ticks[:, bucket : bucket + 1] * _CHARGES + kept * worth
        worth = np.maximum(held, 0.0)
    return worth


def _best_hit_rate(survival: Floats, held_ticks: Floats) -> Floats:
    """Highest rate of first hits per tick, [class, bucket], over all ages until which to hold on."""
    held = np.concatenate([np.zeros((CLASSES, 1)), np.cumsum(survival[:, :-1] * held_ticks, axis=1)], axis=1)
    hits = survival[:, :-1, None] - survival[:, None, 1:]
    ticks = held[:, None, 1:] - held[:, :-1, None]
    rates: Floats = np.where(_FROM_ON, hits / np.maximum(ticks, 1e-300), 0.0).max(axis=2)
    return rates


def _with_gain(rate: Floats, gain: Floats, guess: Floats) -> Floats:
    """The charge at which holding just pays when a hit brings `gain`: a fixed point, near the last one."""
    rows = np.arange(CLASSES)[:, None]
    index = guess
    for step in range(_INDEX_STEPS):
        place = (np.log10(np.maximum(index, 1e-30)) - _CHARGE_LOG_START) / _CHARGE_LOG_STEP
        place = np.clip(place, 0.0, len(_CHARGES) - 1.001)
        low = place.astype(int)
        part = place - low
        found = rate * (gain[rows, low] * (1.0 - part) + gain[rows, low + 1] * part)
        index = found if step == 0 else (index + found) / 2.0
    return index
