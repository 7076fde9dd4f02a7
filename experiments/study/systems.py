"""The systems that are compared: the same nodes, the same memory for blocks, the same demand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from experiments.simulator.scenario import Scenario

MERGING_GB = 0.5
"""A pool that holds a few blocks of any model here, and is never told to keep one."""
MEMORY_GB = 8000.0
"""DRAM for shared blocks in every system that shares any."""
MOST_STORES = 16
BELUGA_SERVERS = 16
"""Servers that one CXL switch connects."""

STAR_HOSTS = 62
"""Hosts that one switch connects: a P4 switch here has at most 63 ports."""

NAMES = {
    "recompute": "recompute always",
    "distributed": "distributed DRAM (Mooncake-like)",
    "cxl": "CXL pool (Beluga-like)",
    "stores": "storage nodes, no pool",
    "sram": "pool in SRAM, 64 MB",
    "switch": "pool in the switch",
    "merging": "storage nodes, merging switch",
    "distributed_merge": "distributed DRAM, merging switch",
    "distributed_pool": "distributed DRAM, pool in front",
    "cxl_merge": "CXL pool, merging switch",
    "cxl_pool": "CXL pool, pool in front",
    "ideal": "bound: everything at the node's own link",
}
POOLS = ("sram", "switch", "merging", "distributed_merge", "distributed_pool", "cxl_merge", "cxl_pool")
"""Those with a switch that does more than forward."""
CENTRAL = ("recompute", "stores", "switch")
"""What is left without distributed DRAM and CXL, which are simulated too favourably."""
BOUND = "ideal"
"""No system that could be bought: no queue anywhere but at the reader's own link, and it costs nothing."""
BASELINES = ("recompute", "distributed", "cxl")


@dataclass(frozen=True, slots=True)
class Setting:
    """A place in the space that is swept."""

    shape: str = "agents"
    trace: str = ""
    requests: int = 600
    seed: int = 1
    nodes: int = 16
    stores: int = 2
    """Storage nodes that MEMORY_GB is spread over."""
    load: float = 8.0
    """Requests a second and node, relative to the shape's own rate on 16 nodes."""
    reuse: float = 1.0
    block_tokens: int = 512
    link_gbit_s: float = 200.0
    pool_gb: float = 256.0
    scheduler: str = "locality"
    """Cache-aware; the systems that don't need it can do without (the axis `scheduler`)."""
    model: str = "llama3-70b-fp8"
    codec: str = "none"
    level: int | None = None
    coder: str = "instant"
    asks_first: bool = True
    """Nodes ask before they fetch, what waits at homes, and a switch with a pool what that holds."""
    requests_first: bool = True
    """Requests wait for no block at any port."""
    decode: str = "apart"
    """apart: other nodes decode; batched: continuous batching on the same GPUs, prefill in chunks."""

    def base(self) -> Scenario:
        """What all systems have in common."""
        return Scenario().changed(
            workload={
                "shape": self.shape,
                "trace": self.trace,
                "requests": self.requests,
                "load": self.load * self.nodes / 16,
                "reuse": self.reuse,
                "scheduler": self.scheduler,
                "seed": self.seed,
            },
            model={
                "name": self.model,
                "gpu": "h800",
                "block_tokens": self.block_tokens,
                "codec": self.codec,
                "level": self.level,
                "coder": self.coder,
            },
            nodes={
                "count": self.nodes,
                "gpu_gb": 16.0,
                "dram_gb": 64.0,
                "gate": "compare",
                "hints": "homes" if self.asks_first else "answers",
                "decode": self.decode,
            },
            network={
                "link_gbit_s": self.link_gbit_s,
                "requests_first": self.requests_first,
                **self.fabric(),
            },
            storage={"count": self.stores, "dram_gb": MEMORY_GB / self.stores, "ssd_gb": 0.0},
            pool={"memory": "none"},
            control={"report_count": 1},
        )

    def fabric(self) -> dict[str, Any]:
        """One switch as long as its ports suffice for the most storage nodes, then leaves and spines.

        So that all systems at one fan-in have the same fabric, whatever their number of storage nodes.
        """
        if self.nodes + MOST_STORES <= STAR_HOSTS:
            return {"topology": "star"}
        return {"topology": "leafspine", "leaves": max(4, self.nodes // 32), "spines": 4}

    @property
    def switches(self) -> int:
        """Of the fabric."""
        fabric = self.fabric()
        return 1 if fabric["topology"] == "star" else int(fabric["leaves"]) + int(fabric["spines"])


def system(name: str, setting: Setting) -> Scenario:
    """One of NAMES at a setting."""
    base = setting.base()
    told = {"hints": "switch"} if setting.asks_first else {}
    kind, _, front = name.partition("_")
    if name == "recompute":
        return base.changed(nodes={"gate": "never"})
    if kind in ("distributed", "cxl"):
        found = _distributed(base, setting) if kind == "distributed" else _cxl(base, setting)
        pool = {"size_gb": setting.pool_gb}
        return found.changed(direct={"front": front}, pool=pool) if front else found
    if name == BOUND:
        return _ideal(base, setting)
    if name == "sram":
        return base.changed(pool={"memory": "sram", "size_gb": 0.064}, nodes=told)
    if name == "merging":
        nothing = {"memory": "sram", "size_gb": MERGING_GB}
        return base.changed(pool=nothing, nodes=told, control={"report_count": 0x8000})
    if name == "switch":
        return base.changed(pool={"memory": "dram", "size_gb": setting.pool_gb}, nodes=told)
    return base


def _ideal(base: Scenario, setting: Setting) -> Scenario:
    """Whatever was stored comes at the rate of the node's own link, as if every home were idle."""
    rate_gbyte_s = setting.link_gbit_s / 8
    return base.changed(
        storage={"kind": "direct"},
        direct={
            "size_gb": MEMORY_GB,
            "devices": 4096,
            "device_gbyte_s": 1000.0,
            "interleaved": True,
            "read_gbyte_s": rate_gbyte_s,
            "write_gbyte_s": rate_gbyte_s,
            "lookup_s": 0.0,
            "block_s": 0.0,
        },
        prices=dict.fromkeys(("dram_per_gb", "cxl_adapter", "cxl_switch"), 0.0),
    )


def _distributed(base: Scenario, setting: Setting) -> Scenario:
    """The nodes' own DRAM, read from one another over their links, with a cache-aware scheduler."""
    rate_gbyte_s = setting.link_gbit_s / 8
    return base.changed(
        storage={"kind": "direct"},
        direct={
            "size_gb": MEMORY_GB,
            "devices": setting.nodes,
            "device_gb": 0.0,
            "device_gbyte_s": rate_gbyte_s,
            "interleaved": False,
            "read_gbyte_s": rate_gbyte_s,
            "write_gbyte_s": rate_gbyte_s,
            "lookup_s": 8.39e-6,
            "block_s": 10.55e-6,
        },
    )


def _cxl(base: Scenario, setting: Setting) -> Scenario:
    """Beluga's memory and adapters, a pool for every 16 servers, taken as one."""
    return base.changed(
        storage={"kind": "direct"},
        direct={
            "size_gb": MEMORY_GB,
            "devices": 32 * -(-setting.nodes // BELUGA_SERVERS),
            "interleaved": True,
        },
    )
