"""A bounded memory of block keys."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence


class KeyMemory:
    """A set of keys that forgets those that were added first."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._keys: OrderedDict[bytes, None] = OrderedDict()
        """In a plain dict, finding the oldest key takes as long as keys were taken out before it."""

    def __contains__(self, key: bytes) -> bool:
        return key in self._keys

    def __len__(self) -> int:
        return len(self._keys)

    def add(self, keys: Iterable[bytes]) -> None:
        """Remember these keys, and forget the oldest ones above the limit."""
        for key in keys:
            self._keys.pop(key, None)
            self._keys[key] = None
        while len(self._keys) > self._limit:
            self._keys.popitem(last=False)

    def discard(self, keys: Iterable[bytes]) -> None:
        """Forget these keys."""
        for key in keys:
            self._keys.pop(key, None)

    def clear(self) -> None:
        """Forget all."""
        self._keys.clear()

    def missing(self, keys: Sequence[bytes], first: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield the bounds of the runs of keys in `range(first, end)` that are not remembered."""
        number = first
        while number < end:
            if keys[number] in self._keys:
                number += 1
                continue
            start = number
            while number < end and keys[number] not in self._keys:
                number += 1
            yield start, number
