"""Purchases instead of a pool, and which of them lead at the pool's price."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from experiments.study.point import Point, label
from experiments.study.sample import MEAN, Sample, below
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


def no_dearer(pool: Purchase, bought: Sequence[Purchase], path: Sequence[str] = MEAN) -> list[Purchase]:
    """Return the purchases without a pool that cost no more than `pool`, the fastest first."""
    found = [one for one in bought if not one.pooled and one.sample.cost <= pool.sample.cost]
    return sorted(found, key=lambda rival: rival.sample.mean(*path))


def beating(pool: Purchase, bought: Sequence[Purchase], path: Sequence[str] = MEAN) -> list[Purchase]:
    """Return the purchases of no_dearer that are significantly faster than the pool."""
    return [one for one in no_dearer(pool, bought, path) if below(one.sample, pool.sample, *path)]


def led(pool: Purchase, bought: Sequence[Purchase], path: Sequence[str] = MEAN) -> Purchase | None:
    """Return the fastest purchase of no_dearer, if the pool is significantly faster than each of them."""
    rivals = no_dearer(pool, bought, path)
    surely = all(below(pool.sample, rival.sample, *path) for rival in rivals)
    return rivals[0] if rivals and surely else None
