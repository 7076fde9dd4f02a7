"""First in, first out."""

from __future__ import annotations

from collections.abc import Iterator

from controller.policies.base import QueuePolicy
from controller.policies.events import Key


class Fifo(QueuePolicy):
    """Evicts the block that was admitted first."""

    name = "fifo"

    def __init__(self, capacity_blocks: int, capacity_slots: int | None = None) -> None:
        super().__init__(capacity_blocks, capacity_slots)
        self._queue: dict[Key, None] = {}

    def __contains__(self, key: object) -> bool:
        return key in self._queue

    def __len__(self) -> int:
        return len(self._queue)

    def __iter__(self) -> Iterator[Key]:
        return iter(self._queue)

    def _add(self, key: Key, count: int) -> None:
        self._queue[key] = None

    def _touch(self, key: Key, count: int) -> None:
        pass

    def _remove(self, key: Key) -> None:
        del self._queue[key]

    def _victims(self) -> Iterator[Key]:
        return iter(self._queue)
