"""Least recently used first: an order of keys in which a use costs little, for millions of uses."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Final, Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
SPARE_TURNS: Final = 1024
"""Turns that no longer count are removed once there are three times as many as keys, and these."""


class Recency(Generic[Key]):
    """Keys in the order of their last use.

    A use is another turn at the end of a list, of which a key's last one counts. An `OrderedDict` has more
    to touch, which is most of what a use costs where the processor's caches don't hold all keys.
    """

    def __init__(self) -> None:
        self._turns: list[Key] = []
        self._last: dict[Key, int] = {}
        """By key the place of its last turn."""
        self._first = 0
        """Place of the first turn that may count."""

    def use(self, key: Key) -> None:
        """It came, or was used: it leaves last."""
        self._last[key] = len(self._turns)
        self._turns.append(key)
        if len(self._turns) > 4 * len(self._last) + SPARE_TURNS:
            self._tidy()

    def used(self, key: Key) -> bool:
        """Return whether it is there; it was used then."""
        if key not in self._last:
            return False
        self.use(key)
        return True

    def remove(self, key: Key) -> None:
        """Take out a block that is there."""
        del self._last[key]

    def evict(self) -> Key:
        """Remove the key that was used longest ago, and return it; there is one."""
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
