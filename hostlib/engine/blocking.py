"""The pool for code that blocks, as engines do: an event loop in a thread, one for all parts of a process.

What begins with `begin_` returns a future at once; the rest blocks.
"""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from hostlib.engine.node_client import NodeClient
from hostlib.engine.objects import Item, ObjectPool, OnMoved
from hostlib.engine.pool import Block, KvPool
from hostlib.protocol.errors import ConfigError
from hostlib.protocol.seal import Seal

if TYPE_CHECKING:
    from hostlib.engine.config import PoolConfig
    from hostlib.engine.shared_client import BlockClient
    from hostlib.engine.space import KvSpace
    from hostlib.protocol.transfer import BlockRef

Result = TypeVar("Result")

CLOSE_S = 2.0
"""Seconds that a pool which is closed may take to write down what was stored last."""

_log = logging.getLogger("weir")


class BlockingObjects:
    """An `ObjectPool` in a thread of its own. Get one with `open_objects`; close it as often as opened."""

    def __init__(self, config: PoolConfig, space: KvSpace | None = None) -> None:
        self.config, self.space = config, space
        self.seal = Seal(config.tenant, config.secret_bytes())
        self.users = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="weir", daemon=True)
        self._thread.start()
        try:
            self._client, self._objects = self._run(self._open())
        except BaseException:
            self._stop_loop()
            raise

    @property
    def is_answering(self) -> bool:
        """Return whether the pool answered when it was asked last."""
        return self._objects.is_answering

    @property
    def is_host(self) -> bool:
        """Return whether this process has the client that the node's other processes use."""
        return self._client.is_host

    @property
    def waiting_bytes(self) -> int:
        """Return the bytes of what was offered and is neither stored nor refused yet; 0 when nothing
        waits."""
        return self._objects.queue.waiting_bytes

    def prefix(self, blocks: Sequence[BlockRef]) -> int:
        """Return how many of the objects are there, from the first on."""
        return self._run(self._objects.prefix(blocks))

    def begin_present(self, blocks: Sequence[BlockRef]) -> Future[list[bool]]:
        """Return which objects are there."""
        return self._submit(self._objects.present(blocks))

    def begin_load(
        self, items: Sequence[Item], on_moved: OnMoved = lambda index, moved: None
    ) -> Future[list[bool]]:
        """Fetch objects into their buffers; the pool's thread calls `on_moved` as they arrive, or fail."""
        return self._submit(self._objects.load(items, on_moved))

    def begin_fetch(self, block: BlockRef) -> Future[memoryview | None]:
        """Fetch an object whose length is not known; None if it can't be had."""
        return self._submit(self._objects.fetch(block))

    def begin_store(self, items: Sequence[Item], within_s: float | None = None) -> Future[list[bool]]:
        """Offer objects, whose buffers stay as they are until the future is done, or for `within_s`."""
        return self._submit(self._objects.store(items, within_s))

    def begin_delete(self, blocks: Sequence[BlockRef]) -> Future[list[bool]]:
        """Begin to delete objects. The result says which of them are certain not to be there any more."""
        return self._submit(self._objects.delete(blocks))

    def load(self, items: Sequence[Item]) -> list[bool]:
        """Fetch objects into their buffers; which of them arrived."""
        return self.begin_load(items).result()

    def store(self, items: Sequence[Item]) -> list[bool]:
        """Offer objects; which of them are held."""
        return self.begin_store(items).result()

    def stats(self) -> dict[str, Any]:
        """Return counters of pool and socket."""

        async def report() -> dict[str, Any]:
            return self._objects.stats.report() | {"endpoint": self._client.endpoint_report()}

        return self._run(report())

    def close(self) -> None:
        """Give the pool back; with its last user it ends, and with it what is still under way."""
        with _opening:
            self.users -= 1
            if self.users > 0:
                return
            _open_pools.pop(self.config.address, None)

        if self.config.report is not None:
            try:
                Path(self.config.report).write_text(json.dumps(self.stats()) + "\n", encoding="utf-8")
            except OSError as error:
                _log.warning("The pool's counters are not written: %s", error)

        async def close() -> None:
            if self._objects.notes is not None:
                with suppress(TimeoutError):
                    async with asyncio.timeout(CLOSE_S):
                        await self._objects.notes.flush()
            self._objects.close()
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)
            await asyncio.get_running_loop().shutdown_default_executor()

        self._run(close())
        self._stop_loop()

    def _make(self, client: BlockClient) -> ObjectPool:
        return ObjectPool(client, self.config)

    async def _open(self) -> tuple[NodeClient, ObjectPool]:
        client = NodeClient(self.config, self.seal)
        await client.open()
        return client, self._make(client)

    def _submit(self, work: Coroutine[Any, Any, Result]) -> Future[Result]:
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def _run(self, work: Coroutine[Any, Any, Result]) -> Result:
        return self._submit(work).result()

    def _stop_loop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class BlockingPool(BlockingObjects):
    """A `KvPool` in a thread of its own. Get one with `open_pool`; close it as often as it was opened."""

    space: KvSpace

    def __init__(self, config: PoolConfig, space: KvSpace) -> None:
        super().__init__(config, space)
        assert isinstance(self._objects, KvPool)
        self.blocks: KvPool = self._objects
        """The pool itself, whose `references` may be used in any thread."""

    def join(self) -> bool:
        """Compare parameters with the sharers': False without an answer, KeySpaceError where they differ."""
        return self._run(self.blocks.join())

    def exists(self, block_keys: Sequence[bytes], first: int = 0) -> int:
        """Return how many blocks of a chain are in the pool, of every rank, from number `first` on
        (`KvPool.exists`)."""
        return self.begin_exists(block_keys, first).result()

    def begin_exists(self, block_keys: Sequence[bytes], first: int = 0) -> Future[int]:
        """Begin `exists`; return its future."""
        return self._submit(self.blocks.exists(list(block_keys), first))

    def begin_retain(self, block_keys: Sequence[bytes], seconds: int) -> Future[int]:
        """Ask storage nodes to retain blocks of a chain (`KvPool.retain`); the number of objects they do."""
        return self._submit(self.blocks.retain(list(block_keys), seconds))

    def failed_to_load(self, block_keys: Sequence[bytes]) -> None:
        """Note that these blocks were found and could not be loaded (`KvPool.failed_to_load`)."""
        self._loop.call_soon_threadsafe(self.blocks.failed_to_load, list(block_keys))

    def begin_store_blocks(self, blocks: Sequence[Block]) -> Future[int]:
        """Offer neighbouring blocks of a prompt (`KvPool.store_blocks`); how many from the first one on are
        held.

        Blocks for which there is room now are read before this returns. The others are read when there is
        room, in the pool's thread. Buffers stay as they are until the future is done.
        """
        ready: list[Block] = []
        for block in blocks:
            size = self.blocks.block_size(block)
            if not self.blocks.queue.take(size):
                break
            try:
                ready.append(self._read(block))
            except BaseException:
                for taken in [size, *map(self.blocks.block_size, ready)]:
                    self._loop.call_soon_threadsafe(self.blocks.queue.give, taken)
                raise
        return self._submit(self.blocks.store_blocks([*ready, *blocks[len(ready) :]], len(ready)))

    @staticmethod
    def _read(block: Block) -> Block:
        """Return a block whose objects are copied. One that the engine has taken back says so again later."""
        items = block() if callable(block) else block
        return items if items is not None else lambda: None

    def _make(self, client: BlockClient) -> ObjectPool:
        return KvPool(client, self.config, self.seal, self.space)


_open_pools: dict[str, BlockingObjects] = {}
_opening = threading.Lock()


def open_pool(config: PoolConfig, space: KvSpace) -> BlockingPool:
    """Return the process's pool at `config.address`; raises ConfigError if it is open there with other
    settings."""
    pool = _shared(config, space, lambda: BlockingPool(config, space))
    assert isinstance(pool, BlockingPool)
    return pool


def open_objects(config: PoolConfig) -> BlockingObjects:
    """Return the process's pool of objects at `config.address`, for callers that name objects themselves;
    raises as `open_pool`."""
    return _shared(config, None, lambda: BlockingObjects(config))


def open_pools() -> list[BlockingObjects]:
    """Return all pools that this process has open."""
    with _opening:
        return list(_open_pools.values())


def _shared(
    config: PoolConfig, space: KvSpace | None, make: Callable[[], BlockingObjects]
) -> BlockingObjects:
    with _opening:
        pool = _open_pools.get(config.address)
        if pool is None:
            pool = _open_pools[config.address] = make()
        elif (pool.config, pool.space) != (config, space):
            raise ConfigError(f"the pool at {config.address} is open in this process with other settings")
        pool.users += 1
        return pool
