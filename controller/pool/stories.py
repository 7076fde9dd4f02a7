"""What a pool did with each block, for who looks at a run: how often it was wanted, when it came and went."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from heapq import nlargest
from typing import Final

MOST_BLOCKS: Final = 16_384
"""That stories are kept of; when there are more, the half that was wanted least is forgotten."""
MOST_TURNS: Final = 16
"""Of a story, the last ones."""


@dataclass(slots=True)
class Story:
    """Of one block."""

    depth: int = 0
    reported: int = 0
    """Requests for it that missed the pool, as far as the switch reported them, or nodes computed it."""
    hits: int = 0
    """Requests that the pool served."""
    turns: deque[tuple[float, str]] = field(default_factory=lambda: deque(maxlen=MOST_TURNS))
    """(when, "admitted" or "evicted"), in seconds of the pool's clock."""

    @property
    def wanted(self) -> int:
        """Requests for it, in the pool or not."""
        return self.reported + self.hits


class Stories:
    """By block, bounded."""

    def __init__(self) -> None:
        self._stories: dict[bytes, Story] = {}

    def reported(self, block: bytes, depth: int, times: int) -> None:
        """The switch reported misses, or a node computes it."""
        story = self._of(block)
        story.depth = depth
        story.reported += times

    def hit(self, block: bytes, times: int) -> None:
        """The pool served it."""
        self._of(block).hits += times

    def turned(self, block: bytes, now_s: float, turn: str) -> None:
        """It was admitted or evicted."""
        self._of(block).turns.append((now_s, turn))

    def hottest(self, count: int) -> list[tuple[bytes, Story]]:
        """The blocks that were wanted most, first those."""
        return nlargest(count, self._stories.items(), key=lambda item: item[1].wanted)

    def _of(self, block: bytes) -> Story:
        story = self._stories.get(block)
        if story is None:
            if len(self._stories) >= MOST_BLOCKS:
                self._stories = dict(self.hottest(MOST_BLOCKS // 2))
            story = self._stories[block] = Story()
        return story
