"""Objects of the pool as an engine wants them, in asyncio: which are there, many into and out of buffers.

Nothing here raises because the pool fails: an engine can always compute. Failures are counted. A storage node
that does not answer is named once; what lies on the others is found and moved as before.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from hostlib.engine.failed_loads import FailedLoads
from hostlib.engine.large import MAX_OBJECT_BYTES, LargeObjects
from hostlib.engine.listed import Lists, Notes
from hostlib.engine.room import Room
from hostlib.engine.silence import Silence
from hostlib.engine.store_queue import StoreQueue
from hostlib.protocol.errors import TransferError
from hostlib.protocol.hints import Hint, HintOutcome
from hostlib.protocol.seal import Seal
from hostlib.protocol.wire import MAX_BLOCK_BYTES, VALUE_BYTES, Buffer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from hostlib.engine.config import PoolConfig
    from hostlib.engine.shared_client import BlockClient
    from hostlib.protocol.transfer import BlockRef, FetchedBlock

OBJECTS_IN_FLIGHT = 64
"""Objects of one load in flight: enough to fill all homes' windows, few enough to bound what is assembled at
once."""
DELETES_IN_FLIGHT = 64
SENT_AT_ONCE_BYTES = 16 << 20
"""Bytes of stores that are sent at once: more than fills all homes' windows. The time of an object that waits
for its turn does not count."""
QUESTIONS_IN_FLIGHT = 256
"""Questions of one look-up in flight."""
LOOKUPS_IN_FLIGHT = 8
"""More look-ups wait for one of these to end."""
ANSWER_SHARE = 0.9
"""Share of a look-up's remaining time that the next questions get."""

OnMoved = Callable[[int, bool], None]
Ask = Callable[["Sequence[BlockRef]"], Awaitable[list[bool]]]

_log = logging.getLogger("weir")


class Item(NamedTuple):
    """One object to move."""

    block: BlockRef
    buffer: Buffer
    """Contiguous buffer that the bytes go to or come from. A load needs a writable one of the object's
    length."""
    name: str = ""
    """Name under which the object is listed (`hostlib.engine.listed`); empty for the pool's own."""

    @property
    def size(self) -> int:
        """Length of the object in bytes."""
        return memoryview(self.buffer).nbytes

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
    """Counters of one engine."""

    lookups: int = 0
    slow_lookups: int = 0
    """Look-ups that took longer than they may, and answered with what was known until then."""
    questions: int = 0
    """Objects that look-ups asked about."""
    found: int = 0
    """Objects that look-ups found; of a look-up for blocks, the blocks."""
    loaded_objects: int = 0
    loaded_bytes: int = 0
    pool_bytes: int = 0
    """Loaded bytes that switches served."""
    store_bytes: int = 0
    """Loaded bytes that storage nodes served."""
    merged: int = 0
    """Fragments that came as a copy of the reply to another node."""
    load_s: float = 0.0
    """Sum over loads, each from its first request to its last object."""
    stored_objects: int = 0
    stored_bytes: int = 0
    deleted_objects: int = 0
    retained_objects: int = 0
    """Objects that a storage node said it retains."""
    not_retained: int = 0
    """Objects that were to be retained, and of which no storage node said so."""
    not_stored: int = 0
    """Objects that were not offered: too many waited, or the engine took the block back before its turn."""
    failed: Counter[str] = field(default_factory=Counter)
    """Objects that could not be moved, by error."""

    def report(self) -> dict[str, Any]:
        """Return all counters."""
        return {**asdict(self), "failed": dict(self.failed)}


def _ignore(index: int, moved: bool) -> None:
    """Ignore that an object has moved."""


class ObjectPool:
    """See the module. Use from one event loop."""

    def __init__(self, client: BlockClient, config: PoolConfig) -> None:
        self.stats = PoolStats()
        self.silence = Silence(client)
        """What is said of storage nodes that do not answer."""
        self.queue = StoreQueue(int(config.waiting_bytes))
        """What waits to be stored."""
        self._sending = Room(SENT_AT_ONCE_BYTES)
        self._client, self._config = client, config
        self._failed_loads = FailedLoads()
        seal = Seal(config.tenant, config.secret_bytes())
        self._large = LargeObjects(client, seal, config.replicas, config.transfer_timeout_s)
        self.listed_as = ""
        """Name under which objects are written down that have none of their own."""
        self.notes = Notes(Lists(client, seal, config.replicas)) if config.listed else None
        self._said_not_stored = self._said_length = self._said_lifetime = False
        self._lookups = asyncio.Semaphore(LOOKUPS_IN_FLIGHT)

    @property
    def silence_level(self) -> int:
        """Level of what is logged about storage nodes that do not answer."""
        return self.silence.level

    @silence_level.setter
    def silence_level(self, level: int) -> None:
        self.silence.level = level

    @property
    def is_answering(self) -> bool:
        """Return whether any storage node answers, as far as is known."""
        return self._client.is_answering

    async def prefix(self, blocks: Sequence[BlockRef]) -> int:
        """Return how many of the objects are there, from the first one on, as far as storage nodes say in
        time."""
        found = 0
        async with self._looking_up() as present:
            for start in range(0, len(blocks), QUESTIONS_IN_FLIGHT):
                some = blocks[start : start + QUESTIONS_IN_FLIGHT]
                answers = await present(some)
                found += answers.index(False) if False in answers else len(answers)
                if False in answers:
                    break
        self.stats.found += found
        return found

    async def present(self, blocks: Sequence[BlockRef]) -> list[bool]:
        """Return which of the objects are there, as far as storage nodes say in time."""
        there: list[bool] = []
        async with self._looking_up() as present:
            for start in range(0, len(blocks), QUESTIONS_IN_FLIGHT):
                there += await present(blocks[start : start + QUESTIONS_IN_FLIGHT])
        self.stats.found += sum(there)
        return there + [False] * (len(blocks) - len(there))

    async def load(self, items: Sequence[Item], on_moved: OnMoved = _ignore) -> list[bool]:
        """Fetch objects into their buffers, the first ones first; which of them are right and complete.

        `on_moved(index, whether it arrived)` is called once for each, as soon as that is known. When the task
        is cancelled and over, no buffer is written to any more. Raises ValueError for buffers that can't be
        used, before anything is moved.
        """
        for item in items:
            item.check(writable=True)
        started_s = now_s()
        moved: list[bool | None] = [None] * len(items)
        turns = asyncio.Semaphore(OBJECTS_IN_FLIGHT)

        async def load(index: int) -> None:
            async with turns:
                moved[index] = await self._load_one(items[index])
                on_moved(index, moved[index] is True)

        tasks: list[asyncio.Future[None]] = []
        try:
            async with asyncio.timeout(self._config.transfer_timeout_s):
                if await self._ready():
                    tasks += [asyncio.ensure_future(load(index)) for index in range(len(items))]
                    await asyncio.gather(*tasks)
        except TimeoutError as error:
            self._on_failed(
                error, [item.block for item, one in zip(items, moved, strict=True) if one is None]
            )
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for index, one_moved in enumerate(moved):
                if one_moved is None:
                    on_moved(index, False)
        self.stats.load_s += now_s() - started_s
        return [one_moved is True for one_moved in moved]

    async def fetch(self, block: BlockRef) -> memoryview | None:
        """Return an object whose length is not known; None if it can't be had."""
        if not await self._ready():
            return None
        started_s = now_s()
        try:
            async with asyncio.timeout(self._config.transfer_timeout_s):
                fetched = await self._client.get(block)
                manifest = self._large.manifest_of(block, fetched.content)
                if manifest is not None:
                    fetched = await self._large.load(block, memoryview(bytearray(manifest.length)))
        except (TransferError, TimeoutError) as error:
            self._on_failed(error, [block])
            return None
        self._on_loaded(block, fetched)
        self.stats.load_s += now_s() - started_s
        return memoryview(fetched.content).cast("B")

    async def store(self, items: Sequence[Item], within_s: float | None = None) -> list[bool]:
        """Offer objects, each when there is room for it (`queue`); which of them are held.

        After `within_s`, if that is given, no buffer is read any more, and all of them count as not held.
        Objects are immutable: what is there stays. Raises ValueError for buffers that can't be used, before
        anything is moved.
        """
        for item in items:
            item.check(writable=False)
        if not await self._ready():
            return [False] * len(items)
        try:
            async with asyncio.timeout(within_s):
                held = await self.queue.run(
                    [item.size for item in items], lambda index: self._store_one(items[index])
                )
        except TimeoutError:
            held = [None] * len(items)
        self._not_stored(held.count(None), sum(item.size for item in items))
        return [one is True for one in held]

    async def delete(self, blocks: Sequence[BlockRef]) -> list[bool]:
        """Delete objects. Return which of them are certain not to be there any more, for anybody."""
        turns = asyncio.Semaphore(DELETES_IN_FLIGHT)

        async def delete(block: BlockRef) -> bool:
            async with turns:
                try:
                    there = await self._large.delete(block)
                except TransferError as error:
                    self._on_failed(error, ())
                    return False
                self.stats.deleted_objects += there
                return True

        if not await self._ready():
            return [False] * len(blocks)
        return list(await asyncio.gather(*(delete(block) for block in blocks)))

    def close(self) -> None:
        """Give up all transfers."""
        self._client.close()

    @asynccontextmanager
    async def _looking_up(self) -> AsyncIterator[Ask]:
        """Give a function that asks about objects, within the time for a look-up.

        If the time is up, the body ends without an error: what it knows by then is the answer.
        """
        until_s = now_s() + self._config.lookup_timeout_s
        self.stats.lookups += 1
        try:
            async with asyncio.timeout_at(until_s), self._lookups:
                yield partial(self._ask, until_s=until_s)
        except TimeoutError:
            self.stats.slow_lookups += 1
            self.silence.look()

    async def _ask(self, blocks: Sequence[BlockRef], until_s: float) -> list[bool]:
        """Return which objects are known to be there by `until_s`."""
        if not await self._ready():
            return [False] * len(blocks)
        within_s = ANSWER_SHARE * (until_s - now_s())
        gives_up_s = now_s() + within_s
        try:
            answers = await self._client.present(blocks, within_s)
        except TransferError as error:
            self._on_failed(error, ())
            return [False] * len(blocks)
        self.silence.look()
        self.stats.questions += len(blocks)
        if None in answers and now_s() >= gives_up_s:
            self.stats.slow_lookups += 1
        return [
            answer is True and self._can_load(block.key)
            for block, answer in zip(blocks, answers, strict=True)
        ]

    def _can_load(self, key: bytes) -> bool:
        """Return whether an object that was found is offered; one that failed to load too often is not."""
        self._failed_loads.found(key)
        return not self._failed_loads.rests(key, now_s())

    async def _ready(self) -> bool:
        """Return whether to ask at all."""
        return self.is_answering

    async def _load_one(self, item: Item) -> bool:
        block, buffer = item.block, memoryview(item.buffer).cast("B")
        try:
            if len(buffer) > MAX_BLOCK_BYTES:
                fetched = await self._large.load(block, buffer)
            else:
                fetched = await self._client.get_into(block, buffer)
        except TransferError as error:
            self._on_failed(error, [block])
            return False
        if len(fetched.content) != len(buffer) or self._large.manifest_of(block, buffer) is not None:
            self.stats.failed["length"] += 1
            self._failed_loads.add(block.key, now_s())
            return False
        self._on_loaded(block, fetched)
        return True

    async def _store_one(self, item: Item) -> bool:
        block, content = item.block, memoryview(item.buffer).cast("B")
        if not 0 < len(content) <= MAX_OBJECT_BYTES:
            self._refuse_length(len(content))
            return False
        try:
            if len(content) > MAX_BLOCK_BYTES:
                await self._large.store(block, content)
            else:
                async with (
                    self._sending.held(len(content)),
                    asyncio.timeout(self._config.transfer_timeout_s),
                ):
                    await self._client.put(block, content, replicas=self._config.replicas, at_least=1)
        except (TransferError, TimeoutError) as error:
            self._on_failed(error, ())
            return False
        if self._config.lifetime_s and not await self._let_expire(block, len(content)):
            return False
        self._failed_loads.discard(block.key)
        self.silence.look()
        self.stats.stored_objects += 1
        self.stats.stored_bytes += len(content)
        if self.notes is not None and (name := item.name or self.listed_as):
            self.notes.add(name, block.key, len(content))
        return True

    async def _let_expire(self, block: BlockRef, length: int) -> bool:
        """Give a stored object its lifetime, or delete it where that can't be done; whether it has one."""
        client = self._large if length > MAX_BLOCK_BYTES else self._client
        try:
            outcome = await client.hint(block, Hint.EXPIRE, self._config.lifetime_s)
            if outcome is HintOutcome.DONE:
                return True
            why = f"storage nodes do not take its lifetime ({outcome.name.lower()})"
            await self._large.delete(block)
        except TransferError as error:
            why = str(error)
        self.stats.failed["lifetime"] += 1
        if not self._said_lifetime:
            self._said_lifetime = True
            _log.warning("An object is deleted at once, or may outlive its lifetime: %s.", why)
        return False

    def _refuse_length(self, length: int) -> None:
        """Count an object that can't be stored whatever happens, and say so once."""
        self.stats.failed["length"] += 1
        if not self._said_length:
            self._said_length = True
            _log.warning(
                "An object of %d bytes is not stored: 1 to %d are possible. Use smaller blocks, or more "
                "objects a block", length, MAX_OBJECT_BYTES,
            )  # fmt: skip

    def _on_loaded(self, block: BlockRef, fetched: FetchedBlock) -> None:
        self._failed_loads.discard(block.key)
        self.silence.look()
        size = len(fetched.content)
        from_pool = min(size, fetched.pool_fragments * VALUE_BYTES)
        self.stats.loaded_objects += 1
        self.stats.loaded_bytes += size
        self.stats.pool_bytes += from_pool
        self.stats.store_bytes += size - from_pool
        self.stats.merged += fetched.merged_fragments

    def _on_failed(self, error: Exception, not_loaded: Sequence[BlockRef]) -> None:
        """Count a failure, and remember the objects that it kept from being loaded."""
        self.silence.look()
        self.stats.failed[type(error).__name__] += 1
        for block in not_loaded:
            self._failed_loads.add(block.key, now_s())

    def _not_stored(self, objects: int, offered_bytes: int) -> None:
        """Count objects that were not offered, and say once what to do."""
        if not objects:
            return
        self.stats.not_stored += objects
        if not self._said_not_stored:
            self._said_not_stored = True
            _log.warning(
                "Not all that this engine computes is stored: the pool takes it more slowly. At once "
                "%d bytes were offered; pool setting 'waiting_bytes' is %d: raise it if there is memory",
                offered_bytes, self._config.waiting_bytes,
            )  # fmt: skip


def now_s() -> float:
    """Return the time of the event loop that runs."""
    return asyncio.get_running_loop().time()
