"""Storage nodes on a network in memory, and engines that use them as a pool, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

from hostlib.client.client import Client
from hostlib.client.client_options import ClientOptions
from hostlib.client.health import HealthOptions
from hostlib.engine import Item, KvPool, KvSpace, ObjectPool, PoolConfig
from hostlib.protocol import wire
from hostlib.protocol.content import derivation
from hostlib.protocol.members import Members
from hostlib.storage.storage_node import StorageNode
from hostlib.storage.store import BlockStore
from tests.hostlib.network import MemoryNetwork
from tests.hostlib.sealed import SEAL, place

SPACE = KvSpace(
    name="chat", model="weights:1", layout="rows", dtype="float32", block_tokens=4, object_bytes=(1500, 700)
)


class PoolWorld:
    """Storage nodes `homes`, and engines, each with a client of its own."""

    def __init__(self, homes: int = 4, replicas: int = 1) -> None:
        self.homes = [f"10.0.1.{number}" for number in range(1, homes + 1)]
        self.network = MemoryNetwork()
        self.members = self.network.members = Members.of(self.homes, replicas)
        self.stores: dict[str, BlockStore] = {}
        self.nodes: dict[str, StorageNode] = {}
        for home in self.homes:
            self.start(home)
        self._engines = 0

    def start(self, home: str) -> None:
        """A storage node that holds nothing, in place of the one at this address."""
        self.stores[home] = BlockStore(1 << 26, None, derivation(SEAL))
        self.nodes[home] = StorageNode(self.network.port(home), self.stores[home])

    def config(self, **settings: Any) -> PoolConfig:
        self._engines += 1
        given = {"address": f"10.0.0.{self._engines}", "homes": self.homes, "replicas": self.members.replicas}
        return PoolConfig.from_mapping(given | settings)

    def client(self, config: PoolConfig) -> Client:
        options = ClientOptions(health=HealthOptions(silence_s=config.silence_s))
        return Client(self.network.port(config.address), self.members, SEAL, options)

    def objects(self, **settings: Any) -> ObjectPool:
        config = self.config(**settings)
        return ObjectPool(self.client(config), config)

    def pool(self, space: KvSpace = SPACE, **settings: Any) -> KvPool:
        config = self.config(**settings)
        return KvPool(self.client(config), config, SEAL, space)

    def home(self, key: bytes) -> str:
        """The first of a key's homes."""
        return self.members.homes(key)[0].address

    def copies(self, key: bytes) -> int:
        return sum(place(key) in store for store in self.stores.values())

    def asked(self) -> int:
        """Number of questions that were sent about blocks."""
        stats = [data for *_, data in self.network.log if data[1] == wire.OP_STAT]
        return sum(any(wire.decode(data).key) for data in stats)


async def timed(work: Awaitable[Any]) -> tuple[Any, float]:
    """What it gives, and how many seconds it took."""
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    return await work, loop.time() - began_s


def keys(count: int, first: int = 0) -> list[bytes]:
    """Keys of a prompt's blocks."""
    return [SEAL.key(b"block", b"%d" % number) for number in range(first, first + count)]


def blocks_of(pool: KvPool, block_keys: list[bytes]) -> list[list[Item]]:
    """Objects of blocks; their content says whose they are."""
    found: list[list[Item]] = [[] for _ in block_keys]
    for index, length in enumerate(SPACE.object_bytes):
        for items, block in zip(found, pool.references(block_keys, index), strict=True):
            items.append(Item(block, content(block.key, length)))
    return found


def content(key: bytes, length: int) -> bytes:
    return (key * (length // len(key) + 1))[:length]
