"""Pairs of a comparison whose ratio should be known within a share; the report names what is wider."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from experiments.study.point import Point
from experiments.study.sample import MEAN, Sample, ratio
from experiments.study.setting_map import MAP
from experiments.study.systems import BOUND, CENTRAL, POOLS, WITHOUT
from experiments.study.tornado import RIVALS

DECIDED_SHARE = 0.01
MAP_SHARE = 0.005
"""Half interval wanted in the map, where a smaller lead makes no difference."""
WATCHED = 3
"""Number of watched pairs in a group without a pool."""
TORNADO = "tornado"
"""Name of the sweep whose pools are compared with their rivals in RIVALS."""

Pair = tuple[int, int]
"""Indexes of two points in their group."""


def wanted_share(points: Sequence[Point]) -> float:
    """Return half the widest interval that a group's ratios may have."""
    return MAP_SHARE if points and points[0].sweep == MAP else DECIDED_SHARE


def spread(points: Sequence[Point], samples: Sequence[Sample]) -> float:
    """Return half the widest interval among the pairs that a group is about."""
    pairs = nearest(points, samples) if points[0].sweep == MAP else watched(points, samples)
    halves = [ratio(samples[one], samples[other], *MEAN).half for one, other in pairs]
    return max(halves, default=0.0)


def watched(points: Sequence[Point], samples: Sequence[Sample]) -> Iterator[Pair]:
    """Yield each system with a pool paired with the same one without, and with its strongest
    rivals at its cost.

    The rivals are the fastest of all and the fastest of CENTRAL. In the tornado they are those of RIVALS.
    Without a pool, neighbours by mean are paired, the fastest first.
    """
    order = sorted(range(len(samples)), key=lambda at: samples[at].mean(*MEAN))
    names = [point.system for point in points]
    pools = [at for at in order if names[at] in POOLS]
    if not pools:
        yield from list(pairwise(order))[:WATCHED]
    for pool in pools:
        if points[pool].sweep == TORNADO:
            rivals_of_pool = RIVALS.get(names[pool], ())
            beside = [(names[at], points[at].setting.stores) for at in range(len(points))]
            yield from ((pool, beside.index(rival)) for rival in rivals_of_pool if rival in beside)
            continue
        rivals = _rivals(points, samples, pool, order)
        central = [at for at in rivals if names[at] in CENTRAL]
        without = [at for at in order if _is_without(points[at], points[pool])]
        yield from ((pool, rival) for rival in {*rivals[:1], *central[:1], *without})


def nearest(points: Sequence[Point], samples: Sequence[Sample]) -> Iterator[Pair]:
    """Yield the pool that leads by most and its strongest rival: among all systems, and among CENTRAL.

    The verdict of the map is about these pairs; the interval of a pool that is far behind does not matter.
    """
    order = sorted(range(len(samples)), key=lambda at: samples[at].mean(*MEAN))
    for kinds in (None, CENTRAL):
        mine = [at for at in order if kinds is None or points[at].system in kinds]
        leads = []
        for pool in (at for at in mine if points[at].system in POOLS):
            rivals = _rivals(points, samples, pool, mine)
            if rivals:
                leads.append((ratio(samples[pool], samples[rivals[0]], *MEAN).mean, pool, rivals[0]))
        if leads:
            yield min(leads)[1:]


def _rivals(points: Sequence[Point], samples: Sequence[Sample], pool: int, order: Sequence[int]) -> list[int]:
    """Return the indexes of systems without a pool that cost no more, the fastest first."""
    return [
        at
        for at in order
        if points[at].system not in (*POOLS, BOUND) and samples[at].cost <= samples[pool].cost
    ]


def _is_without(point: Point, pool: Point) -> bool:
    """Return whether it is the same purchase with a switch that only forwards."""
    same = point.setting.stores == pool.setting.stores and point.variant == pool.variant
    return same and point.system == WITHOUT.get(pool.system)
