"""Prediction of when blocks are asked for again: hazards learned online by class and age, and the index that
ranks blocks by them.

Blocks are grouped into classes (`reuse_classes.py`). The age of a block is the number of accesses since it
was last asked for, in ticks, and then in buckets that widen with age. For each class and bucket the model
counts reuses and exposure (blocks at risk times ticks). It counts blocks that the pool holds and blocks that
it only remembers alike, so what it learns does not depend on what was kept. Both counts fade, so old habits
are forgotten. The exposure of a class at an age counts once blocks have passed that age, or came again at it.
Blocks still on their way through say nothing yet of those that will come again at its end, as in a loop.

Classes form groups: blocks that end their chain; other blocks that were asked for once, of any lineage; and
each gap, at any count. For a group, hazard = (reuses + K * prior) / (exposure + K), where K is worth one
reuse (Tuning.prior_reuses). The prior is the hazard of all blocks at that age, times how much more the group
was reused at ages near: a group that is seldom seen borrows the shape of all. Ages near are used because
short gaps tell of the next minute, and blocks that were not asked for in many minutes are much like others.
The hazard of a class is that of its group, times how much more the class was reused at ages near. Without the
group, what the blocks of a few requests did would pass for a habit.

What was learned fades while a few times the pool's size is asked for (Tuning.fade_pools), because traffic
changes.

The index of a class and age is its Gittins index: the highest rate of hits per tick that holding the block
can reach, over all ages until which one might hold it. Unlike the hazard, the index looks ahead: a turn that
comes in a minute is worth waiting for. Only the next hit counts: from then on, the future is the same whether
the block was held or came anew.
"""

from __future__ import annotations

import math
from operator import add

import numpy as np
from numpy.typing import NDArray

from controller.policies.reuse.reuse_ages import (
    AGE_EDGES,
    BUCKETS,
    TICK_TOKENS,
    USUAL_BLOCK_TOKENS,
    usual_blocks,
)
from controller.policies.reuse.reuse_classes import CLASSES, FIRST_GAP_CLASS, LAST, LEVELS
from controller.policies.reuse.reuse_parts import Parts, Tuning

CLASS_PRIOR_REUSES = 2.0
"""Weight of the prior of a class's relative hazard, in reuses."""
CLASS_GROWTH = 1.4
"""Factor between the assumed reuses of a class of blocks asked for again and of the class whose gaps are
twice as long.

It holds before anything is seen. With 2, blocks that were asked for in one short burst are kept at ages that
their class has not passed.
"""
NEAR = 0.5
"""Weight of what a bucket of ages tells of the next one: how much more than others a class is reused. It is
not critical: with .1 instead, a pool saves as much on the conversation trace, in the mean of seven
quarters within .01 at each size but 1,000 blocks, within .02 there."""
START_HAZARD = 0.1
"""Per tick at age 0, before anything is seen."""
START_TICKS = 300.0
START_FALL = 3.0
"""Exponent of the assumed hazard before anything is seen, which is proportional to (1 + age / START_TICKS) **
-START_FALL.

It is half after 5,000 accesses and an eighth after 19,200, so that the first blocks stay until other blocks
are known to be better. If it falls from the first tick on (age ** -0.75), the last blocks are worth most, and
pools of 300 to 3,000 blocks save .968 instead of .984 of the best baseline in their first 5,000 accesses (14
shapes, seeds 101 and 102). If it falls later (600 ticks) or less (to the power of 1), pools of 10,000 blocks
keep the oldest for long.
"""

Floats = NDArray[np.float64]

_WIDTHS = np.diff(np.array((0, *AGE_EDGES, 2 * AGE_EDGES[-1]), dtype=float))
_MIDDLES = np.array((0, *AGE_EDGES), dtype=float) + _WIDTHS / 2
_START = START_HAZARD / (1.0 + _MIDDLES / START_TICKS) ** START_FALL
_FALL = np.append(1.0, _START[1:] / _START[:-1])
_BUCKET_OF_AGE = [sum(age >= edge for edge in AGE_EDGES) for age in range(AGE_EDGES[-1] + 1)]
_GROUPS = np.array((LAST, 1, *range(FIRST_GAP_CLASS, CLASSES, LEVELS)))
"""First class of each group: blocks that end their chain, other blocks asked for once, and each gap."""
_FIRST_GAP_GROUP = 2
_GROUP_OF = np.repeat(np.arange(len(_GROUPS)), np.diff((*_GROUPS, CLASSES)))
_AGES = np.arange(BUCKETS)
_IS_LAST = _AGES == BUCKETS - 1
_NEAR = np.triu(NEAR ** np.maximum(0, _AGES - _AGES[:, None]))


def bucket_of(age_ticks: int) -> int:
    """Return the bucket of an age."""
    return _BUCKET_OF_AGE[age_ticks] if age_ticks < len(_BUCKET_OF_AGE) else BUCKETS - 1


class ReuseModel:
    """Counts of reuse and exposure, and the tables made of them; told of what happens to blocks."""

    def __init__(self) -> None:
        self.index: list[list[float]] = []
        """[class][bucket]: hits per tick that holding on can reach."""
        self.chance: list[list[float]] = []
        """[class][bucket]: chance of being asked for again at all."""
        self._reuses = _table()
        self._exposure = _table()
        self._passed = _table()
        self._at_risk = [[0] * BUCKETS for _ in range(CLASSES)]
        self.refresh(0.0, Learner())

    def entered(self, kind: int) -> None:
        """Note that a block was asked for and is of this class now, at age 0."""
        self._at_risk[kind][0] += 1
        # On average it enters in the middle of the tick.
        self._exposure[kind][0] += 0.5

    def left(self, kind: int, bucket: int) -> None:
        """Note that a block of this class and age is no longer observed."""
        self._at_risk[kind][bucket] -= 1

    def moved(self, kind: int, age_ticks: int, now: int) -> None:
        """Note that a block of this class and age was asked for again and changed its class, at age 0."""
        bucket = _BUCKET_OF_AGE[age_ticks] if age_ticks <= AGE_EDGES[-1] else BUCKETS - 1
        self._reuses[kind][bucket] += 1.0
        at_risk = self._at_risk
        at_risk[kind][bucket] -= 1
        at_risk[now][0] += 1
        self._exposure[now][0] += 0.5

    def repeated(self, kind: int, times: int) -> None:
        """Note that a block that has just entered this class was asked for more times at once."""
        self._reuses[kind][0] += times

    def aged(self, kind: int, bucket: int, blocks: int) -> None:
        """Record that so many blocks of this class passed from the bucket before into this one."""
        at_risk = self._at_risk[kind]
        at_risk[bucket - 1] -= blocks
        at_risk[bucket] += blocks
        self._passed[kind][bucket - 1] += blocks

    def ticked(self) -> None:
        """Record that a tick went by for all blocks at risk. Entering accounts for age 0."""
        for exposure, at_risk in zip(self._exposure, self._at_risk, strict=True):
            if any(at_risk):
                at_age_0 = exposure[0]
                exposure[:] = map(add, exposure, at_risk)
                exposure[0] = at_age_0

    def refresh(self, ticks: float, learner: Learner) -> None:
        """Fade the counts by `ticks` since the last time and make the tables anew."""
        reuses, exposure, index, chance = learner.learn(
            np.array(self._reuses), np.array(self._exposure), np.array(self._passed), ticks
        )
        self._reuses, self._exposure = reuses.tolist(), exposure.tolist()
        self.index, self.chance = index.tolist(), chance.tolist()


LEAST_FADE_TICKS = 64.0
"""Least number of ticks in which what was learned fades: some hundred requests tell something, ten do not."""


class Learner:
    """Makes tables of counts; one for each model."""

    def __init__(
        self,
        parts: Parts | None = None,
        tuning: Tuning | None = None,
        block_tokens: int = USUAL_BLOCK_TOKENS,
        capacity_blocks: int = 1000,
    ) -> None:
        self._parts, self._tuning = parts or Parts(), tuning or Tuning()
        self._usual_blocks = usual_blocks(block_tokens)
        pool_ticks = capacity_blocks * block_tokens / TICK_TOKENS
        self._fade_ticks = max(LEAST_FADE_TICKS, self._tuning.fade_pools * pool_ticks)

    def learn(
        self, reuses: Floats, exposure: Floats, passed: Floats, ticks: float
    ) -> tuple[Floats, Floats, Floats, Floats]:
        """Return the counts faded by `ticks`, and the index and chance of reuse that follow: [class, bucket].

        `passed` is how many blocks were in a bucket until they were too old for it.
        """
        usual = self._usual_blocks
        fade = math.exp(-ticks / self._fade_ticks)
        reuses, exposure = reuses * fade, exposure * fade
        told = usual * _told(reuses, exposure, passed)
        hazard = _hazards(usual * reuses, told, self._tuning.prior_reuses)
        risk = hazard * _WIDTHS
        index = _best_hit_rate(hazard, risk) if self._parts.lookahead else hazard
        chance: Floats = 1.0 - np.exp(-np.cumsum(risk[:, ::-1], axis=1)[:, ::-1])
        return reuses, exposure, index, chance


def _table() -> list[list[float]]:
    return [[0.0] * BUCKETS for _ in range(CLASSES)]


def _told(reuses: Floats, exposure: Floats, passed: Floats) -> Floats:
    """Return the exposure of each class at the ages that its blocks have passed, or were reused at, and at
    the last, open age.

    It is 0 at other ages. If all exposure counted, 2 % less would be saved in `flood` with 1,000 and 3,000
    blocks.
    """
    told: Floats = np.where((passed + reuses > 0) | _IS_LAST, exposure, 0.0)
    return told


def _hazards(reuses: Floats, exposure: Floats, prior_reuses: float) -> Floats:
    """Return the hazard per tick by class and bucket: that of its group, times the ratio of both at ages
    near."""
    hazard: Floats = _of_groups(_by_group(reuses), _by_group(exposure), prior_reuses)[_GROUP_OF]
    of_group = (_near(reuses) + CLASS_PRIOR_REUSES) / (_near(exposure * hazard) + CLASS_PRIOR_REUSES)
    return hazard * of_group


def _by_group(counts: Floats) -> Floats:
    """Return counts of all classes of a group in one."""
    summed: Floats = np.add.reduceat(counts, _GROUPS)
    return summed


def _near(counts: Floats) -> Floats:
    """Return counts of each age and of those before it, the farther the less."""
    near: Floats = counts @ _NEAR
    return near


def _of_groups(reuses: Floats, exposure: Floats, prior_reuses: float) -> Floats:
    """Return hazard per tick by group and bucket, shrunk towards what its relation to all is at ages near."""
    of_all = _of_all(reuses.sum(0), exposure.sum(0), prior_reuses)
    near, expected = _near(reuses), _near(exposure * of_all)
    relative = (near + CLASS_PRIOR_REUSES) / (expected + CLASS_PRIOR_REUSES)
    expected += CLASS_PRIOR_REUSES
    for group in range(_FIRST_GAP_GROUP + 1, len(relative)):
        prior = CLASS_PRIOR_REUSES * CLASS_GROWTH * relative[group - 1]
        relative[group] = (near[group] + prior) / expected[group]
    weight = prior_reuses / (of_all * relative)
    hazard: Floats = (reuses + prior_reuses) / (exposure + weight)
    return hazard


def _of_all(reuses: Floats, exposure: Floats, prior_reuses: float) -> Floats:
    """Return hazard per tick by bucket, of all classes together.

    An age that nothing has reached yet is midway, in octaves, between what is assumed of any and what follows
    from the age before: what was assumed alone keeps the oldest blocks of a large pool for ever.
    """
    hazards: list[float] = []
    prior = START_HAZARD
    for reused, exposed, start, fall in zip(reuses, exposure, _START, _FALL, strict=True):
        if hazards:
            prior = math.sqrt(start * hazards[-1] * fall)
        hazards.append((reused + prior_reuses) / (exposed + prior_reuses / prior))
    return np.array(hazards)


def _best_hit_rate(hazard: Floats, risk: Floats) -> Floats:
    """Return highest rate of first hits per tick, [class, bucket], over all ages until which to hold on.

    All is relative to the beginning of the bucket from which a block is held on: of what few survive, a
    difference to what all would do is nothing but rounding.
    """
    # Of one that comes into a bucket: the chance of a hit there, and the ticks until it or the bucket's end.
    hit = np.ascontiguousarray(-np.expm1(-risk).T)
    held = hit / hazard.T
    stay, ticks, rates, rate = np.ones(hit.shape), *np.zeros((3, *hit.shape))
    for until in range(BUCKETS):  # of all buckets [begin, class] up to that one
        begin = slice(until + 1)
        ticks[begin] += np.multiply(stay[begin], held[until], out=rate[begin])
        stay[begin] *= 1.0 - hit[until]
        np.subtract(1.0, stay[begin], out=rate[begin])
        rate[begin] /= ticks[begin]
        np.maximum(rates[begin], rate[begin], out=rates[begin])
    return np.ascontiguousarray(rates.T)
