"""Available prefix of a chain, which becomes known block by block, by fetching or by asking first."""

from __future__ import annotations

from collections.abc import Callable


class Prefix:
    """Longest available prefix of a chain; `finished` is called once, with the source of each of its
    blocks."""

    def __init__(self, length: int, finished: Callable[[list[str]], None]) -> None:
        self.sources: dict[int, str] = {}
        """Source of each block by its index: "pool" or "remote"."""
        self.length = length
        """Number of blocks that may still be available."""
        self.ended = False
        self._whole = 0
        """Number of blocks from the first on that are known."""
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
        """Report once all available blocks are known."""
        while self._whole < self.length and self._whole in self.sources:
            self._whole += 1
        if not self.ended and self._whole >= self.length:
            self.ended = True
            self._finished([self.sources[place] for place in range(self.length)])
