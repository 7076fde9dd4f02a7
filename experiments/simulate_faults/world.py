"""The hosts of one run, and what can befall them."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from controller.p4_constants import SLOT_CHECK
from experiments.simulate_faults.control import Controllers, tenant_of
from experiments.simulate_faults.network import HostPort, Network
from experiments.simulate_faults.plan import NODES, STORES
from experiments.simulate_faults.switch import SimulatedSwitch
from experiments.simulate_faults.topology import FABRICS
from hostlib.client.client import Client
from hostlib.client.client_options import ClientOptions
from hostlib.client.pushed import PushedBlocks
from hostlib.protocol.block import Block, decode_record
from hostlib.protocol.content import derivation
from hostlib.protocol.members import Members, State, is_later
from hostlib.protocol.seal import Seal
from hostlib.protocol.tombstones import Tombstones
from hostlib.storage.simulated_disk import SimulatedDisk
from hostlib.storage.ssd import SsdTier
from hostlib.storage.storage_node import StorageNode
from hostlib.storage.storage_options import StorageOptions
from hostlib.storage.store import BlockStore

if TYPE_CHECKING:
    from experiments.simulate_faults.plan import Plan
    from hostlib.protocol.block import Derived, Place
    from hostlib.storage.joining import Joining
    from topologies.engines import Artifacts

COMMIT_S: Final = 0.002
DRAM_BYTES: Final = 64 << 10
"""Bytes of DRAM: so few that most blocks are read from the disk."""
SSD_BYTES: Final = 1 << 30
SSD_BYTES_PER_S: Final = 10e6
"""A block of 8 fragments takes 0.4 ms to read."""
SECRETS: Final = {7: b"a secret of sixteen bytes or more", 8: b"another secret of sixteen bytes "}


class Store:
    """A storage node: its disk outlives it."""

    def __init__(self, world: World, index: int) -> None:
        self.name = world.fabric.stores[index]
        self.address = str(world.fabric.hosts[self.name].ipv4)
        self.disk = SimulatedDisk(seed=world.plan.seed * STORES + index)
        self.slow_s = 0.0
        self._disk_slower = 1.0
        self.node: StorageNode | None = None
        self.port: HostPort
        self._blocks: BlockStore
        self._world = world

    def start(self) -> None:
        """Start the storage node on what the disk has."""
        world = self._world
        self.port = world.network.port(self.name)
        ssd = SsdTier(self.disk, SSD_BYTES, run=self._commit)
        stones = Tombstones(asyncio.get_running_loop().time)
        store = BlockStore(DRAM_BYTES, ssd, derivation(world.seals[7]), tombstones=stones)
        options = StorageOptions(
            self.address, ssd_bytes_per_s=SSD_BYTES_PER_S, controller=world.controller_of(self.name)
        )
        self._blocks = store
        self.node = StorageNode(self.port, store, options, world.members)
        self.slow_down_disk(self._disk_slower)
        self.node.start()

    def slow_down_disk(self, times: float) -> None:
        """Make the disk so many times slower to read and to write, whichever process uses it."""
        self._disk_slower = times
        if self.node is not None:
            self.node.set_ssd_rate(SSD_BYTES_PER_S / times)

    def kill(self, keep: bool | None = None) -> None:
        """Have the machine lose its power."""
        if self.node is not None:
            self.node.crash()
            self.node = None
        self.port.receiver = None
        self.disk.power_cut(keep)

    def content(self, place: Place) -> bytes | None:
        """Return what it has at a place, None for nothing, without an effect on what it does next."""
        block: Block | Derived | None = None
        if self.node is not None:
            block = self._blocks._dram.get(place)
        if block is None:
            block = self.disk.read(place.name(), lambda record: decode_record(place, record))
        return block.content if isinstance(block, Block) else None

    async def _commit(self, work: Callable[[], None]) -> None:
        """Carry out disk work after its time, in place of a thread."""
        await asyncio.sleep(self._disk_slower * COMMIT_S + self.slow_s)
        work()


class World:
    """The whole simulated system; everything that can go wrong is a method or an attribute of a part."""

    def __init__(self, plan: Plan, artifacts: Artifacts) -> None:
        self.plan = plan
        self.seals = {tenant: Seal(tenant, secret) for tenant, secret in SECRETS.items()}
        self.random = random.Random(plan.seed)
        self.fabric = FABRICS[plan.topology]()
        self.network = Network(plan.seed, self.fabric)
        clock_s = asyncio.get_running_loop().time
        self.network.switches = {
            name: SimulatedSwitch(self.fabric.device_id(name), partial(self.network.transmit, name), clock_s)
            for name in self.fabric.switches
        }
        self.stores = [Store(self, index) for index in range(len(self.fabric.stores))]
        homes = [str(self.fabric.hosts[name].ipv4) for name in self.fabric.answering]
        self.members = Members.of(homes, plan.replicas)
        self.controllers = Controllers(
            self.fabric, artifacts, plan.replicas, self.network.switches, plan.seed
        )
        self.ports: list[HostPort] = []
        self.pushed: list[PushedBlocks] = []
        self.clients = [self._client(node) for node in range(NODES)]
        for store in self.stores:
            store.start()

    def tenant(self, node: int) -> int:
        """Return the tenant of a node."""
        return tenant_of(node)

    def controller_of(self, host: str) -> str:
        """Return the address under which a host reaches the controller."""
        return str(self.fabric.controller_of(host).ipv4)

    def restart_client(self, node: int) -> None:
        """Restart the client of a node that was killed, or is killed now."""
        self.clients[node].close()
        self.clients[node] = self._client(node)

    def hosts(self) -> list[HostPort]:
        """Return the ports of stores, then of nodes."""
        return [store.port for store in self.stores] + self.ports

    def held(self, place: Place) -> dict[str, bytes]:
        """Return what each storage node has at a place, by its address; what is off has what is on its
        disk."""
        held = ((store.address, store.content(place)) for store in self.stores)
        return {address: content for address, content in held if content is not None}

    def flip_slot(self) -> None:
        """Flip a bit of a pool's slot."""
        switch = self.random.choice(self.fabric.switches)
        plane, control = self.network.switches[switch].plane, self.controllers.last
        if plane is None or control is None:
            return
        name = self.random.choice((SLOT_CHECK, "ingress.pool.slot_cell_0", "ingress.pool.slot_tag"))
        base = self.random.choice([one.base_slot for one in control.resident(switch).values()] or [0])
        bit = 1 << self.random.randrange(48 if name == SLOT_CHECK else 128)
        plane.set_register(name, base, plane.register(name, base) ^ bit)

    def recovered(self) -> bool:
        """Return whether everybody is back and knows it."""
        if self.controllers.last is None:
            return False
        members = self.controllers.last.membership.members
        return (
            all(store.node is not None and _is_back(store.node.joining) for store in self.stores)
            and all(member.state is State.UP for member in members.nodes)
            and all(client.members.epoch == members.epoch for client in self.clients)
            and not any(client.suspects for client in self.clients)
        )

    def is_behind(self, node: int) -> bool:
        """Return whether a node misses the newest list: what it puts, others may not find at once. Its own
        may have a later epoch, of a controller whose clock was ahead."""
        own = self.clients[node].members.epoch
        lists = [store.node.members for store in self.stores if store.node is not None]
        lists += [client.members for client in self.clients]
        newest = self.controllers.last
        is_ahead = newest is not None and is_later(own, newest.membership.members.epoch)
        return is_ahead or any(is_later(other.epoch, own) for other in lists)

    def misses_lists(self, node: int, key: bytes) -> bool:
        """Return whether a node and the homes that it asks for a key go by one list, and others by a later
        one. Then "not found" is not promised to be true."""
        own = self.clients[node].members.epoch
        return self.is_behind(node) and all(
            epoch in (own, None) for epoch in self._epochs_of_homes(node, key)
        )

    def is_cut_off_with_a_home(self, node: int, key: bytes) -> bool:
        """Return whether that holds for a node and one of these homes. Then what others deleted may be
        read."""
        own = self.clients[node].members.epoch
        return self.is_behind(node) and own in self._epochs_of_homes(node, key)

    def _epochs_of_homes(self, node: int, key: bytes) -> list[int | None]:
        """Return the epoch of the list of each home that a node asks for a key; None for one that is off."""
        epochs = {store.address: store.node.members.epoch for store in self.stores if store.node is not None}
        return [epochs.get(home.address) for home in self.clients[node].members.homes(key)]

    def close(self) -> None:
        """End everything."""
        for control in list(self.controllers.alive):
            self.controllers.stop(control)
        for client in self.clients:
            client.close()
        for store in self.stores:
            if store.node is not None:
                store.node.crash()
        for switch in self.network.switches.values():
            switch.remove()

    def _client(self, node: int) -> Client:
        name = self.fabric.nodes[node]
        port = self.network.port(name)
        self.ports[node : node + 1] = [port]
        options = ClientOptions(
            controller=self.controller_of(name),
            new_content=lambda: self.random.getrandbits(64) or 1,
            latencies_kept=1,
        )
        seal = self.seals[tenant_of(node)]
        self.pushed[node : node + 1] = [PushedBlocks(seal, lambda key: False, lambda key: None)]
        return Client(port, self.members, seal, options, self.pushed[node])


def _is_back(joining: Joining) -> bool:
    """Return whether a storage node has what it missed, and what was put meanwhile by older lists."""
    return joining.caught_up and joining.settled
