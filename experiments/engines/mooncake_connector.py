"""Connector of Mooncake's store, for comparison. It shares its code with the pool's connector.

vLLM's own connector of Mooncake needs CUDA. Master, metadata and memory are on the first home
(`experiments.engines.mooncake_node`). Keys, layers in objects and loading layer by layer are those of
`engines.vllm.connector`; only the store of the objects differs.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from mooncake.store import MooncakeDistributedStore

from engines.vllm.connector import WeirConnector
from experiments.engines.mooncake_node import MASTER_PORT, METADATA_PORT
from hostlib.engine import Item, KvPool, KvSpace, PoolConfig, PoolStats
from hostlib.engine.objects import OnMoved
from hostlib.engine.pool import Block
from hostlib.protocol.seal import Seal

TRANSFER_BYTES = 64 << 20
"""Bytes of memory that Mooncake's client keeps for transfers."""
BATCH = 16
"""Objects a call: enough for few calls, and few enough that layers arrive one after the other."""

_opened: dict[str, MooncakePool] = {}
_opening = threading.Lock()


class MooncakePool:
    """Mooncake's store behind those methods of `hostlib.engine.BlockingPool` that the connector needs.

    Raises RuntimeError if Mooncake's client can't be set up.
    """

    def __init__(self, config: PoolConfig, space: KvSpace) -> None:
        self.config = config
        self.space, self.seal, self.users = space, Seal(config.tenant, config.secret_bytes()), 0
        self.blocks = KvPool(None, config, self.seal, space)  # type: ignore[arg-type] # it only names objects
        self._stats, self._address = PoolStats(), config.address
        self._loads, self._stores = ThreadPoolExecutor(1), ThreadPoolExecutor(1)
        self._store = MooncakeDistributedStore()
        home = config.homes[0]
        metadata = f"http://{home}:{METADATA_PORT}/metadata"
        code = self._store.setup(
            config.address, metadata, 0, TRANSFER_BYTES, "tcp", "", f"{home}:{MASTER_PORT}"
        )
        if code:
            raise RuntimeError(f"Mooncake's client could not be set up: {code}")

    def join(self) -> bool:
        """Return True: Mooncake has no handshake, and keys alone keep different parameters apart."""
        return True

    def begin_exists(self, block_keys: Sequence[bytes], first: int = 0) -> Future[int]:
        """Begin to ask how many blocks of a chain, from number `first` on, are there for all ranks."""
        last, ranks = len(self.space.object_bytes) - 1, range(self.space.shard_count)
        per_rank = [
            self.blocks.references(block_keys, last, rank=rank * self.space.ranks_of_shard)[first:]
            for rank in ranks
        ]
        names = [one.key.hex() for block in zip(*per_rank, strict=True) for one in block]

        def ask() -> int:
            found = self._store.batch_is_exist(names)
            there = next((index for index, one in enumerate(found) if one != 1), len(names))
            return there // len(ranks)

        return self._loads.submit(ask)

    def begin_load(self, items: Sequence[Item], on_moved: OnMoved) -> Future[list[bool]]:
        """Begin to load objects into their buffers, in order; the result says for each whether it arrived.

        `on_moved` is called with each object's number and whether it arrived.
        """

        def load() -> list[bool]:
            arrived: list[bool] = []
            for start in range(0, len(items), BATCH):
                batch = items[start : start + BATCH]
                sizes = [memoryview(item.buffer).nbytes for item in batch]
                places = [_address(item) for item in batch]
                for place, size in zip(places, sizes, strict=True):
                    self._store.register_buffer(place, size)
                got = self._store.batch_get_into([item.block.key.hex() for item in batch], places, sizes)
                for place in places:
                    self._store.unregister_buffer(place)
                for size, one in zip(sizes, got, strict=True):
                    on_moved(len(arrived), one == size)
                    arrived.append(one == size)
                    self._stats.store_bytes += size if one == size else 0
            return arrived

        return self._loads.submit(load)

    @property
    def is_answering(self) -> bool:
        """Return True: Mooncake is always asked."""
        return True

    def failed_to_load(self, block_keys: Sequence[bytes]) -> None:
        """Do nothing: each look-up asks Mooncake for all that it needs."""

    def begin_store_blocks(self, blocks: Sequence[Block]) -> Future[int]:
        """Begin to store blocks, whose content is copied before this returns.

        The result is the number of blocks if all were stored, or 0.
        """
        read = [block() if callable(block) else block for block in blocks]
        objects = [block for block in read if block is not None]

        def store() -> int:
            items = [item for block in objects for item in block]
            values = [bytes(item.buffer) for item in items]
            held = self._store.put_batch([item.block.key.hex() for item in items], values) == 0
            self._stats.stored_bytes += sum(map(len, values)) if held else 0
            return len(blocks) if held and len(objects) == len(blocks) else 0

        return self._stores.submit(store)

    def stats(self) -> dict[str, Any]:
        """Return the counters; bytes loaded from Mooncake count as loaded from storage nodes."""
        return self._stats.report()

    def close(self) -> None:
        """Close the store if this is its last user."""
        with _opening:
            self.users -= 1
            if self.users:
                return
            _opened.pop(self._address, None)
        self._loads.shutdown()
        self._stores.shutdown()
        self._store.close()


def open_mooncake(config: PoolConfig, space: KvSpace) -> MooncakePool:
    """Return the pool at an address, which scheduler and worker of a process share."""
    with _opening:
        if config.address not in _opened:
            _opened[config.address] = MooncakePool(config, space)
        _opened[config.address].users += 1
        return _opened[config.address]


def opened() -> list[MooncakePool]:
    """Return the pools that this process has open."""
    return list(_opened.values())


class WeirMooncakeConnector(WeirConnector):
    """Connector of vLLM that stores objects in Mooncake."""

    _open_pool = staticmethod(open_mooncake)  # type: ignore[assignment] # it has the methods that the connector calls


def _address(item: Item) -> int:
    return ctypes.addressof(ctypes.c_char.from_buffer(item.buffer))
