"""Builder of the system that a scenario describes: network, storage, switches with their pools, nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from controller.policies import make_policy
from controller.pool.residual_value import ResidualValue
from hostlib.model.streamer import BandwidthMeter
from hostlib.model.tier_rules import make_rule
from hostlib.model.tiers import LocalTiers
from hostlib.native.lane_options import LaneOptions
from scenario import GB, GBIT_BYTES, Scenario
from scenario.tables import ROUTERS
from simulator.budget import BudgetNode
from simulator.checks import (
    cost_model,
    decode_s,
    ladder,
    make_fabric,
    pool_blocks,
    pool_size,
    rungs,
    sizes,
    spare_blocks,
)
from simulator.chunks import Fetcher
from simulator.client import Client, ClientOptions
from simulator.control import SwitchControl
from simulator.decoders import DecoderPool
from simulator.direct import DirectClient, DirectPool
from simulator.emulated.client import EmulatedClient
from simulator.emulated.control import EmulatedControl
from simulator.emulated.lenders import EmulatedLenders
from simulator.emulated.machine import carrier_of
from simulator.emulated.network import EmulatedNetwork
from simulator.emulated.node import EmulatedNode
from simulator.emulated.pushed import EmulatedPushedParts
from simulator.emulated.reported import ReportedCluster
from simulator.emulated.routing import EmulatedRouter
from simulator.emulated.store import EmulatedStore
from simulator.emulated.switch import EmulatedSwitch
from simulator.events import Loop
from simulator.expected import Teller
from simulator.front import Front, make_front
from simulator.gpu import Gpu
from simulator.hints import Hints, NodeHints
from simulator.lenders import Lender, LenderHints, Lenders
from simulator.link import Link
from simulator.messages import Block, Put
from simulator.network import Network
from simulator.node import Node, Streams
from simulator.peers import PeerHints, PeerPool
from simulator.prefix_routing import LiveRouter, make_router
from simulator.pushed import PushedParts
from simulator.routing import ClusterParts, Router, SimulatedCluster
from simulator.session_times import SessionTimes
from simulator.steps import StepNode
from simulator.store import Store
from simulator.switch import Switch, SwitchOptions
from simulator.warm import Push, hottest
from simulator.watched_routing import WatchedNode, WatchedRouter
from simulator.workload import Demand, Library
from workload.schedule import CONDUCTOR, joining_place

US = 1e-6
NODES: dict[str, type[Node]] = {"budget": BudgetNode, "steps": StepNode}
"""Classes of nodes other than Node, by `nodes.decode`."""


def _ignore(sources: list[str]) -> None:
    """Ignore the end of a fetch of a block that nobody has."""


class System:
    """System that a scenario describes, at rest; `router` decides which node serves a request."""

    def __init__(self, scenario: Scenario, demand: Demand) -> None:
        self.scenario = scenario
        self.loop = Loop()
        self.demand = demand
        self.cost = cost_model(scenario, self.demand.block_tokens)
        self.fabric = make_fabric(scenario)
        stored = scenario.storage.kind == "stores"
        self.sizes = sizes(scenario, self.cost)
        self.library = Library(
            scenario.model.name,
            self.demand.block_tokens,
            self.fabric if stored else None,
            self.sizes.parts,
            ladder(scenario, self.cost),
            scenario.nodes.blend,
        )
        latency_s = scenario.network.latency_us * US
        self._carrier = carrier = carrier_of(self.loop, scenario.machine, scenario.workload.seed)
        """Machine of the emulation, if there is one."""
        given = (self.loop, self.fabric, self.sizes, latency_s, scenario.network.requests_first)
        self.network = Network(*given) if carrier is None else EmulatedNetwork(*given, carrier)
        self.nodes: list[Node] = []
        self.stores: list[Store] = []
        self.switches: list[Switch] = []
        self.controls: list[SwitchControl] = []
        self._control_of: dict[str, SwitchControl] = {}
        self.clients: dict[str, Client] = {}
        """Clients of nodes that fetch from storage nodes, by node."""
        self._holds: dict[str, Callable[[Block], bool]] = {}
        """Functions that return whether a host that answers GETs holds a block, by host."""
        self.direct: DirectPool | None = None
        self.peers: PeerPool | None = None
        self.lenders: Lenders | None = None
        self.decoders: DecoderPool | None = None
        if scenario.decoders.count:
            share = scenario.direct.peer_share if scenario.storage.kind == "peers" else 1.0
            rate = scenario.network.link_gbit_s * share
            nodes = scenario.nodes.count
            self.decoders = DecoderPool(self.loop, self.cost, scenario.decoders, nodes, rate)
        self._hints: Hints | None = None
        self._build()

    def _build(self) -> None:
        scenario = self.scenario
        past = self.library.by_recency(self.demand.past)
        if scenario.storage.kind == "direct":
            self.direct = DirectPool(
                self.loop, scenario.direct, self.sizes.block_bytes, scenario.nodes.count, self._front()
            )
            self.direct.preload(past)
        elif scenario.lends:
            self._build_switches()
            self.lenders = self._build_lenders()
        elif scenario.storage.kind == "peers":
            shared, block_bytes = (scenario.direct, scenario.network), self.sizes.block_bytes
            self.peers = PeerPool(self.loop, *shared, block_bytes, self.network, self._front())
        else:
            self._build_switches()
            self._build_stores(past)
        for place, name in enumerate(self.fabric.nodes):
            self.nodes.append(self._node(place, name))
        first = scenario.nodes.count - scenario.nodes.joining
        if self.peers is not None and scenario.nodes.gate != "never":
            self.peers.preload(past, first)
        if self.lenders is not None and scenario.nodes.gate != "never":
            self.lenders.holders.spread(past, first)
        parts = ClusterParts(
            self.nodes,
            self.stores,
            self.controls,
            self.peers or self.direct,
            self.library,
            self.cost,
        )
        carrier, cluster = self._carrier, SimulatedCluster(self.loop, parts)
        if carrier is not None and carrier.machine.node_report_s and scenario.workload.scheduler == CONDUCTOR:
            cluster = ReportedCluster(self.loop, parts, carrier.machine, scenario.workload.seed, past)
        given = (scenario.workload, scenario.nodes, cluster, self._live_router(cluster))
        self.session_times = SessionTimes()
        self.router = Router(*given) if carrier is None else EmulatedRouter(*given, carrier)

    def _build_lenders(self) -> Lenders:
        latency_s = self.scenario.network.latency_us * US
        given = (self.loop, self.network, self.scenario.direct.lookup_s, self._block_s, latency_s)
        return Lenders(*given) if self._carrier is None else EmulatedLenders(*given, self._carrier)

    def _live_router(self, cluster: SimulatedCluster) -> LiveRouter | None:
        """Make a router that learns from the nodes, which report their load or are watched, if the scenario
        has one."""
        workload, options = self.scenario.workload, self.scenario.nodes
        if workload.scheduler not in ROUTERS:
            return None
        given = (self.demand.block_tokens, workload.seed, self.scenario.routing)
        if options.decode == "budget":
            workers = [node for node in self.nodes if isinstance(node, BudgetNode)]
            return make_router(workload.scheduler, self.loop, workers, *given)
        watched = [WatchedNode() for _ in self.nodes]
        router = make_router(workload.scheduler, self.loop, watched, *given)
        return WatchedRouter(router, watched, cluster.computed_tokens, options.decode == "batched")

    def _front(self) -> Front | None:
        """Make the switch in front of a pool that is read directly."""
        scenario, switches = self.scenario, len(self.fabric.switches)
        fragments = scenario.network.fragments if scenario.storage.kind == "peers" else 1
        return make_front(scenario.direct, scenario.pool, switches, self.sizes.block_bytes, fragments)

    @property
    def _link_bit_s(self) -> float:
        """Return the rate in bit/s at which nodes expect blocks to pass their links."""
        network, carrier = self.scenario.network, self._carrier
        bit_s = network.link_gbit_s * 1e9 * (self.scenario.direct.peer_share if self.peers else 1.0)
        return bit_s if carrier is None else carrier.counted_bit_s(bit_s, network.header_share)

    @property
    def _block_s(self) -> float:
        """Return the seconds in which nodes expect a block to pass their links."""
        return self.cost.fetch_s(self.cost.stored_bytes, self._link_bit_s)

    def _hints_of(
        self, place: int, name: str, fetcher: Fetcher | None
    ) -> NodeHints | PeerHints | LenderHints | None:
        """Make the hints of a node, if it has any; a directly read pool gives none."""
        scenario, kind = self.scenario, self.scenario.nodes.hints
        if kind == "answers" or scenario.nodes.gate != "compare":
            return None
        if self.peers is not None:
            return PeerHints(self.peers, self.loop, place)
        if not self.stores and self.lenders is None:
            return None
        if self._hints is None:
            switches = {switch.name: switch for switch in self.switches}
            self._hints = Hints(
                self.loop, self.network, self._holds, switches, kind == "switch", self._block_s
            )
        if self.lenders is not None and isinstance(fetcher, Lender):
            self.lenders.hints = self._hints
            return LenderHints(self._hints, fetcher, name)
        return NodeHints(self._hints, fetcher) if isinstance(fetcher, Client) else None

    def _build_switches(self) -> None:
        pool, carrier = self.scenario.pool, self._carrier
        options = SwitchOptions(
            merging=pool.merging and pool.memory != "none",
            multicast=pool.multicast,
            pending_cells=pool.pending_cells,
            pending_timeout_s=pool.pending_timeout_s,
            sketch_epoch_s=pool.sketch_epoch_s,
            recirculation_bytes_per_s=self.scenario.network.link_gbit_s * GBIT_BYTES,
        )
        for name in self.fabric.switches:
            memory = None
            if pool.memory == "dram":
                memory = Link(f"{name} memory", pool.memory_gbyte_s * GB, pool.memory_latency_us * US)
            given = (self.loop, name, self.network, options, memory)
            switch = Switch(*given) if carrier is None else EmulatedSwitch(*given, carrier)
            self.network.attach(name, switch)
            self.switches.append(switch)
            if pool_blocks(self.scenario, self.cost):
                self._build_control(switch)

    def _build_control(self, switch: Switch) -> None:
        scenario = self.scenario
        answering = self.fabric.nodes if scenario.lends else self.fabric.stores
        homes = {name: self.fabric.hosts[name].ipv4 for name in answering}
        size = pool_size(scenario, self.cost, self.sizes)
        capacity_blocks, capacity_slots = size.capacity(spare_blocks(scenario, size.whole_blocks))
        link_bit_s = scenario.network.link_gbit_s * 1e9
        policy = make_policy(
            scenario.pool.policy,
            capacity_blocks,
            seed=scenario.workload.seed,
            cost=self.cost,
            link_bit_s=link_bit_s,
            capacity_slots=capacity_slots if self.library.streams else None,
        )
        residual = ResidualValue(self.cost, link_bit_s)
        push_share = len(self.sizes.parts) / self.sizes.fragments if scenario.control.push else 0.0
        given = (self.loop, switch, policy, size, scenario.control, homes, residual, push_share)
        carrier = self._carrier
        control = SwitchControl(*given) if carrier is None else EmulatedControl(*given, carrier, self.cost)
        self._control_of[switch.name] = control
        self.controls.append(control)

    def _build_stores(self, past: Sequence[Block]) -> None:
        storage, block_bytes, carrier = self.scenario.storage, self.cost.stored_bytes, self._carrier
        for name in self.fabric.stores:
            given = (
                self.loop,
                name,
                self.network,
                max(1, int(storage.dram_gb * GB / block_bytes)),
                int(storage.ssd_gb * GB / block_bytes),
                storage.ssd_gbyte_s * GB,
                self._acknowledged,
            )
            store = Store(*given) if carrier is None else EmulatedStore(*given, carrier)
            store.preload(block for block in past if block.home == name)
            self.network.attach(name, store)
            self.network.keepers[name] = store.put
            self._holds[name] = store.holds
            self.stores.append(store)

    def _node(self, place: int, name: str) -> Node:
        scenario, cost = self.scenario, self.cost
        options = scenario.nodes
        running_tokens = options.running_gb * GB / cost.model.kv_bytes_per_token
        slowdown = scenario.model.decoding_slowdown if scenario.model.decoding == "gpu" else 0.0
        batched = options.decode == "batched"
        gpu = Gpu(self.loop, cost, batched, running_tokens, options.chunk_tokens, slowdown)
        tiers: LocalTiers[Block] = LocalTiers(
            int(options.gpu_gb * GB / cost.block_bytes),
            int(options.dram_gb * GB / cost.block_bytes),
            make_rule(options.tiers, cost.block_prefill_s),
        )
        fetcher = self._fetcher(place, name, tiers) if options.gate != "never" else None
        carrier = self._carrier
        node = NODES.get(options.decode, Node if carrier is None else EmulatedNode)(
            self.loop,
            options,
            cost,
            tiers,
            gpu,
            fetcher,
            self._link_bit_s,
            decode_s(scenario, cost),
            self._streams(),
            scenario.model.decoding == "gpu",
            place,
            self.decoders,
            self._hints_of(place, name, fetcher),
        )
        if carrier is not None and isinstance(node, EmulatedNode):
            node.run_on(carrier, name)
        node.teller = self._teller(name)
        return node

    def _teller(self, name: str) -> Teller | None:
        """Make the announcer of a node's new blocks, if the controller expects them; lenders put nothing."""
        (switch,), scenario = self.fabric.graph.adj[name], self.scenario
        expects = scenario.control.expects and scenario.nodes.stores_new and not scenario.lends
        if not expects or switch not in self._control_of:
            return None
        address, link = self.fabric.hosts[name].ipv4, self.network.links[name, switch]
        return Teller(self.loop, self._control_of[switch], address, link, self.library.stored)

    def _streams(self) -> Streams | None:
        """Return what a node needs to stream, or None if blocks have one level."""
        scenario = self.scenario
        levels = tuple(rungs(scenario, self.cost, self.sizes.value_bytes))
        if not levels:
            return None
        target_s = scenario.workload.ttft_slo_s or 0.0
        meter = BandwidthMeter(scenario.network.link_gbit_s * GBIT_BYTES, target_s)
        return Streams(levels, target_s, meter, self.library)

    def _fetcher(self, place: int, name: str, tiers: LocalTiers[Block]) -> Fetcher:
        if self.peers is not None:
            return self.peers.join(name, tiers)
        if self.direct is not None:
            return DirectClient(self.loop, self.direct, place)
        carrier = self._carrier
        target_ms = round(self.scenario.network.target_backlog_ms)  # hosts take whole milliseconds
        options = ClientOptions(LaneOptions(target_backlog_ms=target_ms))
        pushed: PushedParts | None = None
        if self.scenario.control.push:
            own = (tiers.__contains__, tiers.place)
            pushed = PushedParts(*own) if carrier is None else EmulatedPushedParts(*own, carrier)
        given = (self.loop, name, self.network, options, pushed)
        client = Client(*given) if carrier is None else EmulatedClient(*given, carrier)
        if self.lenders is not None:
            lender = self.lenders.join(client, tiers)
            self._holds[name] = lender.holds
            return lender
        self.network.attach(name, client)
        self.clients[name] = client
        return client

    def _acknowledged(self, put: Put) -> None:
        if put.reclaim:
            self._control_of[put.sender].acknowledged(put)
        else:
            self.clients[put.sender].acknowledged(put)

    def warm(self) -> None:
        """Warm the nodes that are to be warm, now or shortly before they join."""
        nodes, requests = self.scenario.nodes, self.demand.requests
        if nodes.joining:
            joins_s = requests[joining_place(len(requests), nodes.joins_at)].arrival_s
            self.loop.at(max(self.loop.now, joins_s - nodes.lead_s), self._warm, nodes.count - nodes.joining)
        else:
            self._warm(0)

    def _warm(self, first: int) -> None:
        """Warm the nodes from the index `first` on with the blocks that were used most until now.

        With push, joining nodes first ask for `Library.before_all`, as live ones do: switches then push to
        them.
        """
        kind, now_s = self.scenario.nodes.warm, self.loop.now
        for client in list(self.clients.values())[first:] if first and self.scenario.control.push else ():
            client.fetch([self.library.before_all()], _ignore)
        if kind == "no":
            return
        count = int(self.scenario.nodes.warm_gb * GB / self.cost.block_bytes)
        asked = (request for request in self.demand.requests if request.arrival_s < now_s)
        blocks = hottest(self.library, (*self.demand.past, *asked), count)
        nodes = dict(zip(self.fabric.nodes[first:], self.nodes[first:], strict=True))
        push = Push(self.loop, self.network, nodes)
        if kind == "there":
            for node in nodes.values():
                for block in reversed(blocks):  # the hottest were used last
                    node.place(block)
        elif kind == "pool":
            push.from_pools(blocks, self.switches)
        elif self.stores:
            push.from_homes(blocks, kind == "multicast")

    def gpus(self) -> Iterator[Gpu]:
        """Yield the GPUs of all nodes and decoders."""
        yield from (node.gpu for node in self.nodes)
        if self.decoders is not None:
            yield from self.decoders.gpus

    def links(self) -> Iterator[Link]:
        """Yield all links that carry blocks."""
        yield from self.network.links.values()
        if self.decoders is not None:
            yield from self.decoders.links
        if self.peers is not None:
            yield from (*self.peers.out_links, *self.peers.in_links)
        if self.direct is not None:
            yield from (*self.direct.devices, *self.direct.readers, *self.direct.writers)
