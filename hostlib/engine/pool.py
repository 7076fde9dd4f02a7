"""Blocks of one key space in the pool: a handshake, the longest prefix, load and store."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from itertools import product
from typing import TYPE_CHECKING

from hostlib.engine.failed_loads import FailedLoads
from hostlib.engine.objects import Item, ObjectPool, now_s
from hostlib.engine.prefix_search import PrefixSearch
from hostlib.engine.reach import Reach
from hostlib.protocol.errors import BlockNotFoundError, KeySpaceError, TransferError
from hostlib.protocol.hints import Hint, HintOutcome
from hostlib.protocol.transfer import BlockRef
from hostlib.protocol.wire import fingerprint

if TYPE_CHECKING:
    from hostlib.engine.config import PoolConfig
    from hostlib.engine.objects import Ask
    from hostlib.engine.prefix_search import ObjectPlace
    from hostlib.engine.shared_client import BlockClient
    from hostlib.engine.space import KvSpace
    from hostlib.protocol.seal import Seal

BlockReader = Callable[[], "Sequence[Item] | None"]
"""Copies a block out of the engine and returns its objects in order; None if the engine has taken it back. It
is called once, in the thread that offers the block or in the pool's."""
Block = Sequence[Item] | BlockReader

MAX_DEPTH = 0xFFFF
"""Messages have no room for a larger number of a block in its prompt."""

_log = logging.getLogger("weir")


class KvPool(ObjectPool):
    """See the module. If the handshake finds other parameters, nothing is asked for or offered any more."""

    def __init__(self, client: BlockClient, config: PoolConfig, seal: Seal, space: KvSpace) -> None:
        super().__init__(client, config)
        self.listed_as = space.name
        self._seal, self._space = seal, space
        self._joined = False
        self._refused: KeySpaceError | None = None
        self._joining = asyncio.Lock()
        self._handshake = Reach(config.retry_s)
        self._failed_blocks = FailedLoads()

    async def join(self) -> bool:
        """Compare parameters with whoever else uses the key space's name; False if that can't be done now.

        The first to come writes them down. After a failure it is tried again after `retry_s`, and later each
        time. Raises KeySpaceError where they differ, then and ever after.
        """
        async with self._joining:
            if self._refused is not None:
                raise self._refused
            if self._joined:
                return True
            if not self._handshake.allows(now_s()):
                return False  # another caller has just tried
            try:
                async with asyncio.timeout(self._config.lookup_timeout_s):
                    there = await self._descriptor()
                self._space.check_same(there)
            except KeySpaceError as error:
                self._refused = error
                _log.log(self.silence_level, "The pool is not used: %s", error)
                raise
            except (TransferError, TimeoutError) as error:
                self._on_failed(error, ())
                self._handshake.failed(now_s())
                return False
            self._joined = True
            return True

    async def exists(self, block_keys: Sequence[bytes], first: int = 0) -> int:
        """Return how many blocks of a chain are there from number `first` on, of every rank.

        Asks about few blocks (`hostlib.engine.prefix_search`), about each one's last objects, which are
        stored when the others are held (`store_blocks`). So a block that is counted may lack an object, or be
        a hole behind which others are there: it fails to load and has to be computed. Tell `failed_to_load`
        of it; from then on the answer ends before it until all its objects are there. What no storage node
        says in time counts as missing; if the time for a look-up is up, the answer is what is known by then.
        """
        keys = block_keys[first:]
        search = PrefixSearch(len(keys), self._space.shard_count)
        async with self._looking_up() as ask:
            doubtful = [number for number, key in enumerate(keys) if key in self._failed_blocks]
            for number in doubtful:
                if not await self._is_whole(keys, number, first, ask):
                    search.end_at(number)
                    break

            async def ask_places(places: Sequence[ObjectPlace]) -> list[bool]:
                return await ask([self._last_object(keys, number, first, rank) for number, rank in places])

            if keys:
                await search.run(ask_places)
        self.stats.found += search.found
        return search.found

    def failed_to_load(self, block_keys: Sequence[bytes]) -> None:
        """Have look-ups ask about all objects of these blocks, which were found and could not be loaded."""
        for key in block_keys:
            self._failed_blocks.add(key, now_s())

    async def retain(self, block_keys: Sequence[bytes], seconds: int) -> int:
        """Ask storage nodes to retain blocks of a chain, all their objects of every rank, for a time.

        Returns the number of objects that are retained. Best effort: nothing is raised, `stats` count.
        """
        space = self._space
        ranks = range(0, space.tensor_parallel, space.ranks_of_shard)
        places = product(range(len(block_keys)), range(len(space.object_bytes)), ranks)
        blocks = [self._object(block_keys, number, 0, index, rank) for number, index, rank in places]
        outcomes = await asyncio.gather(
            *(self._client.hint(block, Hint.RETAIN, seconds) for block in blocks), return_exceptions=True
        )
        retained = sum(outcome is HintOutcome.DONE for outcome in outcomes)
        self.stats.retained_objects += retained
        self.stats.not_retained += len(blocks) - retained
        return retained

    async def _is_whole(self, keys: Sequence[bytes], number: int, first: int, ask: Ask) -> bool:
        """Return whether a block that failed to load before is there now, all of it."""
        if self._failed_blocks.rests(keys[number], now_s()):
            return False
        space = self._space
        places = product(
            range(0, space.tensor_parallel, space.ranks_of_shard), range(len(space.object_bytes))
        )
        if not all(await ask([self._object(keys, number, first, index, rank) for rank, index in places])):
            return False
        self._failed_blocks.found(keys[number])
        return True

    def references(self, block_keys: Sequence[bytes], index: int, rank: int = 0) -> list[BlockRef]:
        """Return a rank's objects of one group of layers, of a prompt's blocks from the first one on."""
        return self.run_references(block_keys, index, rank=rank)

    def run_references(
        self,
        block_keys: Sequence[bytes],
        index: int,
        recompute_ms: int = 0,
        rank: int = 0,
        *,
        first: int = 0,
        parent: bytes | None = None,
    ) -> list[BlockRef]:
        """Return a rank's objects of one group of layers, of a run of neighbouring blocks of a prompt.

        `first` is the number of the run's first block in the prompt, `parent` the key of the block before it:
        None if there is none. May be called in any thread.
        """
        object_key, seal = self._space.object_key, self._seal
        before = fingerprint(object_key(seal, parent, index, rank)) if parent is not None else 0
        end = first + len(block_keys)
        references = []
        for depth, block_key in enumerate(block_keys, first):
            key = object_key(seal, block_key, index, rank)
            place = min(depth, MAX_DEPTH)
            references.append(BlockRef(key, place, min(end, MAX_DEPTH), before, recompute_ms))
            before = fingerprint(key)
        return references

    async def store_blocks(self, blocks: Sequence[Block], with_room: int = 0) -> int:
        """Offer neighbouring blocks of a prompt, each as its objects in order; how many are held.

        Each block begins when there is room for it (`queue`; the first `with_room` have room), and is read
        then if it is a `BlockReader`. Its last object is offered when its others are held, and those of all
        blocks before it. Behind a block that is not held, none is counted, and none is begun any more.
        """
        loop = asyncio.get_running_loop()
        whole = [loop.create_future() for _ in range(len(blocks) + 1)]
        """Whether all blocks before this number have all objects but their last one."""
        whole[0].set_result(True)

        async def store(number: int) -> bool:
            try:
                return await self._store_block(blocks[number], whole[number], whole[number + 1])
            finally:
                if not whole[number + 1].done():
                    whole[number + 1].set_result(False)

        sizes = [self.block_size(block) for block in blocks]
        if not await self._ready():
            for size in sizes[:with_room]:
                self.queue.give(size)
            return 0
        held = await self.queue.run(sizes, store, with_room)
        self._not_stored(held.count(None) * len(self._space.object_bytes), sum(sizes))
        return next((number for number, one in enumerate(held) if not one), len(held))

    def block_size(self, block: Block) -> int:
        """Return length of a block's objects together in bytes."""
        return self._space.block_bytes if callable(block) else sum(item.size for item in block)

    async def _store_block(
        self, block: Block, before: asyncio.Future[bool], after: asyncio.Future[bool]
    ) -> bool:
        """Offer one block; `after` is set to whether its last object may be offered."""
        if before.done() and not before.result():
            return False
        items = block() if callable(block) else block
        if items is None:
            self._not_stored(len(self._space.object_bytes), self._space.block_bytes)
            return False
        for item in items:
            item.check(writable=False)
        *others, last = items
        is_next = await self._store_all(others) and await before
        after.set_result(is_next)
        return is_next and await self._store_one(last)

    async def _store_all(self, items: Sequence[Item]) -> bool:
        """Offer objects at the same time; whether all are held."""
        if len(items) == 1:  # as usual, and a task for it takes CPU
            return await self._store_one(items[0])
        return all(await asyncio.gather(*map(self._store_one, items)))

    def _last_object(self, keys: Sequence[bytes], number: int, first: int, shard: int) -> BlockRef:
        """Return the last object of one shard of a block, which is the one that is asked about."""
        rank, index = shard * self._space.ranks_of_shard, len(self._space.object_bytes) - 1
        return self._object(keys, number, first, index, rank)

    def _object(self, keys: Sequence[bytes], number: int, first: int, index: int, rank: int) -> BlockRef:
        parent = keys[number - 1] if number else None
        (reference,) = self.run_references(
            keys[number : number + 1], index, rank=rank, first=first + number, parent=parent
        )
        return reference._replace(chain_blocks=min(first + len(keys), MAX_DEPTH))

    async def _descriptor(self) -> bytes:
        """Return the descriptor that stands under the key space's name; write this engine's if there was
        none."""
        block = BlockRef(self._space.descriptor_key(self._seal))
        try:
            return bytes((await self._client.get(block)).content)
        except BlockNotFoundError:
            await self._client.put(block, self._space.descriptor)
        return bytes((await self._client.get(block)).content)  # two may have come first; one of them was

    async def _ready(self) -> bool:
        """Return whether to ask at all.

        Keys depend on the parameters that the handshake compares, so without it nothing wrong is found. If
        the handshake's storage node alone is silent, the others are used, and the handshake is tried again
        later.
        """
        if self._refused is not None or not self.is_answering:
            return False
        if not self._joined:
            try:
                await self.join()
            except KeySpaceError:
                return False
        return self._joined or self.is_answering
