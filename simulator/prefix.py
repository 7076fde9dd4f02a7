"""How much of a chain can be had, as it becomes known block by block: by fetching it, or by asking first."""

from __future__ import annotations

from collections.abc import Callable


class Prefix:
    """The longest available prefix of a chain; `finished` gets where each of its blocks is from, once."""

    def __init__(self, length: int, finished: Callable[[list[str]], None]) -> None:
        self.sources: dict[int, str] = {}
        """Where each block is from, by place: "pool" or "remote"."""
        self.length = length
        """The chain as far as it can still be had."""
        self.ended = False
        self._whole = 0
        """Blocks from the first on that are known."""
        self._finished = finished

    def arrived(self, place: int, source: str) -> None:
        """Note that a block is there."""
        self.sources[place] = source
        self.check()

    def ends(self, place: int) -> None:
        """Note that nobody has the block."""
        self.length = min(self.length, place)
        self.check()

    def check(self) -> None:
        """Report once everything that can be had is known."""
        while self._whole < self.length and self._whole in self.sources:
            self._whole += 1
        if not self.ended and self._whole >= self.length:
            self.ended = True
            self._finished([self.sources[place] for place in range(self.length)])
