"""Reads blocks of a storage node from SSD into DRAM, one after the other: those asked for before those ahead.

A read takes `read_s`, the time of the modelled device, whatever the machine's own takes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hostlib.store import BlockStore

MAX_AHEAD = 1024
"""Blocks that wait to be read ahead; more are not."""


class SsdReader:
    """See the module; `on_read` is told of each block that was asked for when it is in DRAM."""

    def __init__(self, store: BlockStore, read_s: float, on_read: Callable[[bytes], None]) -> None:
        self._store, self._read_s, self._on_read = store, read_s, on_read
        self._asked: dict[bytes, None] = {}
        self._ahead: dict[bytes, None] = {}
        self._timer: asyncio.TimerHandle | None = None
        """Of the read that goes on."""

    def wait_s(self) -> float:
        """For a block that is asked for now."""
        return len(self._asked) * self._read_s

    def ask(self, key: bytes) -> None:
        """Someone waits for the block."""
        self._asked[key] = None
        self._start()

    def read_ahead(self, keys: Iterable[bytes]) -> None:
        """Someone is going to ask for these."""
        for key in keys:
            if len(self._ahead) >= MAX_AHEAD:
                break
            if key not in self._asked and self._store.on_ssd_only(key):
                self._ahead[key] = None
        self._start()

    def close(self) -> None:
        """Read nothing any more."""
        if self._timer is not None:
            self._timer.cancel()

    def _start(self) -> None:
        if self._timer is not None:
            return
        key = next(iter(self._asked), None) or next(iter(self._ahead), None)
        if key is not None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._read_s, self._finish, key)

    def _finish(self, key: bytes) -> None:
        self._timer = None
        self._ahead.pop(key, None)
        asked = key in self._asked  # perhaps only since the read began
        if asked:
            del self._asked[key]
        self._store.read_from_ssd(key, ahead=not asked)
        if asked:
            self._on_read(key)
        self._start()
