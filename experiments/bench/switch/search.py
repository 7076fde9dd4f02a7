"""The highest rate at which nothing is lost, from as few runs of the generator as will do."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

RESOLUTION: Final = 1.03
"""The search ends when the rate found and the lowest one refused are this close."""
_STEP: Final = 1.2
_LEAST_PER_S: Final = 100
_MOST_TRIALS: Final = 24


def highest_lossless(passes: Callable[[int], bool], guess_per_s: int, most_per_s: int) -> int:
    """Return the highest rate that passes, 0 for none; `passes` is asked for rates up to `most_per_s`.

    First in growing steps away from the guess until one passes and one does not, then by halving the distance
    (of the logarithms).
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
