"""Runs in which nodes lend one another what they hold, and there is no storage node.

A block's content follows from its key. Where a plan writes a block, a node computes it; nothing is deleted.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from experiments.simulate_faults.history import LOST, UNREADABLE, WRONG
from experiments.simulate_faults.plan import CHAIN_BLOCKS, MAX_FRAGMENTS, NODES, STORE_FAULTS
from experiments.simulate_faults.player import Player
from experiments.simulate_faults.topology import LINK_BIT_S
from experiments.simulate_faults.world import World
from hostlib.client.client import Client
from hostlib.client.client_options import ClientOptions
from hostlib.model.watched_tiers import WatchedTiers
from hostlib.peer.index import IndexConfig, IndexProcess
from hostlib.peer.lender import Lender
from hostlib.protocol.content import block_content
from hostlib.protocol.errors import TransferError
from hostlib.protocol.tenancy import seal_of
from hostlib.protocol.transfer import BlockRef
from hostlib.protocol.wire import TENANT_PUBLIC, VALUE_BYTES
from hostlib.transport.shared_endpoint import SharedEndpoint

if TYPE_CHECKING:
    from collections.abc import Callable

    from experiments.simulate_faults.plan import Fault, Operation, Plan
    from hostlib.protocol.transfer import FetchedBlock
    from topologies.engines import Artifacts

GPU_BLOCKS: Final = 4
DRAM_BLOCKS: Final = 12
SILENT_S: Final = 12.0
"""Longer than a node asks nothing of another one that did not answer."""


def block_bytes(key: bytes) -> int:
    """Return how long the block of a key is."""
    return 1 + int.from_bytes(key[:4], "big") % (MAX_FRAGMENTS * VALUE_BYTES)


class LendingWorld(World):
    """Nodes that lend, and their index."""

    def __init__(self, plan: Plan, artifacts: Artifacts) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._socket = str(Path(self._folder.name) / "index")
        self._index: IndexProcess | None = None
        self.tiers: list[WatchedTiers] = []
        self.lenders: list[Lender] = []
        super().__init__(plan, artifacts)
        self.start_index()

    def start_index(self) -> None:
        """Start it if there is none; it hears of the nodes what they hold."""
        if self._index is None:
            nodes = [str(host.ipv4) for host in self.fabric.hosts.values()]
            self._index = IndexProcess(
                IndexConfig(
                    result="", socket=self._socket, nodes=nodes, block_fragments=MAX_FRAGMENTS / 2,
                    link_bit_s=LINK_BIT_S,
                )
            )  # fmt: skip

    def stop_index(self) -> None:
        """Stop it, and with it what it knew."""
        if self._index is not None:
            self._index.close()
            self._index = None

    def tenant(self, node: int) -> int:
        """Return that of all nodes: tenants do not go with lending."""
        return TENANT_PUBLIC

    def restart_client(self, node: int) -> None:
        """Restart a node that was killed, or is; what it held is gone."""
        self.lenders[node].close()
        super().restart_client(node)

    def recovered(self) -> bool:
        """Return whether all nodes are connected with the index."""
        return self.controllers.last is not None and all(one.lending.joined for one in self.lenders)

    def close(self) -> None:
        """End everything."""
        super().close()
        for lender in self.lenders:
            lender.close()
        self.stop_index()
        self._folder.cleanup()

    def _client(self, node: int) -> Client:
        name = self.fabric.nodes[node]
        port, tiers = self.network.port(name), WatchedTiers(GPU_BLOCKS, DRAM_BLOCKS)
        seal = self.seals.setdefault(TENANT_PUBLIC, seal_of(TENANT_PUBLIC, None))
        shared = SharedEndpoint(port)
        lender = Lender(
            shared.answering, port.address, self.members, LINK_BIT_S, self._socket, tiers, seal,
            block_content, block_bytes,
        )  # fmt: skip
        lender.lending.join()
        self.ports[node : node + 1] = [port]
        self.tiers[node : node + 1] = [tiers]
        self.lenders[node : node + 1] = [lender]
        return Client(shared.client, self.members, seal, ClientOptions(latencies_kept=1))


class LendingPlayer(Player):
    """One run of a plan in which nodes lend."""

    _world: LendingWorld

    def _make_world(self) -> LendingWorld:
        return LendingWorld(self._plan, self._artifacts)

    async def _read(self, operation: Operation) -> None:
        """Fetch what the node lacks of a chain, and compute the rest."""
        node, world = operation.node, self._world
        client, lending, tiers = world.clients[node], world.lenders[node].lending, world.tiers[node]
        first = operation.key - operation.key % CHAIN_BLOCKS
        chain = [self._block(node, key)[1] for key in range(first, first + CHAIN_BLOCKS)]
        located = await lending.locate([block for block in chain if tiers.use(block.key) is None])
        lending.promise(located)
        fetched = await client.get_chain(located)
        for block, got in zip(located, fetched.blocks, strict=False):
            self._check(block.key, got)
        tiers.keep([block.key for block in chain])
        if fetched.ended_by is not None:
            raise fetched.ended_by

    async def _write(self, operation: Operation) -> None:
        self._world.tiers[operation.node].keep([self._block(operation.node, operation.key)[1].key])

    async def _delete(self, operation: Operation) -> None:
        pass

    def _check(self, key: bytes, block: FetchedBlock) -> None:
        self.history.outcomes["read"] += 1
        self.trace.update(block.content)
        if block.content != block_content(key, block_bytes(key)):
            text = f"block {key.hex()}: read what nobody has computed"
            self.history.violation(WRONG, f"{self._loop.time():.4f} s: {text}")

    async def _read_back(self) -> None:
        """Check that the next node finds and reads what each node holds in the end."""
        await asyncio.sleep(SILENT_S)
        world = self._world
        for node, tiers in enumerate(world.tiers):
            other = (node + 1) % NODES
            for key in list(tiers.keys()):
                located = await world.lenders[other].lending.locate([BlockRef(key)])
                if not located and key not in world.tiers[other]:
                    self.history.violation(LOST, f"block {key.hex()}: the index does not know who holds it")
                for block in located:
                    try:
                        self._check(key, await world.clients[other].get(block))
                    except TransferError as error:
                        self.history.violation(UNREADABLE, f"is held, and can't be read in the end: {error}")

    def _fault_named(self, fault: Fault) -> Callable[[Fault], None]:
        """Return the method that carries out a fault; in place of a storage node, the index stops."""
        if fault.kind in (*STORE_FAULTS, "slow_disk"):
            return self._stop_index
        return super()._fault_named(fault)

    def _stop_index(self, fault: Fault) -> None:
        self._world.stop_index()
        self._later(fault, self._world.start_index)
