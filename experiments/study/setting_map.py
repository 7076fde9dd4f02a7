"""Map of settings: some drawn over the whole space, then more around those where the pool comes nearest.

The first settings are a Latin hypercube: each axis is cut into as many layers as there are settings, and each
layer has one setting. At each setting every purchase is simulated. Budgets are no axis, because the best
purchase of every budget can be read from one setting. Then new settings are drawn around those where a
purchase with a pool comes nearest to the best that costs no more, or leads it by most.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from random import Random
from typing import Any

from commands.intervals import Interval
from experiments.study.point import Point
from experiments.study.rivals import Purchase, faster_than, leads, not_more_expensive
from experiments.study.sample import MEAN, SAME_SHARE, Sample, ratio
from experiments.study.systems import BASELINES, BOUND, CENTRAL, LENT, Setting, system
from workload.cost import MODELS

MAP = "map"
SETTINGS, QUICK_SETTINGS = 20, 2
REFINED_SETTINGS, SETTINGS_AROUND_EACH = 3, 3
"""Number of settings to search around, and of new settings around each."""
REACH = 0.15
"""Largest distance of a new setting from the one it is drawn around, as a share of each axis."""
STORE_COUNTS = (1, 2, 4, 8)
POOL_STORE_COUNTS = (1, 2, 4)
REQUESTS_A_NODE = 25
MAP_SHAPES = ("agents", "flash", "rag", "chat")


@dataclass(frozen=True, slots=True)
class Axis:
    """A number between two others, on a linear or a logarithmic scale."""

    field: str
    low: float
    high: float
    log: bool
    whole: bool = False

    def at(self, share: float) -> float:
        """Return the value at a share of the axis."""
        if self.log:
            value = self.low * math.exp(share * math.log(self.high / self.low))
        else:
            value = self.low + (self.high - self.low) * share
        return round(value) if self.whole else round(value, 3)


MAP_AXES = (
    Axis("nodes", 4, 128, log=True, whole=True),
    Axis("reuse", 0.1, 1.0, log=False),
    Axis("link_gbit_s", 25, 400, log=True),
    Axis("load", 2, 16, log=True),
    Axis("pool_gb", 16, 1024, log=True),
)
CHOICES: dict[str, Sequence[Any]] = {"model": tuple(MODELS), "shape": MAP_SHAPES}
MapPlace = dict[str, float]
"""Share along each axis, 0 to 1; a choice is given by the layer that the share falls in."""


def hypercube(count: int, seed: int) -> list[MapPlace]:
    """Return `count` places, one in each layer of each axis."""
    draw = Random(seed)
    layers = {}
    for name in (*(axis.field for axis in MAP_AXES), *CHOICES):
        order = list(range(count))
        draw.shuffle(order)
        layers[name] = [(layer + draw.random()) / count for layer in order]
    return [{name: shares[at] for name, shares in layers.items()} for at in range(count)]


def around(place: MapPlace, count: int, seed: int) -> list[MapPlace]:
    """Return `count` places near `place`, with its model and traffic."""
    draw = Random(seed)
    names = [axis.field for axis in MAP_AXES]
    return [
        place | {name: min(1.0, max(0.0, place[name] + draw.uniform(-REACH, REACH))) for name in names}
        for _ in range(count)
    ]


def setting_at(place: MapPlace, centre: Setting, quick: bool) -> Setting:
    """Return the setting of a place."""
    values: dict[str, Any] = {axis.field: axis.at(place[axis.field]) for axis in MAP_AXES}
    for name, choices in CHOICES.items():
        values[name] = choices[min(len(choices) - 1, int(place[name] * len(choices)))]
    return replace(centre, requests=map_requests(int(values["nodes"]), centre, quick), **values)


def map_requests(nodes: int, centre: Setting, quick: bool) -> int:
    """Return the number of requests of each simulation of the map."""
    return centre.requests if quick else max(centre.requests // 2, REQUESTS_A_NODE * nodes)


def setting_points(setting: Setting, number: str) -> list[Point]:
    """Return everything that could be bought at a setting, and the bound."""
    bought = [(name, setting) for name in (*BASELINES, *LENT, BOUND)]
    bought += [("stores", replace(setting, stores=stores)) for stores in STORE_COUNTS]
    bought += [("switch", replace(setting, stores=stores)) for stores in POOL_STORE_COUNTS]
    return [Point(MAP, number, name, mine, system(name, mine)) for name, mine in bought]


class Verdict(Enum):
    """Verdict on the best purchase with a pool at one setting, against all that costs no more.

    The rule for "significantly" is the one of all purchases (rivals.py).
    """

    BEST = "significantly fastest"
    BEATEN = "significantly slower"
    """Every pool is significantly slower than some purchase."""
    SAME = "no different"
    """Neither; the whole interval of the lead lies within SAME_SHARE."""
    OPEN = "not decided"


@dataclass(frozen=True, slots=True)
class Verdicts:
    """Results at one setting."""

    number: str
    """Number of the setting in the map."""
    setting: Setting
    seeds: int
    lead: Interval
    """Lead of the best purchase with a pool over the fastest that costs no more: 0.02 is 2 % sooner."""
    tail: Interval
    """Lead in p99."""
    pool: Purchase
    rival: Purchase
    bought: Sequence[Purchase]
    """All purchases at the setting."""
    verdict: Verdict
    central_lead: Interval
    """Lead against storage nodes and recomputing only."""
    central_tail: Interval
    central_verdict: Verdict
    headroom: Interval
    """Share by which the bound is sooner than the fastest without a pool that moves blocks
    over the nodes' links.

    Its cost does not count. No pool of any design could lead that purchase by more.
    """
    headroom_tail: Interval
    """Headroom in p99."""
    fastest: str


def verdicts(points: Sequence[Point], samples: Sequence[Sample], path: tuple[str, str] = MEAN) -> Verdicts:
    """Return the verdicts of one setting from all its simulations, by the mean of whole runs
    or of second halves."""
    bought = [
        Purchase(point.system, point.setting.stores, sample)
        for point, sample in zip(points, samples, strict=True)
        if point.system != BOUND
    ]
    bound = next(sample for point, sample in zip(points, samples, strict=True) if point.system == BOUND)
    central = [one for one in bought if one.system in CENTRAL]
    over_links = [one for one in bought if not one.pooled and one.system != "cxl"]
    unswitched = min(over_links, key=lambda one: one.sample.mean(*path))
    pool, rival, lead = _nearest(bought, path)
    central_pool, central_rival, central_lead = _nearest(central, path)
    tail = (path[0], "p99")
    return Verdicts(
        str(points[0].value),
        points[0].setting,
        len(samples[0].runs),
        lead,
        1 - ratio(pool.sample, rival.sample, *tail),
        pool,
        rival,
        bought,
        _verdict(bought, lead, path),
        central_lead,
        1 - ratio(central_pool.sample, central_rival.sample, *tail),
        _verdict(central, central_lead, path),
        1 - ratio(bound, unswitched.sample, *path),
        1 - ratio(bound, unswitched.sample, *tail),
        min(bought, key=lambda one: one.sample.mean(*path)).label,
    )


def _verdict(bought: Sequence[Purchase], lead: Interval, path: tuple[str, str]) -> Verdict:
    pools = [one for one in bought if one.pooled]
    if any(leads(pool, bought, path) for pool in pools):
        return Verdict.BEST
    if lead.mean < 0 and all(faster_than(pool, bought, path) for pool in pools):
        return Verdict.BEATEN
    return Verdict.SAME if lead.within(SAME_SHARE) else Verdict.OPEN


def _nearest(bought: Sequence[Purchase], path: tuple[str, str]) -> tuple[Purchase, Purchase, Interval]:
    """Return the pool that leads by most or is behind by least, its strongest rival, and the lead.

    If some pools lead significantly, only those are considered.
    """
    pools = [one for one in bought if one.pooled]
    found = []
    for pool in [one for one in pools if leads(one, bought, path)] or pools:
        rival, *_ = not_more_expensive(pool, bought, path)
        found.append((pool, rival, 1 - ratio(pool.sample, rival.sample, *path)))
    return max(found, key=lambda one: one[2].mean)
