"""Reads blocks of a storage node from SSD into DRAM, one after the other: those asked for before those ahead.

A read takes the time of the modelled device, which reads `bytes_per_s` (0: at once), whatever the machine's
own takes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from hostlib.errors import UnreadableError

if TYPE_CHECKING:
    from hostlib.block import Place
    from hostlib.store import BlockStore

MAX_AHEAD = 1024
"""Blocks that wait to be read ahead; more are not."""


class SsdReader:
    """See the module; `on_read` is told of each block that was asked for when it is in DRAM, or can't be
    read."""

    def __init__(
        self, store: BlockStore, bytes_per_s: float, on_read: Callable[[Place, UnreadableError | None], None]
    ) -> None:
        self._store, self._bytes_per_s, self._on_read = store, bytes_per_s, on_read
        self._asked: dict[Place, int] = {}
        """With their lengths."""
        self._asked_bytes = 0
        self._ahead: dict[Place, None] = {}
        self._timer: asyncio.TimerHandle | None = None
        """Of the read that goes on."""

    def wait_s(self) -> float:
        """For a block that is asked for now."""
        return self._read_s(self._asked_bytes)

    def ask(self, place: Place) -> None:
        """Someone waits for the block."""
        if place not in self._asked:
            length = self._asked[place] = self._store.ssd_length(place)
            self._asked_bytes += length
        self._start()

    def read_ahead(self, places: Iterable[Place]) -> None:
        """Someone is going to ask for these."""
        for place in places:
            if len(self._ahead) >= MAX_AHEAD:
                break
            if place not in self._asked and self._store.on_ssd_only(place):
                self._ahead[place] = None
        self._start()

    def close(self) -> None:
        """Read nothing any more."""
        if self._timer is not None:
            self._timer.cancel()

    def _read_s(self, length: int) -> float:
        return length / self._bytes_per_s if self._bytes_per_s else 0.0

    def _start(self) -> None:
        if self._timer is not None:
            return
        place = next(iter(self._asked), None) or next(iter(self._ahead), None)
        if place is not None:
            length = self._asked.get(place) or self._store.ssd_length(place)
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._read_s(length), self._finish, place)

    def _finish(self, place: Place) -> None:
        self._timer = None
        self._ahead.pop(place, None)
        asked = place in self._asked  # perhaps only since the read began
        if asked:
            self._asked_bytes -= self._asked.pop(place)
        error = None
        try:
            self._store.read_from_ssd(place, ahead=not asked)
        except UnreadableError as reason:
            error = reason
        if asked:
            self._on_read(place, error)
        self._start()
