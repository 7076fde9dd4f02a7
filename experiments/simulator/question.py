"""What a request asks before it fetches: whether the blocks that it misses are there."""

from __future__ import annotations

from collections.abc import Callable


class Question:
    """Answered when all blocks are known, or those up to the first that nobody holds."""

    __slots__ = ("_answered", "_held", "_known", "length")

    def __init__(self, length: int, answered: Callable[[], None]) -> None:
        self.length = length
        """The chain as far as it may be there."""
        self._held: set[int] = set()
        """Places that somebody holds."""
        self._known = 0
        """Blocks from the first on."""
        self._answered = answered

    def told(self, place: int, held: bool) -> None:
        """Of one block."""
        if self._known >= self.length:
            return
        if held:
            self._held.add(place)
        else:
            self.length = min(self.length, place)
        while self._known in self._held:
            self._known += 1
        if self._known >= self.length:
            self._answered()
