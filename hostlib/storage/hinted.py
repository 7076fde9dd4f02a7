"""Hints at a storage node (`hostlib.protocol.hints`): it retains blocks for a time, reads them from the SSD
before they are asked for, or lets them leave first."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from hostlib.protocol.block import Place
from hostlib.protocol.hints import Hint

if TYPE_CHECKING:
    from hostlib.protocol.wire import Message
    from hostlib.storage.ssd_reader import SsdReader
    from hostlib.storage.store import BlockStore


class HintedBlocks:
    """See the module. What is retained is known to this process alone, and forgotten when it ends."""

    def __init__(self, store: BlockStore, reader: SsdReader) -> None:
        self._store, self._reader = store, reader
        self._ends: dict[Place, asyncio.TimerHandle] = {}
        """When each retained block may leave again."""
        store.on_released = self._cancel

    def take(self, message: Message) -> bool:
        """Carry out the hint of a message about a block that is here; whether that is done."""
        place, hint, seconds = Place(message.tenant, message.key), message.backlog_ms, message.recompute_ms
        if hint == Hint.RETAIN:
            return self._retain(place, seconds)
        if hint == Hint.PREFETCH:
            self._reader.read_ahead([place])
            return True
        if hint == Hint.DEMOTE:
            return self._store.demote(place)
        return False

    def close(self) -> None:
        """Forget all."""
        for end in self._ends.values():
            end.cancel()
        self._ends.clear()

    def _retain(self, place: Place, seconds: int) -> bool:
        if not seconds:
            self._store.release(place)
            return True
        if not self._store.retain(place):
            return False
        self._cancel(place)
        self._ends[place] = asyncio.get_running_loop().call_later(seconds, self._store.release, place)
        return True

    def _cancel(self, place: Place) -> None:
        end = self._ends.pop(place, None)
        if end is not None:
            end.cancel()
