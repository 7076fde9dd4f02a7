"""Orders in which blocks leave a tier: least recently used, or least worth."""

from __future__ import annotations

import heapq
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Generic, TypeVar

from workload.recency import Recency

Key = TypeVar("Key", bound=Hashable)
REMEMBERED_BLOCKS = 20_000
"""Blocks that left a node and whose uses it still knows."""


class EvictionOrder(Generic[Key]):
    """Order in which a tier's blocks leave.

    It is a class and no `Protocol`, so that compiled callers call its methods as C functions.
    """

    def touch(self, key: Key) -> None:
        """Note that `key` came into the tier, or was used in it."""
        raise NotImplementedError

    def used(self, key: Key) -> bool:
        """Return whether `key` is in the tier; it was used then."""
        raise NotImplementedError

    def remove(self, key: Key) -> None:
        """Note that `key`, which was in the tier, left it."""
        raise NotImplementedError

    def evict(self) -> Key:
        """Remove the block that leaves the tier, which is not empty, and return it."""
        raise NotImplementedError

    def keys(self) -> Iterable[Key]:
        """Return all blocks in the tier."""
        raise NotImplementedError

    def __contains__(self, key: object, /) -> bool:
        raise NotImplementedError

    def __len__(self) -> int:
        raise NotImplementedError


class LruOrder(EvictionOrder[Key]):
    """The least recently used block leaves."""

    def __init__(self) -> None:
        self._order: Recency[Key] = Recency()

    def touch(self, key: Key) -> None:
        """Note that `key` came into the tier, or was used in it."""
        self._order.use(key)

    def used(self, key: Key) -> bool:
        """Return whether `key` is in the tier; it was used then."""
        return self._order.used(key)

    def remove(self, key: Key) -> None:
        """Note that `key`, which was in the tier, left it."""
        self._order.remove(key)

    def evict(self) -> Key:
        """Remove the block that leaves the tier, which is not empty, and return it."""
        return self._order.evict()

    def keys(self) -> Iterable[Key]:
        """Return all blocks in the tier."""
        return self._order.keys()

    def __contains__(self, key: object, /) -> bool:
        return key in self._order

    def __len__(self) -> int:
        return len(self._order)


class BlockValues(Generic[Key]):
    """Worth of blocks to a node, in seconds of prefill: value = floor + uses * recompute_s(depth).

    GreedyDual with frequencies (Cherkasova, HPL-98-69R1), for blocks of one size whose cost is the time to
    compute them. The floor is the value of the block that left last, so worth fades while a block is not
    used. A block is worth at least as much as those behind it, which are of no use without it.
    """

    def __init__(self, recompute_s: Callable[[int], float]) -> None:
        self._recompute_s = recompute_s
        self._floor = 0.0
        self._uses: OrderedDict[Key, int] = OrderedDict()
        """Of blocks that are held; of the others the most recently dropped."""
        self._values: dict[Key, float] = {}

    def of(self, key: Key) -> float:
        """Return the value of a block that nobody used yet: as much as a first block used once."""
        value = self._values.get(key)
        if value is None:
            value = self._values[key] = self._floor + self._recompute_s(0)
        return value

    def used(self, chain: Sequence[Key]) -> None:
        """Record that a request used this chain."""
        value = 0.0
        for depth in range(len(chain) - 1, -1, -1):
            key = chain[depth]
            uses = self._uses[key] = self._uses.get(key, 0) + 1
            value = max(value, self._floor + uses * self._recompute_s(depth))
            self._values[key] = value

    def dropped(self, key: Key) -> None:
        """Note that no tier of the node holds the block any more; its uses are remembered for a while."""
        self._floor = max(self._floor, self._values.pop(key))
        if key in self._uses:
            self._uses.move_to_end(key)
        while len(self._uses) - len(self._values) > REMEMBERED_BLOCKS:
            self._forget_oldest()

    def _forget_oldest(self) -> None:
        oldest = next(iter(self._uses))
        if oldest in self._values:
            self._uses.move_to_end(oldest)
        else:
            del self._uses[oldest]


class ValueOrder(EvictionOrder[Key]):
    """The block that is worth least leaves; of equals the one touched first."""

    def __init__(self, values: BlockValues[Key]) -> None:
        self._values = values
        self._touched: dict[Key, tuple[float, int]] = {}
        """The value when it was touched and the number of that touch."""
        self._heap: list[tuple[float, int, Key]] = []
        """With entries that no longer hold."""
        self._touches = 0

    def touch(self, key: Key) -> None:
        """Note that `key` came into the tier, or was used in it."""
        self._touches += 1
        value, touched = self._values.of(key), self._touches
        self._touched[key] = value, touched
        heapq.heappush(self._heap, (value, touched, key))
        if len(self._heap) > 4 * len(self._touched) + 64:
            self._heap = [(*entry, held) for held, entry in self._touched.items()]
            heapq.heapify(self._heap)

    def used(self, key: Key) -> bool:
        """Return whether `key` is in the tier; it was used then."""
        if key not in self._touched:
            return False
        self.touch(key)
        return True

    def remove(self, key: Key) -> None:
        """Note that `key`, which was in the tier, left it."""
        del self._touched[key]

    def evict(self) -> Key:
        """Remove the block that leaves the tier, which is not empty, and return it."""
        while True:
            value, touched, key = heapq.heappop(self._heap)
            if self._touched.get(key) == (value, touched):
                del self._touched[key]
                return key

    def keys(self) -> Iterable[Key]:
        """Return all blocks in the tier."""
        return self._touched

    def __contains__(self, key: object, /) -> bool:
        return key in self._touched

    def __len__(self) -> int:
        return len(self._touched)
