"""Clients and storage nodes with disks on an in-memory network, in virtual time."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from hashlib import blake2b

from hostlib.client.client import Client
from hostlib.client.client_options import ClientOptions
from hostlib.client.health import HealthOptions
from hostlib.protocol import wire
from hostlib.protocol.block import Place
from hostlib.protocol.content import derivation
from hostlib.protocol.members import Members, State
from hostlib.protocol.tombstones import Tombstones
from hostlib.protocol.transfer import BlockRef
from hostlib.storage.simulated_disk import SimulatedDisk
from hostlib.storage.ssd import SsdTier
from hostlib.storage.storage_node import StorageNode
from hostlib.storage.storage_options import StorageOptions
from hostlib.storage.store import BlockStore
from hostlib.storage.store_options import StoreOptions
from tests.hostlib.network import NO_FAULTS, Faults, MemoryNetwork, commit_in_virtual_time
from tests.hostlib.sealed import SEAL, TENANT

NODE = "10.0.0.1"
BLOCK_BYTES = 3 * 512 + 100
FRAGMENTS = 4
PATIENT = HealthOptions(silence_s=30.0)
"""For networks that lose much more than real ones."""


def key(number: int) -> bytes:
    return blake2b(number.to_bytes(4, "big"), digest_size=16).digest()


def ref(number: int) -> BlockRef:
    return BlockRef(key(number))


def content(number: int, length: int = BLOCK_BYTES) -> bytes:
    return bytes((number + at) % 251 for at in range(length))


class World:
    """Some storage nodes with disks, a client, and the network between them."""

    def __init__(
        self,
        homes: int = 3,
        replicas: int = 1,
        faults: Faults = NO_FAULTS,
        seed: int = 0,
        options: ClientOptions | None = None,
        store_options: StoreOptions | None = None,
        dram_bytes: int = 1 << 20,
        controller: str | None = None,
    ) -> None:
        """`controller`: who is told that nodes live which were started."""
        self.network = MemoryNetwork(faults, seed)
        self.clock_s = 1_000_000_000.0
        """Of walls, which go on while nodes are off."""
        self.members = Members.of([f"10.0.0.{101 + n}" for n in range(homes)], replicas)
        self.network.members = self.members
        self.disks = {home.address: SimulatedDisk(seed=seed) for home in self.members.nodes}
        self.nodes: dict[str, StorageNode] = {}
        self.stores: dict[str, BlockStore] = {}
        self._store_options, self._dram_bytes = store_options, dram_bytes
        self._controller = controller
        for home in self.members.nodes:
            self.start(home.address)
        self.options = options
        self.client = self.another_client(NODE)

    def start(self, address: str) -> StorageNode:
        """A storage node on its disk, as after a restart."""
        ssd = SsdTier(self.disks[address], 1 << 30, run=commit_in_virtual_time)
        stones = Tombstones(lambda: self.clock_s)
        store = BlockStore(self._dram_bytes, ssd, derivation(SEAL), self._store_options, stones)
        options = StorageOptions(address, controller=self._controller)
        node = StorageNode(self.network.port(address), store, options, self.members)
        self.stores[address], self.nodes[address] = store, node
        return node

    def kill(self, address: str) -> None:
        """The machine loses its power."""
        self.network.dead.add(address)
        self.nodes[address].crash()
        self.disks[address].power_cut()

    def restart(self, address: str) -> StorageNode:
        """It is back."""
        self.network.dead.discard(address)
        return self.start(address)

    def another_client(self, address: str) -> Client:
        return Client(self.network.port(address), self.members, SEAL, self.options)

    def homes(self, number: int, replicas: int | None = None) -> list[str]:
        return [home.address for home in self.members.homes(key(number), replicas)]

    def holders(self, number: int) -> list[str]:
        return [address for address, store in self.stores.items() if Place(TENANT, key(number)) in store]

    def announce(self, *states: State) -> Members:
        """A controller's list with these states reaches everyone."""
        nodes = tuple(
            replace(node, state=state) for node, state in zip(self.members.nodes, states, strict=True)
        )
        self.members = Members(self.members.epoch + 1, self.members.replicas, nodes)
        self.repeat()
        self.network.members = self.members
        return self.members

    def repeat(self) -> None:
        """The controller's list reaches everyone, as with each probe."""
        message = wire.Message(wire.OP_MEMBERS, bytes(16), 0, 0, value=self.members.encode())
        for address in list(self.network.ports):
            self.network.deliver("10.255.255.254", address, wire.encode(message))

    def sent(self, source: str, op: int) -> list[tuple[str, wire.Message]]:
        """Destination and message of all that left a host."""
        decoded = ((to, wire.decode(data)) for origin, to, data in self.network.log if origin == source)
        return [(to, message) for to, message in decoded if message.op == op]


async def put_all(world: World, first: int, count: int) -> None:
    """Put blocks of growing lengths, durably and at two homes."""
    await asyncio.gather(
        *(
            world.client.put(ref(n), content(n, 100 + 200 * n), durable=True, replicas=2)
            for n in range(first, first + count)
        )
    )
