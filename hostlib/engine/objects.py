"""Objects of the pool as an engine wants them, in asyncio: which are there, many into and out of buffers.

Nothing here raises because the pool fails: an engine can always compute. Failures are counted, said once, and
the pool is left alone for a while (`hostlib.engine.reach`).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from hostlib.engine.reach import Reach
from hostlib.errors import TransferError, TransferTimeoutError
from hostlib.wire import VALUE_BYTES, Buffer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hostlib.engine.config import PoolConfig
    from hostlib.engine.shared_client import BlockClient
    from hostlib.transfer import BlockRef, FetchedBlock

OBJECTS_IN_FLIGHT = 64
"""Of one load or store: enough to fill all homes' windows, few enough to bound what is assembled at once."""

OnMoved = Callable[[int, bool], None]

_log = logging.getLogger("weir")


class Item(NamedTuple):
    """One object to move."""

    block: BlockRef
    buffer: Buffer
    """Where its bytes go to or come from, contiguous; a load needs a writable one of the object's length."""

    def check(self, *, writable: bool) -> None:
        """Raise ValueError for a buffer that can't be used as it is."""
        view = memoryview(self.buffer)
        if not view.c_contiguous:
            raise ValueError(
                f"the buffer of object {self.block.key.hex()} is not contiguous: its {view.shape} "
                f"numbers lie {view.strides} bytes apart. Copy it into one that is (numpy.ascontiguousarray, "
                "torch.Tensor.contiguous)"
            )
        if writable and view.readonly:
            raise ValueError(
                f"the buffer of object {self.block.key.hex()} can't be written to, as a load has to"
            )


@dataclass(slots=True)
class PoolStats:
    """What one engine moved."""

    lookups: int = 0
    found: int = 0
    """Objects that lookups found."""
    loaded_objects: int = 0
    loaded_bytes: int = 0
    pool_bytes: int = 0
    """Of those loaded, what switches served."""
    store_bytes: int = 0
    """Of those loaded, what storage nodes served."""
    merged: int = 0
    """Fragments that came as a copy of the reply to another node."""
    load_s: float = 0.0
    """Sum over loads, each from its first request to its last object."""
    stored_objects: int = 0
    stored_bytes: int = 0
    not_stored: int = 0
    """Objects for which there was no room to wait."""
    failed: Counter[str] = field(default_factory=Counter)
    """Objects that could not be moved, by error."""

    def report(self) -> dict[str, Any]:
        """All counters."""
        return {**asdict(self), "failed": dict(self.failed)}


def _ignore(index: int, moved: bool) -> None:
    """Nobody wants to know."""


class ObjectPool:
    """See the module. Use from one event loop."""

    def __init__(self, client: BlockClient, config: PoolConfig) -> None:
        self.stats = PoolStats()
        self.silence_level = logging.WARNING
        """At which it is said that the pool fell silent, and that it answers again: where several processes
        of an engine use the pool, one of them says so."""
        self._client, self._config = client, config
        self._reach = Reach(config.retry_s)

    @property
    def is_answering(self) -> bool:
        """Whether the pool is worth asking now."""
        return self._reach.allows(time.monotonic())

    async def prefix(self, blocks: Sequence[BlockRef]) -> int:
        """How many of the objects are there, from the first on; 0 if the pool can't be asked."""
        if not blocks or not await self._ready():
            return 0
        try:
            async with asyncio.timeout(self._config.lookup_timeout_s):
                found = await self._client.exists(blocks)
        except (TransferError, TimeoutError) as error:
            self._on_failure(error)
            return 0
        self._on_answer()
        self.stats.lookups += 1
        self.stats.found += found
        return found

    async def present(self, blocks: Sequence[BlockRef]) -> list[bool]:
        """Which of the objects are there; none if the pool can't be asked."""
        return [bool(found) for found in await asyncio.gather(*(self.prefix([block]) for block in blocks))]

    async def load(self, items: Sequence[Item], on_moved: OnMoved = _ignore) -> list[bool]:
        """Fetch objects into their buffers, the first ones first; which of them are right and complete.

        `on_moved(index, whether it arrived)` is called once for each, as soon as that is known. When the task
        is cancelled and over, no buffer is written to any more. Raises ValueError for buffers that can't be
        used, before anything is moved.
        """
        for item in items:
            item.check(writable=True)
        started_s = time.monotonic()
        loaded = await self._move(items, self._load_one, on_moved)
        self.stats.load_s += time.monotonic() - started_s
        return loaded

    async def fetch(self, block: BlockRef) -> memoryview | None:
        """An object whose length is not known; None if it can't be had."""
        if not await self._ready():
            return None
        started_s = time.monotonic()
        try:
            async with asyncio.timeout(self._config.transfer_timeout_s):
                fetched = await self._client.get(block)
        except TransferError as error:
            self._on_failed_object(error)
            return None
        except TimeoutError as error:
            self._on_failure(error)
            return None
        self._on_loaded(fetched)
        self.stats.load_s += time.monotonic() - started_s
        return memoryview(fetched.content).cast("B")

    async def store(self, items: Sequence[Item]) -> list[bool]:
        """Offer objects; which of them are held. Objects are immutable: what is there stays.

        Raises ValueError for buffers that can't be used, before anything is moved.
        """
        for item in items:
            item.check(writable=False)
        return await self._move(items, self._store_one, _ignore)

    def close(self) -> None:
        """Give up all transfers."""
        self._client.close()

    async def _ready(self) -> bool:
        """Whether to ask at all."""
        return self.is_answering

    async def _move(
        self, items: Sequence[Item], one: Callable[[Item], Awaitable[bool]], on_moved: OnMoved
    ) -> list[bool]:
        """All items through `one`, so many at a time, within the time for a transfer."""
        moved: list[bool | None] = [None] * len(items)
        turns = asyncio.Semaphore(OBJECTS_IN_FLIGHT)

        async def move(index: int) -> None:
            async with turns:
                if self.is_answering:
                    moved[index] = await one(items[index])
                    on_moved(index, moved[index] is True)

        tasks: list[asyncio.Future[None]] = []
        try:
            async with asyncio.timeout(self._config.transfer_timeout_s):
                if await self._ready():
                    tasks += [asyncio.ensure_future(move(index)) for index in range(len(items))]
                    await asyncio.gather(*tasks)
        except TimeoutError as error:
            self._on_failure(error)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for index, one_moved in enumerate(moved):
                if one_moved is None:
                    on_moved(index, False)
        return [one_moved is True for one_moved in moved]

    async def _load_one(self, item: Item) -> bool:
        buffer = memoryview(item.buffer).cast("B")
        try:
            fetched = await self._client.get_into(item.block, buffer)
        except TransferError as error:
            self._on_failed_object(error)
            return False
        if len(fetched.content) != len(buffer):
            self._on_answer()
            self.stats.failed["length"] += 1
            return False
        self._on_loaded(fetched)
        return True

    async def _store_one(self, item: Item) -> bool:
        content = memoryview(item.buffer).cast("B")
        try:
            await self._client.put(item.block, content)
        except TransferError as error:
            self._on_failed_object(error)
            return False
        except ValueError:  # longer than any block
            self.stats.failed["length"] += 1
            return False
        self._on_answer()
        self.stats.stored_objects += 1
        self.stats.stored_bytes += len(content)
        return True

    def _on_loaded(self, fetched: FetchedBlock) -> None:
        self._on_answer()
        size = len(fetched.content)
        from_pool = min(size, fetched.pool_fragments * VALUE_BYTES)
        self.stats.loaded_objects += 1
        self.stats.loaded_bytes += size
        self.stats.pool_bytes += from_pool
        self.stats.store_bytes += size - from_pool
        self.stats.merged += fetched.merged_fragments

    def _on_failed_object(self, error: TransferError) -> None:
        """A refusal shows that the pool is there; silence does not."""
        if isinstance(error, TransferTimeoutError):
            self._on_failure(error)
        else:
            self.stats.failed[type(error).__name__] += 1

    def _on_failure(self, error: Exception) -> None:
        self.stats.failed[type(error).__name__] += 1
        if self._reach.failed(time.monotonic()):
            why = str(error) or "no answer in time"
            text = "The pool does not answer (%s): prompts are computed until it does."
            _log.log(self.silence_level, text, why)

    def _on_answer(self) -> None:
        if self._reach.answered():
            _log.log(self.silence_level, "The pool answers again.")
