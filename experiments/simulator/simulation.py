"""Builds what a scenario describes and runs it."""

from __future__ import annotations

import gc
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial

from controller.policies import make_policy
from controller.residual_value import ResidualValue
from experiments.simulator.budget import BudgetNode
from experiments.simulator.checks import (
    check,
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
from experiments.simulator.client import Client, ClientOptions
from experiments.simulator.control import SwitchControl
from experiments.simulator.cpu import Cpu, Process, Timers
from experiments.simulator.decoders import DecoderPool
from experiments.simulator.direct import DirectClient, DirectPool
from experiments.simulator.events import Loop, Steps
from experiments.simulator.front import Front, Whole
from experiments.simulator.gpu import Gpu
from experiments.simulator.hints import Hints, NodeHints
from experiments.simulator.lane import lane_options
from experiments.simulator.link import Link
from experiments.simulator.messages import Block, Put
from experiments.simulator.money import bill
from experiments.simulator.network import Network
from experiments.simulator.node import Fetcher, Node, Streams
from experiments.simulator.peers import PeerHints, PeerPool
from experiments.simulator.result import SimResult, spread, sum_sources
from experiments.simulator.routing import ClusterParts, Router, SimulatedCluster
from experiments.simulator.scenario import GB, GBIT_BYTES, Scenario
from experiments.simulator.schema import Document, ScenarioError
from experiments.simulator.spread import spread_of
from experiments.simulator.store import Store
from experiments.simulator.switch import Switch, SwitchOptions
from experiments.simulator.warm import hottest, push
from experiments.simulator.workload import Demand, Library, make_demand
from hostlib.blending import sum_blends
from hostlib.streamer import BandwidthMeter, mean_level
from hostlib.tier_rules import make_rule
from hostlib.tiers import LocalTiers
from workload.schedule import Route
from workload.trace import Request

US = 1e-6
LONGEST_DRAIN_S = 1e6
"""A run that is not done so long after the last arrival will hardly ever be."""


def simulate(scenario: Scenario) -> SimResult:
    """Run a scenario; ScenarioError where it is impossible."""
    began_s = time.process_time()
    with _without_collector():
        prepared, demand = prepare(scenario)
        return _Simulation(prepared, demand).run(began_s)


def prepare(scenario: Scenario, document: Document | None = None) -> tuple[Scenario, Demand]:
    """Everything that can be found wrong before anything runs; ScenarioError, with a document's lines."""
    check(scenario, document)
    demand = make_demand(scenario)
    scenario = scenario.changed(model={"block_tokens": demand.block_tokens})
    check(scenario, document)
    return scenario, demand


@contextmanager
def _without_collector() -> Iterator[None]:
    """A simulation holds millions of objects and hardly any cycles: looking for these took a third of it."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@dataclass
class _Parts:
    """What was built."""

    nodes: list[Node]
    stores: list[Store]
    switches: list[Switch]
    controls: list[SwitchControl]


class _Simulation:
    def __init__(self, scenario: Scenario, demand: Demand) -> None:
        self._scenario = scenario
        self._loop = Loop()
        self._demand = demand
        self._cost = cost_model(scenario, self._demand.block_tokens)
        self._fabric = make_fabric(scenario)
        stored = scenario.storage.kind == "stores"
        self._sizes = sizes(scenario, self._cost)
        self._library = Library(
            scenario,
            self._demand.block_tokens,
            self._fabric if stored else None,
            self._sizes.parts,
            ladder(scenario, self._cost),
        )
        latency_s = scenario.network.latency_us * US
        machine, seed = scenario.machine, scenario.workload.seed
        self._network = Network(
            self._loop,
            self._fabric,
            self._sizes,
            latency_s,
            machine.link_burst_s,
            scenario.network.requests_first,
        )
        self._cpu = Cpu(self._loop, machine.cores, machine.slowdown, seed) if machine.cores else None
        self._parts = _Parts([], [], [], [])
        self._controls: dict[str, SwitchControl] = {}
        self._clients: dict[str, Client] = {}
        self._holds: dict[str, Callable[[bytes], bool]] = {}
        """By storage node: whether it holds a block."""
        self._direct: DirectPool | None = None
        self._peers: PeerPool | None = None
        self._decoders: DecoderPool | None = None
        if scenario.decoders.count:
            self._decoders = DecoderPool(
                self._loop,
                self._cost,
                scenario.decoders,
                scenario.nodes.count,
                scenario.network.link_gbit_s,
            )
        self._hints: Hints | None = None
        self._left = len(self._demand.requests)
        self._done = self._loop.event()
        self._build()

    def run(self, began_s: float) -> SimResult:
        scenario, loop = self._scenario, self._loop
        for control in self._parts.controls:
            self._tick(control)
        for switch in self._parts.switches:
            self._forget(switch)
        arrivals = self._router.arrivals(self._demand.requests)
        if scenario.nodes.warm != "no":
            self._warm(scenario.nodes.warm)
        if scenario.workload.clients:
            for _ in range(min(scenario.workload.clients, len(self._demand.requests))):
                loop.start(self._client(arrivals))
        else:
            loop.start(self._arrivals(arrivals))
        loop.run(until=self._done)
        return self._result(time.process_time() - began_s)

    # Building.

    def _build(self) -> None:
        scenario = self._scenario
        past = self._library.by_recency(self._demand.past)
        if scenario.storage.kind == "direct":
            self._direct = DirectPool(
                self._loop, scenario.direct, self._sizes.block_bytes, scenario.nodes.count, self._front()
            )
            self._direct.preload(block.key for block in past)
        elif scenario.storage.kind == "peers":
            self._peers = PeerPool(
                self._loop, scenario, self._sizes.block_bytes, self._network, self._front()
            )
        else:
            self._build_switches()
            self._build_stores(past)
        for place, name in enumerate(self._fabric.nodes):
            self._parts.nodes.append(self._node(place, name))
        if self._peers is not None and scenario.nodes.gate != "never":
            self._peers.preload(block.key for block in past)
        parts = ClusterParts(
            self._parts.nodes,
            self._parts.stores,
            self._parts.controls,
            self._peers or self._direct,
            self._library,
            self._cost,
        )
        self._router = Router(scenario, SimulatedCluster(self._loop, parts))

    def _front(self) -> Front | None:
        """What stands before a pool that is read directly."""
        front, pool = self._scenario.direct.front, self._scenario.pool
        if front == "none":
            return None
        size_gb = pool.size_gb * len(self._fabric.switches)
        blocks = int(size_gb * GB / self._sizes.block_bytes) if front == "pool" else 0
        memory = Link("front memory", pool.memory_gbyte_s * GB, pool.memory_latency_us * US)
        kind = Whole if front == "whole" else Front
        fragments = self._scenario.network.fragments if self._scenario.storage.kind == "peers" else 1
        return kind(blocks, memory, self._sizes.block_bytes, fragments)

    def _hints_of(self, place: int, name: str) -> NodeHints | PeerHints | None:
        """What a node is told before it asks; a pool that is read directly tells nothing."""
        scenario, kind = self._scenario, self._scenario.nodes.hints
        if kind == "answers" or scenario.nodes.gate != "compare":
            return None
        if self._peers is not None:
            return PeerHints(self._peers, self._loop, place)
        if not self._parts.stores:
            return None
        if self._hints is None:
            homes = {store.name: store.holds for store in self._parts.stores}
            switches = {switch.name: switch for switch in self._parts.switches}
            block_s = self._cost.fetch_s(self._cost.stored_bytes, scenario.network.link_gbit_s * 1e9)
            hop_s = scenario.network.latency_us * US
            self._hints = Hints(self._loop, self._network, homes, switches, kind == "switch", block_s, hop_s)
        return NodeHints(self._hints, name)

    def _warm(self, kind: str) -> None:
        """Nodes hold what the past used most, or get it now."""
        count = int(self._scenario.nodes.warm_gb * GB / self._cost.block_bytes)
        blocks = hottest(self._library, self._demand.past, count)
        nodes = dict(zip(self._fabric.nodes, self._parts.nodes, strict=True))
        if kind == "there":
            for node in nodes.values():
                for block in reversed(blocks):  # the hottest were used last
                    node.place(block.key)
        elif self._parts.stores:
            push(self._loop, self._network, nodes, blocks, kind == "multicast")

    def _build_switches(self) -> None:
        pool, machine = self._scenario.pool, self._scenario.machine
        options = SwitchOptions(
            merging=pool.merging and pool.memory != "none",
            multicast=pool.multicast,
            pending_cells=pool.pending_cells,
            pending_timeout_s=pool.pending_timeout_s,
            sketch_epoch_s=pool.sketch_epoch_s,
            recirculation_bytes_per_s=self._scenario.network.link_gbit_s * GBIT_BYTES,
            packet_s=machine.switch_packet_s,
        )
        for name in self._fabric.switches:
            memory = None
            if pool.memory == "dram":
                memory = Link(f"{name} memory", pool.memory_gbyte_s * GB, pool.memory_latency_us * US)
            process = Process(self._cpu, machine.switch_wake_s)
            switch = Switch(self._loop, name, self._network, options, memory, process)
            self._network.attach(name, switch)
            self._parts.switches.append(switch)
            if pool_blocks(self._scenario, self._cost):
                self._build_control(switch)

    def _build_control(self, switch: Switch) -> None:
        scenario = self._scenario
        homes = {name: self._fabric.hosts[name].ipv4 for name in self._fabric.stores}
        size = pool_size(scenario, self._cost, self._sizes)
        capacity_blocks, capacity_slots = size.capacity(spare_blocks(scenario, size.whole_blocks))
        policy = make_policy(
            scenario.pool.policy,
            capacity_blocks,
            seed=scenario.workload.seed,
            cost=self._cost,
            capacity_slots=capacity_slots if self._library.streams else None,
        )
        residual = ResidualValue(self._cost, scenario.network.link_gbit_s * 1e9)
        control = SwitchControl(self._loop, switch, policy, size, scenario.control, homes, residual)
        self._controls[switch.name] = control
        self._parts.controls.append(control)

    def _build_stores(self, past: Sequence[Block]) -> None:
        storage, block_bytes = self._scenario.storage, self._cost.stored_bytes
        for name in self._fabric.stores:
            store = Store(
                self._loop,
                name,
                self._network,
                max(1, int(storage.dram_gb * GB / block_bytes)),
                int(storage.ssd_gb * GB / block_bytes),
                storage.ssd_gbyte_s * GB,
                self._acknowledged,
                self._scenario.machine,
                Process(self._cpu, self._scenario.machine.host_wake_s),
            )
            store.preload(block.key for block in past if block.home == name)
            self._network.attach(name, store)
            self._network.keepers[name] = store.put
            self._holds[name] = store.holds
            self._parts.stores.append(store)

    def _node(self, place: int, name: str) -> Node:
        scenario, cost = self._scenario, self._cost
        options = scenario.nodes
        token_bytes = cost.model.kv_bytes_per_token
        running_tokens = options.running_gb * GB / token_bytes
        budget = options.decode == "budget"
        gpu = Gpu(
            self._loop,
            cost,
            options.decode != "apart",
            options.budget_tokens if budget else running_tokens,
            options.chunk_tokens,
        )
        tiers: LocalTiers[bytes] = LocalTiers(
            int(options.gpu_gb * GB / cost.block_bytes),
            int(options.dram_gb * GB / cost.block_bytes),
            make_rule(options.tiers, cost.block_prefill_s),
        )
        process = Process(self._cpu, scenario.machine.host_wake_s)
        fetcher: Fetcher | None = None
        if options.gate != "never":
            fetcher = self._fetcher(place, name, process, tiers)
        return (BudgetNode if budget else Node)(
            self._loop,
            options,
            cost,
            tiers,
            gpu,
            fetcher,
            scenario.network.link_gbit_s * 1e9 * (scenario.direct.peer_share if self._peers else 1.0),
            process,
            scenario.machine.node_block_s,
            decode_s(scenario, cost),
            self._streams(),
            scenario.model.decoding == "gpu",
            place,
            self._decoders,
            self._hints_of(place, name),
            self._timers(place),
        )

    def _timers(self, place: int) -> Timers | None:
        """Of one node of a machine; elsewhere what happens happens in time."""
        tick_s = self._scenario.machine.timer_s
        return Timers(tick_s, f"{self._scenario.workload.seed} {place}") if tick_s else None

    def _is_held(self, block: Block) -> bool:
        """A node that computed what it might have fetched stores it again: its first fragments leave."""
        return self._holds[block.home](block.key)

    def _streams(self) -> Streams | None:
        """What a node needs to stream; None where blocks have one level."""
        scenario = self._scenario
        levels = tuple(rungs(scenario, self._cost, self._sizes.value_bytes))
        if not levels:
            return None
        target_s = scenario.workload.ttft_slo_s or 0.0
        meter = BandwidthMeter(scenario.network.link_gbit_s * GBIT_BYTES, target_s)
        return Streams(levels, target_s, meter, self._library)

    def _fetcher(self, place: int, name: str, process: Process, tiers: LocalTiers[bytes]) -> Fetcher:
        if self._peers is not None:
            return self._peers.join(name, tiers)
        if self._direct is not None:
            return DirectClient(self._loop, self._direct, place)
        machine = self._scenario.machine
        lane = lane_options(self._scenario.network.target_backlog_ms, machine.pace)
        options = ClientOptions(
            lane,
            fragment_s=machine.node_fragment_s,
            is_held=self._is_held,
            # Fragments of 512 bytes are nothing beside a real block; an emulated one has few.
            before_held=1 if process.free else lane.initial_window,
        )
        client = Client(self._loop, name, self._network, options, process)
        self._network.attach(name, client)
        self._clients[name] = client
        return client

    # Running.

    def _acknowledged(self, put: Put) -> None:
        if put.reclaim:
            self._controls[put.sender].acknowledged(put)
        else:
            self._clients[put.sender].acknowledged(put)

    def _tick(self, control: SwitchControl) -> None:
        self._loop.after(control.tick(), self._tick, control)

    def _forget(self, switch: Switch) -> None:
        if self._loop.now > self._demand.requests[-1].arrival_s + LONGEST_DRAIN_S:
            raise ScenarioError(
                f"{self._left} requests were not served {LONGEST_DRAIN_S:.0f} s after the last came: "
                "the load is far beyond what this hardware can bear"
            )
        switch.forget_counts()
        self._loop.after(self._scenario.pool.sketch_epoch_s, self._forget, switch)

    def _arrivals(self, arrivals: Iterator[tuple[Request, Route | None]]) -> Steps:
        for request, planned in arrivals:
            if request.arrival_s > self._loop.now:
                yield request.arrival_s - self._loop.now
            self._loop.start(self._serve(request, planned))

    def _client(self, arrivals: Iterator[tuple[Request, Route | None]]) -> Steps:
        for request, planned in arrivals:
            yield self._loop.process(self._serve(request, planned))

    def _serve(self, request: Request, planned: Route | None) -> Steps:
        route = self._router.route(request, planned)
        if route is not None:
            chain = self._library.chain(request)
            done = partial(self._router.prefilled, route)
            chunks = self._library.chunks(request)
            yield from self._parts.nodes[route.node].serve(request, chain, chunks, route.fetch, done)
        self._left -= 1
        if not self._left:
            self._done.succeed()

    # The outcome.

    def _result(self, cpu_s: float) -> SimResult:
        parts, scenario = self._parts, self._scenario
        records = [record for node in parts.nodes for record in node.records]
        records.sort(key=lambda record: record.arrival_s)
        duration_s = max(1e-9, self._loop.now - min((record.arrival_s for record in records), default=0.0))
        links = dict(self._links())
        egress = [link for (source, _), link in self._network.links.items() if source in self._fabric.stores]
        served_bytes = sum(switch.stats.served_bytes for switch in parts.switches)
        saved_s = sum(record.saved_s for record in records)
        streamed = (record.levels for record in records if record.levels)
        levels = dict(sorted(sum(streamed, Counter[str]()).items()))
        slo_s = scenario.workload.ttft_slo_s
        costs = bill(scenario, len(self._fabric.switches))
        return SimResult(
            requests=len(self._demand.requests),
            completed=len(records),
            conductor=asdict(self._router.conductor.stats) if self._router.conductor else None,
            duration_s=duration_s,
            requests_per_s=len(records) / duration_s,
            output_tokens_per_s=sum(record.output_tokens for record in records) / duration_s,
            ttft_s=spread([record.ttft_s for record in records]),
            tpot_s=spread([record.tpot_s for record in records if record.output_tokens > 1]),
            get_s=spread([s for node in parts.nodes if node.fetcher is not None for s in node.fetcher.get_s]),
            blocks=sum_sources(records),
            prefill_s=sum(record.prefill_s for record in records),
            saved_prefill_s=saved_s,
            gpu_busy_share=sum(node.gpu.busy_s for node in parts.nodes) / duration_s / len(parts.nodes),
            link_bytes={link.name: link.sent_bytes for link in links.values()},
            storage_egress_bytes=sum(link.sent_bytes for link in egress)
            + (sum(link.sent_bytes for link in self._direct.readers) if self._direct else 0.0)
            + (sum(link.sent_bytes for link in self._peers.out_links) if self._peers else 0.0),
            storage_requests=sum(store.stats.requests for store in parts.stores),
            storage_busy_share=max(
                (link.sent_bytes / link.bytes_per_s / duration_s for link in egress), default=0.0
            ),
            longest_queue_s=max(link.longest_wait_s for link in links.values()),
            switch_served_bytes=served_bytes,
            merged=sum(switch.stats.merged for switch in parts.switches),
            copies=sum(switch.stats.copies for switch in parts.switches),
            fills=sum(switch.stats.fills for switch in parts.switches),
            admitted=sum(control.counts.admitted for control in parts.controls),
            evicted=sum(control.counts.evicted for control in parts.controls),
            reclaimed=sum(control.counts.reclaimed for control in parts.controls),
            digests=sum(control.costs.digests for control in parts.controls),
            table_writes=sum(control.costs.writes for control in parts.controls),
            table_updates=sum(control.costs.updates for control in parts.controls),
            entries_read=sum(control.costs.entries_read for control in parts.controls),
            control_bytes=sum(control.costs.message_bytes for control in parts.controls),
            control_cpu_s=sum(control.costs.cpu_s for control in parts.controls),
            block_bytes=self._sizes.block_bytes,
            pool_blocks=pool_blocks(scenario, self._cost),
            levels=levels,
            mean_level=mean_level(levels),
            met_share=None
            if slo_s is None
            else sum(r.ttft_s <= slo_s for r in records) / len(self._demand.requests),
            dollars_per_hour=costs.total,
            cache_dollars_per_hour=costs.cache,
            dollars_per_saved_s=costs.cache * duration_s / 3600 / saved_s if saved_s else None,
            blended=sum_blends([record.blend for record in records if record.blend is not None]),
            between_tokens_s=spread_of(gpu.gaps for gpu in self._gpus()),
            end_to_end_s=spread([record.end_s - record.arrival_s for record in records]),
            fetch_s=sum(record.fetch_s for record in records),
            refused_blocks=sum(node.refused_blocks for node in parts.nodes),
            copied_down_blocks=sum(node.copied_down_blocks for node in parts.nodes),
            ssd_reads=sum(store.stats.ssd_reads for store in parts.stores),
            cpu_s=cpu_s,
            ttfts_s=tuple(record.ttft_s for record in records),
        )

    def _gpus(self) -> Iterator[Gpu]:
        """Of all who decode."""
        yield from (node.gpu for node in self._parts.nodes)
        if self._decoders is not None:
            yield from self._decoders.gpus

    def _links(self) -> Iterator[tuple[str, Link]]:
        for link in self._network.links.values():
            yield link.name, link
        if self._decoders is not None:
            for link in self._decoders.links:
                yield link.name, link
        if self._peers is not None:
            for link in (*self._peers.out_links, *self._peers.in_links):
                yield link.name, link
        if self._direct is not None:
            for link in (*self._direct.devices, *self._direct.readers, *self._direct.writers):
                yield link.name, link
