"""Reads blocks of a storage node from SSD into DRAM, one after the other: those asked for before those ahead.

A read takes the time of the modelled device, which reads `bytes_per_s` (0: at once), whatever the machine's
own takes. Tenants that wait share it evenly, in bytes, however much each asks for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hostlib.protocol.errors import UnreadableError

if TYPE_CHECKING:
    from hostlib.protocol.block import Place
    from hostlib.storage.store import BlockStore

MAX_AHEAD = 1024
"""Blocks that wait to be read ahead; more are not."""


@dataclass(slots=True)
class _Queue:
    """Queue of one tenant."""

    read_bytes: float
    """Bytes that count for its turns: what it has read, and at least what others had when it began to wait.
    """
    places: dict[Place, None] = field(default_factory=dict)
    bytes: int = 0


class SsdReader:
    """See the module; `on_read` is told of each block that was asked for when it is in DRAM, or can't be
    read."""

    def __init__(
        self, store: BlockStore, bytes_per_s: float, on_read: Callable[[Place, UnreadableError | None], None]
    ) -> None:
        self._store, self.bytes_per_s, self._on_read = store, bytes_per_s, on_read
        self._asked: dict[Place, int] = {}
        """With their lengths."""
        self._queues: dict[int, _Queue] = {}
        """Of the tenants that wait."""
        self._read_bytes = 0.0
        """How much the tenant that waits longest for its turn has read, where turns are counted from."""
        self._ahead: dict[Place, None] = {}
        self._timer: asyncio.TimerHandle | None = None
        """Of the read that goes on, for as long as the modelled device takes."""
        self._reading: asyncio.Task[None] | None = None
        """What the machine's own takes."""
        self._closed = False

    def wait_s(self, tenant: int | None = None) -> float:
        """Return the seconds for a block that the tenant asks for now; without a tenant, for all that was
        asked for."""
        if tenant is None or len(self._queues) < 2:
            return self._read_s(sum(queue.bytes for queue in self._queues.values()))
        own = self._queues[tenant].bytes if tenant in self._queues else 0
        return self._read_s(sum(min(own, queue.bytes) for queue in self._queues.values()))

    def waiting(self, tenant: int) -> int:
        """Return the number of blocks of the tenant that were asked for."""
        return len(self._queues[tenant].places) if tenant in self._queues else 0

    def ask(self, place: Place) -> None:
        """Have the block read, for which someone waits."""
        if place not in self._asked:
            length = self._asked[place] = self._store.ssd_length(place)
            queue = self._queues.get(place.tenant)
            if queue is None:  # who did not wait has saved up nothing
                queue = self._queues[place.tenant] = _Queue(self._read_bytes)
            queue.places[place] = None
            queue.bytes += length
        self._start()

    def read_ahead(self, places: Iterable[Place]) -> None:
        """Have these read, which someone is going to ask for."""
        for place in places:
            if len(self._ahead) >= MAX_AHEAD:
                break
            if place not in self._asked and self._store.on_ssd_only(place):
                self._ahead[place] = None
        self._start()

    def close(self) -> None:
        """Read nothing any more."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        if self._reading is not None:
            self._reading.cancel()

    def _read_s(self, length: int) -> float:
        return length / self.bytes_per_s if self.bytes_per_s else 0.0

    def _start(self) -> None:
        if self._timer is not None or self._reading is not None or self._closed:
            return
        place = self._next_asked() or next(iter(self._ahead), None)
        if place is not None:
            length = self._asked.get(place) or self._store.ssd_length(place)
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._read_s(length), self._finish, place)

    def _next_asked(self) -> Place | None:
        """Return the first block of the tenant that has read least."""
        if not self._queues:
            return None
        queue = min(self._queues.values(), key=lambda queue: queue.read_bytes)
        self._read_bytes = queue.read_bytes
        return next(iter(queue.places))

    def _served(self, place: Place) -> None:
        queue = self._queues[place.tenant]
        length = self._asked.pop(place)
        del queue.places[place]
        queue.bytes -= length
        queue.read_bytes += length
        if not queue.places:
            del self._queues[place.tenant]

    def _finish(self, place: Place) -> None:
        self._timer = None
        self._reading = asyncio.get_running_loop().create_task(self._read(place))

    async def _read(self, place: Place) -> None:
        error = None
        asked = place in self._asked
        try:
            await self._store.load(place, ahead=not asked)
        except UnreadableError as reason:
            error = reason
        finally:
            self._reading = None
        self._ahead.pop(place, None)
        if place in self._asked:  # perhaps only since the read began
            self._served(place)
            self._on_read(place, error)
        self._start()
