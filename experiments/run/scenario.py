"""A scenario: options turned into a fabric, each host's configuration and the controller's.

Pure preparation: bad input is refused here, before a network exists.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from controller.config import Config, CostOptions, PoolSize, PushOptions, Thresholds
from experiments.run.control_plane import switch_configs
from experiments.run.modes import Mode
from experiments.run.options import RunOptions
from hostlib.members import Members
from topologies.engines import Artifacts
from topologies.fabric import Fabric
from topologies.network import Network
from topologies.registry import make_topology
from workload.cost import CostModel, make_cost_model
from workload.generate import generate, to_line
from workload.keys import KeySpace
from workload.scale import DEFAULT_SIGMA, ScaleModel
from workload.schedule import make_scheduler
from workload.trace import Request, Trace, load_trace

PLAY_S = 32.0
"""How long a run plays when SPEED is not given: two of them and their setting up stay below two minutes."""
DEFAULT_PAST_SHARE = 1 / 3
"""Where in a trace that is longer than its slice the slice begins, when START is not given."""
GENERATED_REQUESTS = 240
TRACE_REQUESTS = 600
"""Chats come back after minutes: a slice of a real trace has to be longer for the pool to be of use."""
DEFAULT_SCALES = {"star": DEFAULT_SIGMA}
LARGE_SIGMA = 4 * DEFAULT_SIGMA
"""Of topologies with several switches, each of which takes its share of the CPU for every packet."""
SSD_BLOCKS = 100_000


@dataclass(frozen=True)
class Scenario:
    """Everything a run needs to know that does not depend on whether there is a pool."""

    options: RunOptions
    trace: Trace
    """The requests to play, times already those of the run, and the past before them."""
    start_s: float
    scale: ScaleModel
    cost: CostModel
    fabric: Fabric
    shares: dict[str, tuple[Request, ...]]
    """Requests by the node that serves them."""

    @property
    def key_space(self) -> KeySpace:
        """What makes this scenario's block keys."""
        return KeySpace(self.options.model, block_tokens=self.trace.block_tokens)

    @property
    def block_bytes(self) -> int:
        """Emulated size of a block."""
        return self.scale.block_bytes(self.cost.block_bytes)

    @property
    def fragments(self) -> int:
        """Values, and so slots, that a block takes."""
        return self.block_bytes // self.scale.fragment_bytes

    @property
    def defines(self) -> dict[str, int]:
        """Compile-time sizes of the P4 program."""
        return {
            "POOL_BLOCKS": self.options.pool_blocks,
            "POOL_SLOTS": self.options.pool_blocks * self.fragments,
        }


def least_sigma(topology: str) -> float:
    """The most detailed model of a topology; also what is used where nobody says otherwise."""
    return DEFAULT_SCALES.get(topology, LARGE_SIGMA)


def make_scenario(options: RunOptions, sigma: float | None = None) -> Scenario:
    """Read or generate the trace, assign its requests; raises TraceError, TopologyError and their like.

    `sigma` is used where the options leave it to the machine.
    """
    requests = options.requests or (TRACE_REQUESTS if options.trace else GENERATED_REQUESTS)
    whole = load_trace(options.trace) if options.trace else _generated(options, requests)
    start_s = _start(whole, options.start_s, requests)
    window = whole.window(start_s, requests)
    speed = options.speed or max(1.0, window.duration_s / PLAY_S)
    trace = whole.window(start_s, requests, speed)
    scale = ScaleModel(options.scale or sigma or least_sigma(options.topology), speed)
    rate_bit_s = scale.rate_bit_s(options.link_gbit_s * 1e9)
    fabric = _fabric(options, rate_bit_s)
    cost = make_cost_model(options.model, options.gpu, trace.block_tokens)
    return Scenario(options, trace, start_s, scale, cost, fabric, _shares(trace, fabric, options))


def _fabric(options: RunOptions, rate_bit_s: float) -> Fabric:
    asked = {"leaves": options.leaves, "spines": options.spines, "pods": options.pods}
    sizes = {name: size for name, size in asked.items() if size is not None}
    return make_topology(options.topology, rate_bit_s, options.hosts, options.stores, **sizes)


def _generated(options: RunOptions, requests: int) -> Trace:
    """A third more than is played: the past that the stores hold at the start."""
    past = round(requests * DEFAULT_PAST_SHARE)
    return generate(options.shape, options.seed, past + requests)


def _start(trace: Trace, asked_s: float | None, requests: int) -> float:
    """START, or a third into the trace, if enough requests follow."""
    if asked_s is not None:
        return asked_s
    spare = len(trace.requests) - requests
    if spare <= 0:
        return 0.0
    return trace.requests[min(spare, round(len(trace.requests) * DEFAULT_PAST_SHARE))].arrival_s


def _shares(trace: Trace, fabric: Fabric, options: RunOptions) -> dict[str, tuple[Request, ...]]:
    scheduler = make_scheduler(options.scheduler, len(fabric.nodes), options.seed)
    shares: dict[str, list[Request]] = {name: [] for name in fabric.nodes}
    for request in trace.requests:
        shares[fabric.nodes[scheduler.assign(request)]].append(request)
    return {name: tuple(share) for name, share in shares.items()}


def write_host_configs(scenario: Scenario, directory: Path) -> dict[str, Path]:
    """A configuration file for every host, and the files these name; host -> path."""
    homes = [str(scenario.fabric.hosts[name].ipv4) for name in scenario.fabric.stores]
    preloads = _preloads(scenario, homes)
    paths = {}
    for name, endpoint in scenario.fabric.hosts.items():
        common = {
            "address": str(endpoint.ipv4),
            "result": str(directory / f"{name}.result.json"),
            "homes": homes,
            "replicas": scenario.options.replicas,
            "controller": str(scenario.fabric.controller_of(name).ipv4),
        }
        if name in scenario.shares:
            specific = _worker(scenario, name, directory)
        else:
            keys = directory / f"{name}.keys"
            keys.write_text("".join(f"{key.hex()}\n" for key in preloads[str(endpoint.ipv4)]))
            specific = _store(scenario, name, directory) | {"preload": str(keys)}
        paths[name] = directory / f"{name}.json"
        paths[name].write_text(json.dumps(common | specific, indent=1))
    return paths


def _worker(scenario: Scenario, name: str, directory: Path) -> dict[str, object]:
    trace = directory / f"{name}.trace.jsonl"
    trace.write_text("".join(f"{to_line(request)}\n" for request in scenario.shares[name]))
    options = scenario.options
    return {
        "trace": str(trace),
        "gpu_blocks": options.gpu_blocks,
        "dram_blocks": options.dram_blocks,
        "tiers": options.tiers,
        "gate": options.gate,
        "link_bit_s": scenario.fabric.link_rate_bit_s(name),
        "push": options.push,
        "record_blocks": options.traces,
        "durable": options.durable,
        "block_tokens": scenario.trace.block_tokens,
        "model": options.model,
        "gpu": options.gpu,
        "sigma": scenario.scale.sigma,
        "speed": scenario.scale.speed,
    }


def _store(scenario: Scenario, name: str, directory: Path) -> dict[str, object]:
    return {
        "block_bytes": scenario.block_bytes,
        "dram_bytes": scenario.options.store_blocks * scenario.block_bytes,
        "ssd_dir": str(directory / f"{name}.ssd"),
        "ssd_bytes": SSD_BLOCKS * scenario.block_bytes,
        "ssd_bytes_per_s": scenario.scale.rate_bit_s(scenario.options.ssd_gbyte_s * 1e9),
        "read_ahead_blocks": scenario.options.read_ahead,
        "link_bit_s": scenario.fabric.link_rate_bit_s(name),
    }


def _preloads(scenario: Scenario, homes: list[str]) -> dict[str, list[bytes]]:
    """What each store holds at the start: the past's blocks, least recently used first."""
    keys = scenario.key_space
    recency: dict[bytes, None] = {}
    for request in scenario.trace.past:
        for key in keys.chain(request.blocks):
            recency.pop(key, None)
            recency[key] = None
    held: dict[str, list[bytes]] = {home: [] for home in homes}
    members = Members.of(homes, scenario.options.replicas)
    for key in recency:
        for home in members.homes(key):
            held[home.address].append(key)
    return held


def controller_config(scenario: Scenario, network: Network, artifacts: Artifacts, mode: Mode) -> Config:
    """The controller's configuration for a running network; without pool and merging it only routes.

    A phantom pool costs the control plane what a pool does, and leaves the traffic as it is without one.
    """
    size = PoolSize(scenario.options.pool_blocks, scenario.defines["POOL_SLOTS"], scenario.fragments)
    return Config(
        switches=switch_configs(network, artifacts, size),
        policy=scenario.options.policy,
        seed=scenario.options.seed,
        pool=mode.pool,
        replicas=scenario.options.replicas,
        placement=scenario.options.placement,
        phantom=mode.phantom,
        merging=mode.merging,
        thresholds=Thresholds(report_count=1, fill="on_the_way", eviction=scenario.options.eviction),
        push=PushOptions() if mode.pool and scenario.options.push and not mode.phantom else None,
        costs=CostOptions(
            scenario.options.model,
            scenario.options.gpu,
            scenario.trace.block_tokens,
            scenario.options.link_gbit_s * 1e9,
            scenario.scale.speed,
        ),
    )
