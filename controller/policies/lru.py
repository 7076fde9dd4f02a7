"""Least recently used."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator

from controller.policies.base import QueuePolicy
from controller.policies.events import Key


class Lru(QueuePolicy):
    """Evicts the block that was asked for longest ago."""

    name = "lru"

    def __init__(self, capacity_blocks: int, capacity_slots: int | None = None) -> None:
        super().__init__(capacity_blocks, capacity_slots)
        self._queue: OrderedDict[Key, None] = OrderedDict()

    def __contains__(self, key: object) -> bool:
        return key in self._queue

    def __len__(self) -> int:
        return len(self._queue)

    def __iter__(self) -> Iterator[Key]:
        return iter(self._queue)

    def _add(self, key: Key, count: int) -> None:
        self._queue[key] = None

    def _touch(self, key: Key, count: int) -> None:
        self._queue.move_to_end(key)

    def _remove(self, key: Key) -> None:
        del self._queue[key]

    def _victims(self) -> Iterator[Key]:
        return iter(self._queue)
