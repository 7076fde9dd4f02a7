"""Purchases instead of a pool, and which of them lead at the pool's price."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from experiments.study.point import Point, label
from experiments.study.sample import MEAN, Sample, significantly_lower
from experiments.study.systems import BOUND, POOLS

Done = Sequence[tuple[Point, Sample]]


@dataclass(frozen=True, slots=True)
class Purchase:
    """A system that could be bought at one fan-in."""

    system: str
    stores: int
    sample: Sample
    variant: str = ""

    @property
    def label(self) -> str:
        """Return the label that readers see."""
        return label(self.system, self.stores, self.variant)

    @property
    def pooled(self) -> bool:
        """Return whether the switch has a pool or merges."""
        return self.system in POOLS


def purchases(done: Done, nodes: int) -> list[Purchase]:
    """Return all purchases at one fan-in."""
    return [
        Purchase(point.system, point.setting.stores, sample, point.variant)
        for point, sample in done
        if point.sweep == "rivals" and point.value == nodes and point.system != BOUND
    ]


def fan_ins(done: Done) -> list[int]:
    """Return the fan-ins at which rivals were simulated."""
    return sorted({point.value for point, _ in done if point.sweep == "rivals"})


def not_more_expensive(
    pool: Purchase, bought: Sequence[Purchase], path: Sequence[str] = MEAN
) -> list[Purchase]:
    """Return the purchases without a pool that cost no more than `pool`, the fastest first."""
    found = [one for one in bought if not one.pooled and one.sample.cost <= pool.sample.cost]
    return sorted(found, key=lambda rival: rival.sample.mean(*path))


def faster_than(pool: Purchase, bought: Sequence[Purchase], path: Sequence[str] = MEAN) -> list[Purchase]:
    """Return the purchases of not_more_expensive that are significantly faster than the pool."""
    rivals = not_more_expensive(pool, bought, path)
    return [one for one in rivals if significantly_lower(one.sample, pool.sample, *path)]


def leads(pool: Purchase, bought: Sequence[Purchase], path: Sequence[str] = MEAN) -> bool:
    """Return whether the pool is significantly faster than every purchase of not_more_expensive."""
    rivals = not_more_expensive(pool, bought, path)
    return bool(rivals) and all(significantly_lower(pool.sample, rival.sample, *path) for rival in rivals)
