"""Knowledge of a live router about nodes and pools: their last reports (hostlib.node.routed,
controller.pool.residents).

It is only for comparison with the emulator. Live nodes also report that a storage node has lost a block, when
they ask for it; the simulated router never learns of that.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from random import Random

from hostlib.client.backlogs import Backlogs
from scenario.machine import Machine
from simulator.control import SwitchControl
from simulator.emulated.client import EmulatedClient
from simulator.events import Loop
from simulator.messages import Block
from simulator.node import Node
from simulator.routing import ClusterParts, SimulatedCluster
from workload.conductor import transfer_s
from workload.trace import Request


@dataclass(slots=True)
class _Told:
    """Last report of a node."""

    held: set[Block] = field(default_factory=set)
    changes: int = -1
    """Number of changes of the node's memory until the report."""
    link_free_s: float = 0.0
    """Time in seconds at which the blocks that it waited for will have come."""
    homes: Backlogs = field(default_factory=Backlogs)


class ReportedCluster(SimulatedCluster):
    """Cluster that knows reports alone.

    Nodes report every `machine.node_report_s`, from random moments on, and when a prefill has ended.
    Controllers report the content of their pools every `machine.pool_report_s`.
    """

    def __init__(
        self,
        loop: Loop,
        parts: ClusterParts,
        machine: Machine,
        seed: int,
        past: Iterable[Block] = (),
    ) -> None:
        """Start the reports; `past` are the blocks that the router knows storage nodes to hold from the
        start."""
        super().__init__(loop, parts)
        self._known = {block.key for block in past}
        """Keys of blocks that storage nodes are known to hold."""
        self._machine = machine
        self._told = [_Told() for _ in parts.nodes]
        self._pools: list[frozenset[bytes]] = [frozenset() for _ in parts.controls]
        draw = Random(f"reports {seed}")
        for place in range(self.nodes):
            loop.after(draw.uniform(0.0, machine.node_report_s), self._node_on_time, place)
        for place, control in enumerate(parts.controls):
            loop.after(draw.uniform(0.0, machine.pool_report_s), self._pool_on_time, place, control)

    def held_blocks(self, node: int, request: Request) -> int:
        held = self._told[node].held
        chain = self._parts.library.chain(request)
        return next((at for at, block in enumerate(chain) if block not in held), len(chain))

    def transfer_s(self, node: int, request: Request, first: int, end: int) -> float:
        told, asker, now_s = self._told[node], self._parts.nodes[node], self.now_s()
        blocks = self._parts.library.chain(request)[first:end]
        homes = [None if self._pooled(block) else block.home for block in blocks]
        link_s = max(0.0, told.link_free_s - now_s)
        return transfer_s(homes, asker.block_s, link_s, lambda home: told.homes.wait_s(home, now_s))

    def prefilled(self, node: int) -> None:
        """Take a report of what a node holds now that its prefill has ended."""
        self._report(self._told[node], self._parts.nodes[node])

    def _stored(self, block: Block) -> bool:
        return block.key in self._known or self._pooled(block)

    def _pooled(self, block: Block) -> bool:
        return any(block.key in pool for pool in self._pools)

    def _node_on_time(self, place: int) -> None:
        self._report(self._told[place], self._parts.nodes[place])
        self._loop.after(self._machine.node_report_s, self._node_on_time, place)

    def _pool_on_time(self, place: int, control: SwitchControl) -> None:
        self._pools[place] = frozenset(control.pool.there)
        self._loop.after(self._machine.pool_report_s, self._pool_on_time, place, control)

    def _report(self, told: _Told, node: Node) -> None:
        if told.changes != node.memory.changes:
            told.changes, told.held = node.memory.changes, node.memory.keys()
        now_s = self._loop.now
        waiting = 0.0
        if isinstance(node.fetcher, EmulatedClient):
            self._known.update(block.key for block in node.fetcher.newly_stored())
            waiting = node.fetcher.waiting_blocks()
        told.link_free_s = now_s + waiting * node.block_s
        for store in self._parts.stores:
            told.homes.report(store.name, node.home_backlog_s(store.name), now_s)
