"""References of a point, seed by seed: recomputing, and the same system with a switch that only forwards."""

from __future__ import annotations

from collections.abc import Sequence

from commands.intervals import Interval
from experiments.study.point import Point
from experiments.study.sample import Sample, ratio
from experiments.study.systems import WITHOUT


class References:
    """Points that the others at one place are compared with."""

    def __init__(self, done: Sequence[tuple[Point, Sample]]) -> None:
        self._exact = {self._key(point, point.system): sample for point, sample in done}
        self._nothing = {
            (point.sweep, point.place, point.variant): sample
            for point, sample in done
            if point.system == "recompute"
        }

    def recomputing(self, point: Point) -> Sample | None:
        """Return recomputing at the same place: the one without a variant if there is one, else
        with the point's variant.

        So another scheduler is compared with buying nothing, and an engine with itself.
        """
        place = point.sweep, point.place
        return self._nothing.get((*place, "")) or self._nothing.get((*place, point.variant))

    def without(self, point: Point) -> Sample | None:
        """Return the same system with a switch that only forwards."""
        return self._exact.get(self._key(point, WITHOUT.get(point.system, "")))

    @staticmethod
    def _key(point: Point, system: str) -> tuple[str, str, str, int, str]:
        return point.sweep, point.place, system, point.setting.stores, point.variant


def over(sample: Sample, other: Sample | None, *path: str) -> Interval | None:
    """Return a figure over another sample's, or None if that is missing or has another number of seeds."""
    if other is None or len(other.runs) != len(sample.runs):
        return None
    return ratio(sample, other, *path)
