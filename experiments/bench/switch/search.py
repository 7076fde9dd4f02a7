"""Search for the highest rate without loss, with few runs of the generator."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

RESOLUTION: Final = 1.03
"""Ratio of the lowest rate that failed to the highest that passed, at which the search ends."""
_STEP: Final = 1.2
_LEAST_PER_S: Final = 100
_MOST_TRIALS: Final = 24


def highest_lossless(passes: Callable[[int], bool], guess_per_s: int, most_per_s: int) -> int:
    """Return the highest rate that passes, or 0 if none does; rates up to `most_per_s` are tried.

    The search goes away from the guess in growing steps until one rate has passed and one has failed. Then it
    halves the interval between the two, on a logarithmic scale.
    """
    low, high = 0, 0
    step = _STEP
    rate = max(_LEAST_PER_S, min(guess_per_s, most_per_s))
    for _ in range(_MOST_TRIALS):
        if passes(rate):
            low = rate
        else:
            high = rate
        if low == most_per_s or high == _LEAST_PER_S or (low and high and high <= low * RESOLUTION):
            break
        if low and high:
            rate = round(math.sqrt(low * high))
        else:
            rate = max(_LEAST_PER_S, min(most_per_s, round(low * step or high / step)))
            step *= step
    return low
