"""What a pool did last, and which of its blocks are asked for most, for those who watch."""

from __future__ import annotations

from collections import deque
from heapq import nlargest
from typing import Any, Final, NamedTuple

from controller.block_id import key_of

MOST_DECISIONS: Final = 16
"""Remembered between two reports."""
MOST_HOT: Final = 5
KEY_DIGITS: Final = 8
"""Of a key in hexadecimal: enough to tell blocks apart on a screen."""


class Decided(NamedTuple):
    """An entry that came or went."""

    number: int
    """Of all that this pool decided, from 1."""
    what: str
    """"admitted" or "evicted"."""
    key: str
    depth: int
    """Blocks before it in its prefix."""
    hits: int
    """Since it was admitted."""


class Spotlight:
    """Written by the thread of a pool, read by another."""

    def __init__(self) -> None:
        self._hits: dict[bytes, tuple[int, int]] = {}
        """Of resident blocks: (depth, hits)."""
        self._decisions: deque[Decided] = deque(maxlen=MOST_DECISIONS)
        self._decided = 0
        self._changes = self._seen_changes = 0
        """Of the hits, and how many of them `_hottest` knows."""
        self._hottest: list[dict[str, Any]] = []

    def admitted(self, key: bytes, depth: int) -> None:
        """A block got its entry."""
        self._hits[key] = depth, 0
        self._note("admitted", key, depth, 0)

    def hit(self, key: bytes, times: int) -> None:
        """A resident block was asked for."""
        depth, hits = self._hits.get(key, (0, 0))
        self._hits[key] = depth, hits + times
        self._changes += 1

    def evicted(self, key: bytes) -> None:
        """A block lost its entry."""
        depth, hits = self._hits.pop(key, (0, 0))
        self._changes += hits > 0
        self._note("evicted", key, depth, hits)

    def clear(self) -> None:
        """Nothing is known of what the pool holds."""
        self._hits.clear()
        self._changes += 1

    @property
    def decisions(self) -> list[dict[str, Any]]:
        """The last of them, oldest first; numbers tell which are new."""
        return [decided._asdict() for decided in tuple(self._decisions)]

    @property
    def hottest(self) -> list[dict[str, Any]]:
        """Resident blocks with most hits since they came; each stands for the prefix that it ends."""
        if (changes := self._changes) != self._seen_changes:
            self._seen_changes = changes  # what changes meanwhile is seen next time
            hot = nlargest(MOST_HOT, tuple(self._hits.items()), key=lambda item: item[1][1])
            self._hottest = [
                {"key": _shown(key), "depth": depth, "hits": hits} for key, (depth, hits) in hot if hits
            ]
        return self._hottest

    def _note(self, what: str, key: bytes, depth: int, hits: int) -> None:
        self._decided += 1
        self._decisions.append(Decided(self._decided, what, _shown(key), depth, hits))


def _shown(key: bytes) -> str:
    return key_of(key).hex()[:KEY_DIGITS]
