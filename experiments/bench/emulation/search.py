"""Search for the smallest sigma, and so the largest load, at which a machine keeps up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

Measured = TypeVar("Measured")

STEP = 2**0.5
"""Ratio of neighbouring sigmas: the load found is the largest to within this factor."""


class SearchError(Exception):
    """The machine keeps up at no sigma."""


class SigmaSearch(Generic[Measured]):
    """Search that tries sigmas until one that keeps up is next to one that does not, or time is up."""

    def __init__(
        self,
        play: Callable[[float], Measured],
        kept_up: Callable[[Measured], bool],
        least: float,
        most: float,
        in_time: Callable[[], bool] = lambda: True,
    ) -> None:
        """Search from `least` to `most`. Once a sigma keeps up, go on only while `in_time()` is true."""
        self._play, self._kept_up, self._in_time = play, kept_up, in_time
        self._least, self._most = least, most
        self.tried: dict[float, Measured] = {}

    def run(self, first: float) -> tuple[float, Measured]:
        """Begin at sigma `first`; return the sigma that was found and its figures. Raises SearchError."""
        good: float | None = None
        bad = 0.0
        sigma = first
        while True:
            if self._try(sigma):
                good = sigma
                following = max(self._least, good / STEP)
            else:
                bad = sigma
                if bad >= self._most:
                    raise SearchError(f"the machine does not keep up at a sigma of {bad:g} either")
                # A run that fails tells little of how far a sigma is that keeps up: larger steps.
                following = good or min(self._most, bad * STEP**2)
            at_boundary = following in self.tried or following <= bad * (STEP + 1) / 2
            if good is not None and (at_boundary or not self._in_time()):
                return good, self.tried[good]
            sigma = following

    def _try(self, sigma: float) -> bool:
        self.tried[sigma] = self._play(sigma)
        return self._kept_up(self.tried[sigma])
