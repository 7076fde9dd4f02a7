"""Room in memory, in bytes: taken in the order in which it is wanted, and given back."""

from __future__ import annotations

import asyncio
import threading
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class Room:
    """Budget of so many bytes. A caller that wants more than all of it waits until nobody else has any."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._holders = self._held_bytes = 0
        self._changing = threading.Lock()
        self._line = asyncio.Lock()
        """Held by the first who waits."""
        self._freed = asyncio.Event()

    @property
    def held_bytes(self) -> int:
        """Return the number of bytes that are taken."""
        return self._held_bytes

    def take_now(self, size: int) -> bool:
        """Take room if there is some; whether it was taken. May be called in any thread."""
        with self._changing:
            if self._holders and self._held_bytes + size > self._size:
                return False
            self._holders += 1
            self._held_bytes += size
            return True

    async def take(self, size: int) -> None:
        """Wait for room, behind those who wait already, and take it."""
        async with self._line:
            while not self.take_now(size):
                self._freed.clear()
                await self._freed.wait()

    def give(self, size: int) -> None:
        """Give room back. Call it in the event loop."""
        with self._changing:
            self._holders -= 1
            self._held_bytes -= size
        self._freed.set()

    @asynccontextmanager
    async def held(self, size: int) -> AsyncIterator[None]:
        """Hold room while the body runs."""
        await self.take(size)
        try:
            yield
        finally:
            self.give(size)
