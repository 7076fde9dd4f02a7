"""Routing of a simulation's requests to nodes: planned beforehand, or decided when a request comes, by the
conductor or by a router that learns from the workers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from scenario.tables import Nodes, Workload
from simulator.control import SwitchControl
from simulator.direct import DirectPool
from simulator.events import Loop
from simulator.messages import Block
from simulator.node import Node
from simulator.peers import PeerPool
from simulator.prefix_routing import LiveRouter
from simulator.store import Store
from simulator.workload import Library, delay
from workload.conductor import Conductor, ConductorOptions, transfer_s
from workload.cost import CostModel
from workload.schedule import CONDUCTOR, PlannedScheduler, Route, make_scheduler, share_out
from workload.trace import Request


@dataclass(frozen=True)
class ClusterParts:
    """Parts of a system that the conductor looks at."""

    nodes: Sequence[Node]
    stores: Sequence[Store]
    controls: Sequence[SwitchControl]
    shared: DirectPool | PeerPool | None
    """Pool that is no storage nodes, if there is one."""
    library: Library
    cost: CostModel


class SimulatedCluster:
    """State of nodes, stores and pools, without the delay of reports (workload.conductor.Cluster)."""

    def __init__(self, loop: Loop, parts: ClusterParts) -> None:
        self.nodes = len(parts.nodes)
        self._loop, self._parts = loop, parts
        self._stores = {store.name: store for store in parts.stores}
        self._fetching = any(node.fetcher is not None for node in parts.nodes)

    def now_s(self) -> float:
        return float(self._loop.now)

    def held_blocks(self, node: int, request: Request) -> int:
        return self._parts.nodes[node].held(self._parts.library.chain(request))

    def stored_blocks(self, request: Request) -> int:
        chain = self._parts.library.chain(request) if self._fetching else []
        return next((at for at, block in enumerate(chain) if not self._stored(block)), len(chain))

    def transfer_s(self, node: int, request: Request, first: int, end: int) -> float:
        asker = self._parts.nodes[node]
        blocks = self._parts.library.chain(request)[first:end]
        if isinstance(self._parts.shared, PeerPool):
            return self._parts.shared.transfer_s(node, blocks)
        homes = [None if self._pooled(block) else block.home for block in blocks]
        return transfer_s(homes, asker.block_s, asker.link_backlog_s, asker.home_backlog_s)

    def prefill_s(self, request: Request, held_blocks: int) -> float:
        return self._parts.cost.request_prefill_s(request.input_tokens, held_blocks)

    def computed_tokens(self, node: int, request: Request) -> int:
        """Return the tokens of a prompt that a node neither holds, from the first token on, nor can fetch."""
        blocks = max(self.held_blocks(node, request), self.stored_blocks(request))
        return self._parts.cost.prefill_span(request.input_tokens, blocks)[0]

    def prefilled(self, node: int) -> None:
        """Note that a node's prefill has ended; it changes nothing, as all state is known at once."""

    def _stored(self, block: Block) -> bool:
        if self._parts.shared is not None:
            return self._parts.shared.has(block)
        return self._pooled(block) or self._stores[block.home].holds(block)

    def _pooled(self, block: Block) -> bool:
        return any(control.pool.is_there(block.key) for control in self._parts.controls)


class Router:
    """Router that gives each request its node, in order of arrival."""

    def __init__(
        self, workload: Workload, nodes: Nodes, cluster: SimulatedCluster, live: LiveRouter | None = None
    ) -> None:
        """Make the router; `live` decides instead of a scheduler."""
        self._live, self._cluster = live, cluster
        self.conductor: Conductor | None = None
        self._workload: Workload = workload
        if workload.scheduler == CONDUCTOR:
            options = ConductorOptions(
                overlapped=workload.estimate == "overlapped", ttft_slo_s=workload.ttft_slo_s
            )
            self.conductor = Conductor(cluster, options, workload.seed)
        self._nodes = nodes

    def arrivals(self, requests: Sequence[Request]) -> Iterator[tuple[Request, Route | None]]:
        """Return requests, delayed as the scenario says, with their routes if these are known beforehand."""
        if self.conductor is not None or self._live is not None:
            return iter([(request, None) for request, _ in self._late((r, 0) for r in requests)])
        nodes = self._nodes
        first = nodes.count - nodes.joining
        scheduler = self._planned(first)
        planned = self._late(share_out(requests, scheduler, nodes.count, nodes.joining, nodes.joins_at))
        return iter([(request, Route(node)) for request, node in planned])

    def route(self, request: Request, planned: Route | None) -> Route | None:
        """Return the route of a request that comes now, or None if it is refused."""
        if self._live is not None:
            return self._live.assign(request)
        return planned if self.conductor is None else self.conductor.assign(request)

    def prefilled(self, route: Route) -> None:
        """Note that the first token of a request is there."""
        if self.conductor is not None:
            self._cluster.prefilled(route.node)
            self.conductor.prefilled(route.number)
        if self._live is not None:
            self._live.prefilled(route.number)

    def answered(self, route: Route) -> None:
        """Note that the last token of a request is there."""
        if self._live is not None:
            self._live.answered(route.number)

    def _planned(self, nodes: int) -> PlannedScheduler:
        """Make the scheduler that plans ahead, for so many nodes at first."""
        return make_scheduler(self._workload.scheduler, nodes, self._workload.seed)

    def _late(self, assigned: Iterable[tuple[Request, int]]) -> list[tuple[Request, int]]:
        return delay(assigned, self._workload.jitter_s, self._workload.seed)
