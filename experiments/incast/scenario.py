"""Scenario of the experiment: fabric, points to measure, and configurations of hosts and controller."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from controller.config import Config, PoolSize, PushOptions, Thresholds
from emulator.control_plane import switch_configs
from experiments.incast.options import IncastOptions
from experiments.incast.patterns import Burst, bursts, distinct_blocks
from hostlib.protocol.wire import VALUE_BYTES
from topologies.engines import Artifacts
from topologies.fabric import Fabric
from topologies.network import Network
from topologies.registry import make_topology
from workload.cost import DEFAULT_GPU, make_cost_model
from workload.keys import KeySpace
from workload.scale import ScaleModel
from workload.trace import MOONCAKE

STORES = 1
"""Number of storage nodes: all blocks have one home."""
POLICY = "lru"
POOL_BLOCKS = 2048
"""Blocks of the pool: more than any point asks for, because the experiment is not about eviction."""
PUSHED_BLOCKS = 256
"""Blocks of a node's DRAM for pushed blocks."""
MERGING = ("merge", "both", "push")
POOL = ("pool", "both", "push")


@dataclass(frozen=True)
class Case:
    """Point to measure: `n` nodes and the bursts in which they ask."""

    mode: str
    pattern: str
    n: int
    bursts: list[Burst]

    @property
    def label(self) -> str:
        """Return the point's name for people."""
        return f"{self.mode}, {self.pattern}, {self.n} nodes"


@dataclass(frozen=True)
class Scenario:
    """Scenario that all points have in common."""

    options: IncastOptions
    fabric: Fabric
    scale: ScaleModel
    block_bytes: int

    @property
    def fragments(self) -> int:
        """Return the number of values, and so of slots, that a block takes."""
        return self.block_bytes // self.scale.fragment_bytes

    @property
    def pool_size(self) -> PoolSize:
        """Return the size of the pool of one switch."""
        return PoolSize(POOL_BLOCKS, POOL_BLOCKS * self.fragments, self.fragments)

    @property
    def defines(self) -> dict[str, int]:
        """Return the macros with which the P4 program is compiled for this pool."""
        return self.pool_size.defines

    def cases(self) -> Iterator[Case]:
        """Yield all points; those of a mode follow each other."""
        options = self.options
        for mode in options.modes:
            for pattern in options.patterns:
                for n in options.nodes:
                    asking = participants(self.fabric.nodes, n)
                    case_bursts = bursts(
                        pattern, asking, options.blocks, options.bursts, options.seed,
                        f"{mode} {pattern} {n}", KeySpace(options.model),
                    )  # fmt: skip
                    yield Case(mode, pattern, n, case_bursts)


def participants(nodes: tuple[str, ...], n: int) -> list[str]:
    """Return `n` of the nodes, spread evenly, so that in larger topologies they are at different switches."""
    return [nodes[index * len(nodes) // n] for index in range(n)]


def make_scenario(options: IncastOptions) -> Scenario:
    """Return the scenario of the options; raises TopologyError, CostError or ScaleError."""
    scale = ScaleModel(options.scale, fragment_bytes=VALUE_BYTES)
    cost = make_cost_model(options.model, DEFAULT_GPU, MOONCAKE.block_tokens)
    asked = {"leaves": options.leaves, "spines": options.spines, "pods": options.pods}
    sizes = {name: size for name, size in asked.items() if size is not None}
    rate_bit_s = scale.rate_bit_s(options.link_gbit_s * 1e9)
    fabric = make_topology(options.topology, rate_bit_s, max(options.nodes), STORES, **sizes)
    return Scenario(options, fabric, scale, scale.block_bytes(cost.block_bytes))


def write_host_configs(scenario: Scenario, directory: Path) -> dict[str, Path]:
    """Write a configuration file for every host; returns the files by host.

    Also writes the keys of the blocks that the storage node holds from the start.
    """
    fabric = scenario.fabric
    homes = [str(fabric.hosts[name].ipv4) for name in fabric.stores]
    keys = {key for case in scenario.cases() for burst in case.bursts for key in distinct_blocks(burst)}
    held = directory / "store.keys"
    held.write_text("".join(f"{key.hex()}\n" for key in sorted(keys)))
    paths = {}
    for name, endpoint in fabric.hosts.items():
        common = {
            "address": str(endpoint.ipv4),
            "result": str(directory / f"{name}.result.json"),
            "block_bytes": scenario.block_bytes,
        }
        specific: dict[str, object] = {
            "homes": homes, "pushed_blocks": PUSHED_BLOCKS, "deadline_s": scenario.options.deadline_s,
        }  # fmt: skip
        if name in fabric.stores:
            specific = {
                "dram_bytes": len(keys) * scenario.block_bytes,
                "preload": str(held),
                "link_bit_s": fabric.link_rate_bit_s(name),
            }
        paths[name] = directory / f"{name}.json"
        paths[name].write_text(json.dumps(common | specific, indent=1))
    return paths


def controller_config(scenario: Scenario, network: Network, artifacts: Artifacts, mode: str) -> Config:
    """Return the controller's configuration in a mode."""
    size = scenario.pool_size
    return Config(
        switches=switch_configs(network, artifacts, size),
        policy=POLICY,
        seed=scenario.options.seed,
        pool=mode in POOL,
        placement=scenario.options.placement,
        merging=mode in MERGING,
        thresholds=Thresholds(report_count=1, fill="on_the_way"),
        push=PushOptions() if mode == "push" else None,
    )
