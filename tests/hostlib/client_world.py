"""A client, storage nodes without disks, and the in-memory network between them."""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b

from hostlib.client.client import Client
from hostlib.client.client_options import ClientOptions
from hostlib.client.health import HealthOptions
from hostlib.protocol import wire
from hostlib.protocol.block import Place
from hostlib.protocol.content import block_content, derivation, sealed_block
from hostlib.protocol.members import Members
from hostlib.protocol.transfer import BlockRef
from hostlib.storage.storage_node import StorageNode
from hostlib.storage.store import BlockStore
from hostlib.storage.store_options import StoreOptions
from tests.hostlib.network import NO_FAULTS, Faults, MemoryNetwork
from tests.hostlib.sealed import SEAL, TENANT

HOMES = ("10.0.0.101", "10.0.0.102")


NODE = "10.0.0.1"


BLOCK_BYTES = 3 * 512 + 100


FRAGMENTS = 4


def keys(count: int) -> list[bytes]:
    return [blake2b(n.to_bytes(4, "big"), digest_size=16).digest() for n in range(count)]


def refs(count: int) -> list[BlockRef]:
    return [BlockRef(key, depth, count, 7, 30) for depth, key in enumerate(keys(count))]


PATIENT = HealthOptions(silence_s=30.0)
"""For networks that lose much more than real ones."""


class World:
    """One client, some storage nodes, and the network between them."""

    def __init__(
        self,
        held: int = 0,
        faults: Faults = NO_FAULTS,
        seed: int = 0,
        options: ClientOptions | None = None,
        homes: tuple[str, ...] = HOMES,
        replicas: int = 1,
        store_options: StoreOptions | None = None,
    ) -> None:
        self.options = options
        self.network = MemoryNetwork(faults, seed)
        self.members = self.network.members = Members.of(homes, replicas)
        derive = derivation(SEAL)
        self.stores = {home: BlockStore(1 << 24, None, derive, store_options) for home in homes}
        self.nodes = {home: StorageNode(self.network.port(home), self.stores[home]) for home in homes}
        for home, store in self.stores.items():
            own = [key for key in keys(held) if home in self.homes(key)]
            store.preload([Place(TENANT, key) for key in own], BLOCK_BYTES)
        self.client = Client(self.network.port(NODE), self.members, SEAL, options)

    def homes(self, key: bytes) -> list[str]:
        return [home.address for home in self.members.homes(key)]

    def another_client(self, address: str) -> Client:
        return Client(self.network.port(address), self.members, SEAL, self.options)

    def sent_by_client(self, op: int) -> list[wire.Message]:
        messages = [wire.decode(datagram) for source, _, datagram in self.network.log if source == NODE]
        return [message for message in messages if message.op == op]


@lru_cache
def value_of(
    key: bytes, fragment: int, flags: int = 0, write: int = 99, content: bytes | None = None
) -> wire.Message:
    block = sealed_block(SEAL, key, write, content or block_content(key, BLOCK_BYTES))
    return wire.Message(
        wire.OP_VALUE, key, fragment, FRAGMENTS, flags, sequence=0xABCDEF, tenant=TENANT, content=write,
        tag=block.tag(fragment), value=block.value(fragment),
    )  # fmt: skip
