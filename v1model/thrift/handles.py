"""BMv2's handles of a table's entries, which P4Runtime and the data plane identify by their keys."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

from v1model.thrift.calls import ThriftError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from v1model.dataplane import Matches, TableEntry

INVALID_HANDLE = 2


class Handles:
    """Handles of one table: numbers from 0; a new one is the smallest free one."""

    def __init__(self) -> None:
        self._keys: dict[int, tuple[Matches, int]] = {}
        self._numbers: dict[tuple[Matches, int], int] = {}
        self._free: list[int] = []

    def __contains__(self, handle: object) -> bool:
        return handle in self._keys

    def of(self, entry: TableEntry) -> int:
        """Return the entry's handle, a new one if it has none."""
        key = (entry.matches, entry.priority)
        if key not in self._numbers:
            handle = heapq.heappop(self._free) if self._free else len(self._keys)
            self._keys[handle], self._numbers[key] = key, handle
        return self._numbers[key]

    def key(self, handle: int) -> tuple[Matches, int]:
        """Return matches and priority of the entry with this handle; raises ThriftError."""
        if handle not in self._keys:
            raise ThriftError(INVALID_HANDLE, f"no entry has handle {handle}")
        return self._keys[handle]

    def release(self, handle: int) -> None:
        """Forget a deleted entry."""
        if handle in self._keys:
            del self._numbers[self._keys.pop(handle)]
            heapq.heappush(self._free, handle)

    def synchronise(self, entries: Iterable[TableEntry]) -> None:
        """Forget entries that are gone, and give handles to those that others have added."""
        entries = list(entries)
        there = {(entry.matches, entry.priority) for entry in entries}
        for key in [key for key in self._numbers if key not in there]:
            self.release(self._numbers[key])
        for entry in entries:
            self.of(entry)
