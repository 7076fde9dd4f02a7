"""The systems that are compared: the same nodes, the same memory for blocks, the same demand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from experiments.simulator.scenario import Scenario

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
}
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
            model={"name": self.model, "gpu": "h800", "block_tokens": self.block_tokens},
            nodes={"count": self.nodes, "gpu_gb": 16.0, "dram_gb": 64.0, "gate": "compare"},
            network={"link_gbit_s": self.link_gbit_s, **self.fabric()},
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


def system(name: str, setting: Setting) -> Scenario:
    """One of NAMES at a setting."""
    base = setting.base()
    if name == "recompute":
        return base.changed(nodes={"gate": "never"})
    if name == "distributed":
        return _distributed(base, setting)
    if name == "cxl":
        return _cxl(base, setting)
    if name == "sram":
        return base.changed(pool={"memory": "sram", "size_gb": 0.064})
    if name == "switch":
        return base.changed(pool={"memory": "dram", "size_gb": setting.pool_gb})
    return base


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
