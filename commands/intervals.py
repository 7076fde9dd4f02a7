"""Means of repeated measurements with their confidence intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, sqrt
from statistics import mean, stdev

_T_975 = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
"""Student's t, two-sided 95 %, for 1 to 30 degrees of freedom; beyond 30 the last makes intervals a little
too wide.
"""


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean, and the 95 % confidence interval around it."""

    mean: float
    low: float
    high: float

    @property
    def half(self) -> float:
        """Return half of the interval's width."""
        return (self.high - self.low) / 2

    def __format__(self, spec: str) -> str:
        """Return `mean ± half`, both formatted by `spec`; one measurement has no half.

        Only the mean has the sign, and never that of -0.
        """
        if not spec:
            return str(self)
        sign, unsigned = spec[: spec.startswith("+")], spec.removeprefix("+")
        half = f" ± {format(self.half, unsigned)}" if isfinite(self.half) else ""
        return format(self.mean, f"{sign}z{unsigned}") + half

    def __rmul__(self, factor: float) -> Interval:
        """Return the interval in another unit; `factor` is positive."""
        return Interval(factor * self.mean, factor * self.low, factor * self.high)

    def __sub__(self, less: float) -> Interval:
        """Return the interval minus a number: `ratio - 1` is a relative increase."""
        return Interval(self.mean - less, self.low - less, self.high - less)

    def __rsub__(self, minuend: float) -> Interval:
        """Return a number minus the interval: `1 - ratio` is a relative decrease."""
        return Interval(minuend - self.mean, minuend - self.high, minuend - self.low)

    def within(self, limit: float) -> bool:
        """Return whether the whole interval lies between -limit and limit."""
        return -limit <= self.low and self.high <= limit


def mean_interval(values: Sequence[float]) -> Interval:
    """Return the mean of independent, roughly normal values with its interval by Student's t.

    One value has no finite interval.
    """
    middle = mean(values)
    if len(values) < 2:
        return Interval(middle, float("-inf"), float("inf"))
    half = _T_975[min(len(values) - 1, len(_T_975)) - 1] * stdev(values) / sqrt(len(values))
    return Interval(middle, middle - half, middle + half)


def ratio_interval(pairs: Sequence[tuple[float, float]]) -> Interval:
    """Return the ratio of the sum of the firsts to the sum of the seconds; 1 if all seconds are 0.

    The interval is by linearisation (Cochran, Sampling Techniques, 1977, 6.4), so larger pairs weigh more.
    """
    if not any(other for _, other in pairs):
        return mean_interval([1.0] * len(pairs))
    ratio = sum(one for one, _ in pairs) / sum(other for _, other in pairs)
    mean_other = mean(other for _, other in pairs)
    return mean_interval([ratio + (one - ratio * other) / mean_other for one, other in pairs])
