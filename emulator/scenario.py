"""Preparation of a scenario: fabric, assignment of requests, and the controller's configuration.

It needs no network: bad input is refused here, before one exists.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from commands.errors import OptionError
from commands.trace_options import CLOSED
from controller.config import (
    EVERYWHERE,
    Config,
    CostOptions,
    HomeLink,
    PoolSize,
    PushOptions,
    Thresholds,
)
from emulator.control_plane import switch_configs
from emulator.options import RunOptions
from emulator.tenants import Tenant, share_of, tenants_of
from hostlib.protocol.wire import MAX_FRAGMENTS, VALUE_BYTES
from scenario.modes import Mode
from scenario.rules import check_played
from scenario.tables import MAX_POOL_BLOCKS
from topologies.engines import Artifacts
from topologies.fabric import Fabric
from topologies.registry import make_topology
from topologies.running import RunningNetwork
from workload.compression import NONE, BlockSizes
from workload.cost import CostModel, make_cost_model
from workload.generate import generate
from workload.keys import KeySpace
from workload.levels import Ladder, make_sizes
from workload.scale import DEFAULT_SIGMA, ScaleModel
from workload.schedule import CONDUCTOR, SESSIONS, joining_place, make_scheduler, share_out
from workload.trace import Request, Trace

PLAY_S = 15.0
"""Seconds that a generated trace runs at most if SPEED is not given.

Three runs and the set-up of a fresh machine stay below two minutes.
"""
TRACE_PLAY_S = 32.0
"""Seconds that the slice of a TRACE runs at most if SPEED is not given."""
DEFAULT_PAST_SHARE = 1 / 3
"""Place of the slice in a longer trace if START is not given, as a share of its requests."""
JOINS_AT = 0.5
"""Share of the requests that have come when nodes join (JOINING)."""
LEAD_S = 1.0
"""Real seconds between the joining of nodes and the first request to them."""
GENERATED_REQUESTS = 160
TRACE_REQUESTS = 600
"""Number of requests of a TRACE by default.

Chats come back after minutes: the pool is of use only in a longer slice of a real trace.
"""
OPEN_LOOP_WARNING = (
    f"{{}}: requests come at their recorded times: with SCHEDULER={SESSIONS} a session's next request waits "
    "for the answer before it"
)
MAX_POOL_SLOTS = (1 << 31) // (VALUE_BYTES + 128)
"""Number of values in a pool at most: with their state they fill the arrays that a P4 program may have."""
DEFAULT_SCALES = {"star": DEFAULT_SIGMA}
SPARE_SHARE = 0.04
"""Share of a pool's slots that policies leave free if blocks differ in length, so that free slots are
adjacent.
"""
LARGE_SIGMA = 4 * DEFAULT_SIGMA
"""Sigma of topologies with several switches, each of which takes CPU for every packet."""


@dataclass(frozen=True)
class Scenario:
    """A run's preparation, apart from whether there is a pool."""

    options: RunOptions
    trace: Trace
    """Requests of the run, with its times, and the past before them."""
    start_s: float
    scale: ScaleModel
    cost: CostModel
    fabric: Fabric
    shares: dict[str, tuple[Request, ...]]
    """Requests by the node that serves them; empty with the conductor, whose router sends them."""

    @property
    def key_space(self) -> KeySpace:
        """Return the key space of this scenario's blocks."""
        return KeySpace(self.options.model_choice.preset, block_tokens=self.trace.block_tokens)

    @property
    def joining(self) -> tuple[str, ...]:
        """Return the nodes that join while others serve."""
        return self.fabric.nodes[len(self.fabric.nodes) - self.options.nodes.joining :]

    @property
    def joins_s(self) -> float | None:
        """Return the second at which joining nodes join, a little before requests go to them; None without
        any.
        """
        if not self.options.nodes.joining:
            return None
        first = self.trace.requests[joining_place(len(self.trace.requests), JOINS_AT)]
        return max(0.0, first.arrival_s - self.scale.duration_s(LEAD_S))

    def idle(self) -> Scenario:
        """Return the same network without requests."""
        return replace(
            self, trace=replace(self.trace, requests=()), shares=dict.fromkeys(self.fabric.nodes, ())
        )

    @property
    def tenants(self) -> dict[str, Tenant]:
        """Return each node's tenant; empty if all use the public namespace."""
        return tenants_of(self.fabric.nodes, self.options.workload.tenants, self.options.workload.seed)

    @property
    def block_bytes(self) -> int:
        """Return the emulated bytes of a plain block."""
        return self.scale.block_bytes(self.cost.block_bytes)

    @property
    def fragments(self) -> int:
        """Return the values, and so slots, that a plain block takes."""
        return self.block_bytes // self.scale.fragment_bytes

    @property
    def sizes(self) -> BlockSizes | Ladder:
        """Return the sizes of blocks as they are sent."""
        options = self.options
        return make_sizes(
            options.model.codec, options.model.level, self.fragments, self.cost.model.kv_dtype_bytes
        )

    @property
    def target_s(self) -> float | None:
        """Return the target for the first token in seconds of the emulation; None if none was given."""
        slo_s = self.options.workload.ttft_slo_s
        return None if slo_s is None else self.scale.duration_s(slo_s)

    @property
    def pool_size(self) -> PoolSize:
        """Return the size of each switch's pool: memory for `pool_blocks` plain blocks, or for more coded
        ones.
        """
        slots, sizes = self.options.pool_blocks * self.fragments, self.sizes
        if self.options.model.codec == NONE:
            return PoolSize(self.options.pool_blocks, slots, self.fragments)
        blocks = min(MAX_POOL_BLOCKS, int(slots / sizes.mean_fragments))
        return PoolSize(blocks, slots, sizes.most_fragments, int(SPARE_SHARE * slots))

    @property
    def defines(self) -> dict[str, int]:
        """Return the compile-time sizes of the P4 program."""
        return self.pool_size.defines


def least_sigma(topology: str) -> float:
    """Return the most detailed scale of a topology, which is also its default."""
    return DEFAULT_SCALES.get(topology, LARGE_SIGMA)


def make_scenario(options: RunOptions, sigma: float | None = None) -> Scenario:
    """Read or generate the trace and assign its requests; raises TraceError, TopologyError and others.

    `sigma` is used if the options leave it to the machine.
    """
    check_played(options)
    requests = options.workload.requests or (TRACE_REQUESTS if options.workload.trace else GENERATED_REQUESTS)
    whole = options.read_trace() or _generated(options, requests)
    if options.nodes.blend and not whole.has_chunks:
        raise OptionError(
            f"BLEND=yes: {whole.name} does not say which of its blocks are chunks (chunk_ids): choose "
            "SHAPE=passages or SHAPE=rag, or a trace that does"
        )
    if whole.has_sessions and options.workload.loop == CLOSED and options.workload.scheduler != SESSIONS:
        # Nodes do not hear of one another's answers.
        whole = replace(whole.open_loop(), warnings=(*whole.warnings, OPEN_LOOP_WARNING.format(whole.name)))
    start_s = _start(whole, options.workload.start_s, requests)
    window = whole.window(start_s, requests)
    default_s = TRACE_PLAY_S if options.workload.trace else PLAY_S
    speed = options.emulation.speed or max(1.0, window.duration_s / default_s)
    trace = whole.window(start_s, requests, speed)
    scale = ScaleModel(options.scale or sigma or least_sigma(options.network.topology), speed, VALUE_BYTES)
    rate_bit_s = scale.rate_bit_s(options.network.link_gbit_s * 1e9)
    fabric = _fabric(options, rate_bit_s)
    plain = make_cost_model(options.model_choice.preset, options.model.gpu, trace.block_tokens)
    options = options.in_blocks(plain.block_bytes)
    scenario = Scenario(options, trace, start_s, scale, plain, fabric, _shares(trace, fabric, options))
    scenario = replace(scenario, cost=replace(plain, stored_share=scenario.sizes.stored_share))
    _check_sigma(scenario)
    return scenario


def _check_sigma(scenario: Scenario) -> None:
    """Raise OptionError if blocks have too many fragments for messages, or the pool too many values."""
    sigma, fragments, slots = scenario.scale.sigma, scenario.fragments, scenario.pool_size.slots
    too_small = max(fragments / MAX_FRAGMENTS, slots / MAX_POOL_SLOTS)
    if too_small <= 1:
        return
    least = math.ceil(1.02 * sigma * too_small)
    raise OptionError(
        f"SCALE={sigma:g}: a block would be {fragments:,} fragments and the pool {slots:,} values; at most "
        f"{MAX_FRAGMENTS:,} and {MAX_POOL_SLOTS:,} fit: use SCALE={least} or more"
        + (", or fewer POOL_BLOCKS" if slots > MAX_POOL_SLOTS else "")
    )


def _fabric(options: RunOptions, rate_bit_s: float) -> Fabric:
    asked = {"leaves": options.network.leaves, "spines": options.network.spines, "pods": options.network.pods}
    sizes = {name: size for name, size in asked.items() if size is not None}
    fabric = make_topology(options.network.topology, rate_bit_s, options.nodes.count, options.stores, **sizes)
    if options.storage.link_gbit_s:
        shares = [gbit_s / options.network.link_gbit_s for gbit_s in options.storage.link_gbit_s]
        rates = {name: rate_bit_s * share for name, share in zip(fabric.stores, shares, strict=True)}
        fabric = fabric.with_link_rates(rates)
    return fabric.with_queues(options.network.requests_first)


def home_links(scenario: Scenario) -> tuple[HomeLink, ...]:
    """Return the links of storage nodes whose rates are given."""
    rates, fabric = scenario.options.storage.link_gbit_s, scenario.fabric
    addresses = [fabric.hosts[name].ipv4 for name in fabric.stores]
    return tuple(HomeLink(ipv4, 1e9 * rate) for ipv4, rate in zip(addresses, rates, strict=bool(rates)))


def _generated(options: RunOptions, requests: int) -> Trace:
    """Generate a third more requests than are run: the past, whose blocks stores hold at the start."""
    past = round(requests * DEFAULT_PAST_SHARE)
    return generate(
        options.workload.shape,
        options.workload.seed,
        past + requests,
        block_tokens=options.generated_tokens,
    )


def _start(trace: Trace, asked_s: float | None, requests: int) -> float:
    """Return START, or the time a third into the trace if enough requests follow."""
    if asked_s is not None:
        return asked_s
    spare = len(trace.requests) - requests
    if spare <= 0:
        return 0.0
    return trace.requests[min(spare, round(len(trace.requests) * DEFAULT_PAST_SHARE))].arrival_s


def _shares(trace: Trace, fabric: Fabric, options: RunOptions) -> dict[str, tuple[Request, ...]]:
    if options.workload.scheduler == CONDUCTOR:
        return dict.fromkeys(fabric.nodes, ())
    nodes = len(fabric.nodes)
    scheduler = make_scheduler(
        options.workload.scheduler, nodes - options.nodes.joining, options.workload.seed
    )
    shares: dict[str, list[Request]] = {name: [] for name in fabric.nodes}
    for request, node in share_out(trace.requests, scheduler, nodes, options.nodes.joining, JOINS_AT):
        shares[fabric.nodes[node]].append(request)
    return {name: tuple(share) for name, share in shares.items()}


def controller_config(
    scenario: Scenario, network: RunningNetwork, artifacts: Artifacts, mode: Mode, router: Path | None = None
) -> Config:
    """Return the controller's configuration for a running network.

    `router` is the socket of a router that is told what the pools hold. Without pool and merging the
    controller only routes. A phantom pool costs the control plane the same as a pool, and leaves the traffic
    as without one.
    """
    return Config(
        switches=switch_configs(network, artifacts, scenario.pool_size, _numbers(scenario.tenants)),
        policy=scenario.options.pool.policy,
        seed=scenario.options.workload.seed,
        pool=mode.pool,
        replicas=scenario.options.storage.replicas,
        placement=EVERYWHERE if scenario.options.lends else scenario.options.pool.placement,
        phantom=mode.phantom,
        merging=mode.merging,
        thresholds=Thresholds(
            report_count=1,
            fill=scenario.options.control.fill,
            eviction=scenario.options.eviction,
            tenant_share=share_of(scenario.options.workload.tenants),
        ),
        push=PushOptions() if mode.pool and scenario.options.control.push and not mode.phantom else None,
        router=None if router is None else str(router),
        costs=CostOptions(
            scenario.options.model_choice.preset,
            scenario.options.model.gpu,
            scenario.trace.block_tokens,
            scenario.options.network.link_gbit_s * 1e9,
            scenario.scale.speed,
            scenario.cost.stored_share,
            home_links(scenario),
        ),
    )


def _numbers(tenants: Mapping[str, Tenant]) -> dict[str, tuple[int, ...]]:
    return {node: (tenant.number,) for node, tenant in tenants.items()}
