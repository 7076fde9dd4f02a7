"""Least-recently-used order of keys in which a use is cheap, for millions of uses."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Final, Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
SPARE_TURNS: Final = 1024
"""Number of outdated turns that are tolerated, beside three for each key, before they are removed."""


class Recency(Generic[Key]):
    """Keys in the order of their last use.

    A use appends a turn to a list; only a key's last turn counts. An `OrderedDict` touches more memory, which
    is most of the cost of a use if the processor's caches don't hold all keys.
    """

    def __init__(self) -> None:
        self._turns: list[Key] = []
        self._last: dict[Key, int] = {}
        """Index of each key's last turn."""
        self._first = 0
        """Index of the first turn that may count."""

    def use(self, key: Key) -> None:
        """Make a key the most recently used one, whether it is new or not."""
        self._last[key] = len(self._turns)
        self._turns.append(key)
        if len(self._turns) > 4 * len(self._last) + SPARE_TURNS:
            self._tidy()

    def used(self, key: Key) -> bool:
        """Return whether the key is there; if so, make it the most recently used one."""
        if key not in self._last:
            return False
        self.use(key)
        return True

    def remove(self, key: Key) -> None:
        """Remove a key that is there."""
        del self._last[key]

    def evict(self) -> Key:
        """Remove and return the least recently used key; there must be one."""
        turns, last, place = self._turns, self._last, self._first
        while last.get(turns[place], -1) != place:
            place += 1
        self._first = place + 1
        key = turns[place]
        del last[key]
        return key

    def keys(self) -> Iterable[Key]:
        """Return all keys, in any order."""
        return self._last

    def __contains__(self, key: object, /) -> bool:
        return key in self._last

    def __len__(self) -> int:
        return len(self._last)

    def _tidy(self) -> None:
        last = self._last
        self._turns = [key for place, key in enumerate(self._turns) if last.get(key, -1) == place]
        self._first = 0
        for place, key in enumerate(self._turns):
            last[key] = place
