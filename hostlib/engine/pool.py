"""Blocks of one key space in the pool: a handshake first, then the longest prefix, load and store."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from hostlib.engine.objects import Item, ObjectPool
from hostlib.errors import BlockNotFoundError, KeySpaceError, TransferError
from hostlib.transfer import BlockRef, chain_references

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hostlib.engine.config import PoolConfig
    from hostlib.engine.shared_client import BlockClient
    from hostlib.engine.space import KvSpace
    from hostlib.seal import Seal

_log = logging.getLogger("weir")


class KvPool(ObjectPool):
    """See the module: nothing is asked for or offered before the handshake has passed."""

    def __init__(self, client: BlockClient, config: PoolConfig, seal: Seal, space: KvSpace) -> None:
        super().__init__(client, config)
        self._seal, self._space = seal, space
        self._joined = False
        self._refused: KeySpaceError | None = None
        self._joining = asyncio.Lock()

    async def join(self) -> bool:
        """Compare parameters with whoever else uses the key space's name; False if the pool does not answer.

        The first to come writes them down. Raises KeySpaceError where they differ, then and ever after.
        """
        if self._refused is not None:
            raise self._refused
        async with self._joining:
            if self._joined or not self.is_answering:
                return self._joined
            try:
                async with asyncio.timeout(self._config.lookup_timeout_s):
                    there = await self._descriptor()
                self._space.check_same(there)
            except KeySpaceError as error:
                self._refused = error
                _log.log(self.silence_level, "The pool is not used: %s", error)
                raise
            except (TransferError, TimeoutError) as error:
                self._on_failure(error)
                return False
            self._on_answer()
            self._joined = True
            return True

    async def exists(self, block_keys: Sequence[bytes], first: int = 0) -> int:
        """How many blocks of a chain are there whole, of all shards, from number `first` on.

        Asks for each block's last objects, which are stored when the others are held (`store_blocks`).
        Returns 0 if the pool can't be asked.
        """
        return await self.prefix(self.last_objects(block_keys, first)) // self._space.shard_count

    def last_objects(self, block_keys: Sequence[bytes], first: int = 0) -> list[BlockRef]:
        """The last object of each block from number `first` on, of each shard."""
        last, ranks_of_shard = len(self._space.object_bytes) - 1, self._space.ranks_of_shard
        ranks = range(0, self._space.tensor_parallel, ranks_of_shard)
        blocks = zip(*(self.references(block_keys, last, rank=rank)[first:] for rank in ranks), strict=True)
        return [reference for references in blocks for reference in references]

    def references(
        self, block_keys: Sequence[bytes], index: int, recompute_ms: int = 0, rank: int = 0
    ) -> list[BlockRef]:
        """A rank's objects of one group of layers, in the order of a prompt's blocks."""
        keys = [self._space.object_key(self._seal, key, index, rank) for key in block_keys]
        return chain_references(keys, lambda _: recompute_ms)

    async def store_blocks(self, objects: Sequence[Sequence[Item]]) -> int:
        """Offer blocks, each as its objects in order: a block's last one when the others are held.

        How many blocks are held completely. Of no block is the last object offered if any other failed.
        """
        before_last = [item for block in objects for item in block[:-1]]
        if not all(await self.store(before_last)):
            return 0
        return sum(await self.store([block[-1] for block in objects]))

    async def _descriptor(self) -> bytes:
        """What is written under the key space's name, which is ours where nothing was."""
        block = BlockRef(self._space.descriptor_key(self._seal))
        try:
            return bytes((await self._client.get(block)).content)
        except BlockNotFoundError:
            await self._client.put(block, self._space.descriptor)
        return bytes((await self._client.get(block)).content)  # two may have come first; one of them was

    async def _ready(self) -> bool:
        if self._joined:
            return self.is_answering
        try:
            return await self.join()
        except KeySpaceError:
            return False
