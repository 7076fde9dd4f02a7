"""The highest rate at which nothing is lost, from as few runs of the generator as will do."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

RESOLUTION: Final = 1.03
"""The search ends when the rate found and the lowest one refused are this close."""
_STEP: Final = 1.3
_LEAST_PER_S: Final = 100
_MOST_STEPS: Final = 24


def highest_lossless(passes: Callable[[int], bool], guess_per_s: int, most_per_s: int) -> int:
    """The highest rate that passes, 0 for none; `passes` is asked for rates up to `most_per_s`.

    First in steps away from the guess until one passes and one does not, then by halving (of the logarithm).
    """
    low, high = 0, 0
    rate = max(_LEAST_PER_S, min(guess_per_s, most_per_s))
    for _ in range(_MOST_STEPS):
        if passes(rate):
            low = rate
            if low == most_per_s:
                break
        else:
            high = rate
        if high and low and high <= low * RESOLUTION:
            break
        rate = _next_rate(low, high, most_per_s)
        if rate < _LEAST_PER_S:
            break
    return low


def _next_rate(low: int, high: int, most_per_s: int) -> int:
    if not high:
        return min(most_per_s, round(low * _STEP))
    if not low:
        return round(high / _STEP)
    return round(math.sqrt(low * high))
