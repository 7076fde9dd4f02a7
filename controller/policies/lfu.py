"""Least frequently used, the least recently used first among equals."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from heapq import heappop, heappush

from controller.policies.base import QueuePolicy
from controller.policies.events import Key


class Lfu(QueuePolicy):
    """Evicts the block that was asked for least often since it was admitted."""

    name = "lfu"

    def __init__(self, capacity_blocks: int, capacity_slots: int | None = None) -> None:
        super().__init__(capacity_blocks, capacity_slots)
        self._counts: dict[Key, int] = {}
        self._queues: dict[int, OrderedDict[Key, None]] = {}
        self._ranks: list[int] = []
        """A heap of the counts that have a queue."""

    def __contains__(self, key: object) -> bool:
        return key in self._counts

    def __len__(self) -> int:
        return len(self._counts)

    def __iter__(self) -> Iterator[Key]:
        return iter(self._counts)

    def _add(self, key: Key, count: int) -> None:
        if count not in self._queues:
            self._queues[count] = OrderedDict()
            heappush(self._ranks, count)
        self._counts[key] = count
        self._queues[count][key] = None

    def _touch(self, key: Key, count: int) -> None:
        total = self._counts[key] + count
        self._remove(key)
        self._add(key, total)

    def _remove(self, key: Key) -> None:
        del self._queues[self._counts.pop(key)][key]
        while self._ranks and not self._queues[self._ranks[0]]:
            del self._queues[heappop(self._ranks)]

    def _victims(self) -> Iterator[Key]:
        for rank in sorted(self._ranks):
            yield from self._queues[rank]
