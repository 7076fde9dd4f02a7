"""The systems that are compared: the same nodes, the same memory for blocks, the same demand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from scenario import Scenario
from scenario.tables import SWITCHES
from simulator.measured import ENTRIES_S, measured_control
from workload.cost import MODELS

MERGING_GB = 0.5
"""GB of a pool that holds a few blocks of any model here, and that admits none."""
MEMORY_GB = 8000.0
"""GB of DRAM for shared blocks in every system that shares any."""
MOST_STORES = 16
BELUGA_SERVERS = 16
"""Number of servers that one CXL switch connects."""

OWN_GB = 64.0
"""GB of DRAM for blocks in every node of every system."""
SHARE = 1 / 1.02
"""Share of a link that blocks get beside headers, at storage nodes and where nodes read from one another."""
PEER_SHARES = {"RDMA as measured": 0.87, "over TCP": 0.36}
"""Shares of a link that Mooncake's transfer engine reached.

It reached 87 GB/s on four links of 200 Gbit/s, and 2.4 times less over TCP, where cores copy (its README).
"""

CODED_BITS = 2.05
"""Bits of each value of KV that a prefix cache with decoding adapters stores.

CacheGen makes KV 3.5 to 4.3 times smaller than eight bits.
"""
ADAPTER_GBYTE_S = 20.6 / 8
"""GB/s of coded blocks that ShadowServe's adapter decodes (arXiv 2509.16857, second-hand), one a node."""

STAR_HOSTS = 62
"""Number of hosts that one switch connects: a P4 switch here has at most 63 ports."""

NAMES = {
    "recompute": "recompute always",
    "distributed": "distributed DRAM (Mooncake-like)",
    "cxl": "CXL pool (Beluga-like)",
    "smartnic": "2 storage nodes, coded, adapters decode (ShadowServe-like)",
    "stores": "storage nodes, no pool",
    "sram": "pool in SRAM, 64 MB",
    "switch": "pool in the switch",
    "merging": "storage nodes, merging switch",
    "distributed_merge": "distributed DRAM, merging switch",
    "distributed_pool": "distributed DRAM, pool in front",
    "lent": "the nodes' own DRAM, lent",
    "lent_merge": "the nodes' own DRAM, lent, merging switch",
    "lent_pool": "the nodes' own DRAM, lent, pool in front",
    "answered": "the nodes' own DRAM, lent by GETs",
    "answered_merge": "the nodes' own DRAM, lent by GETs, merging switches",
    "answered_pool": "the nodes' own DRAM, lent by GETs, pool in the switches",
    "l7": "longest prefix, by a router in software (L7-PA)",
    "kvswitch": "prefix routing in the switches (KVSwitch-like)",
    "kvswitch_lent": "the nodes' own DRAM, lent, prefix routing in the switches",
    "cxl_merge": "CXL pool, merging switch",
    "cxl_pool": "CXL pool, pool in front",
    "ideal": "bound: no queue but at the node's own link",
}
FRONTS = (
    "distributed_merge",
    "distributed_pool",
    "lent_merge",
    "lent_pool",
    "cxl_merge",
    "cxl_pool",
)
LENT = ("lent", "lent_merge", "lent_pool")
"""Systems without memory of their own: cheaper than distributed DRAM, and as fast if
the nodes' DRAM suffices."""
ANSWERED = ("answered", "answered_merge", "answered_pool")
"""Systems that lend DRAM over the network that storage nodes have.

They use the switches' own pools, controllers, digests and pending tables, while FRONTS
have an idealised switch.
"""
ROUTED = ("kvswitch", "kvswitch_lent")
"""Systems whose switches send requests to where their prefix is; they cache no blocks and
are none of POOLS."""
BUCKETS_A_WORKER = 8
"""Number of buckets a worker in KVSwitch: 32 for the four workers of a leaf."""
_ALL_RULES = {
    "rules": "longest",
    "hashes": 4096,
    "admitted": 1,
    "report_s": 0.0,
    "report_tokens": 1,
    "gather_s": ENTRIES_S,
}
_SPREAD = {"scheduler": "load_reports"}
_PINNED = {"scheduler": "pinned_reports"}
ROUTINGS: dict[str, dict[str, dict[str, Any]]] = {
    "as published": {},
    "rules for all, spread": {"workload": _SPREAD, "routing": _ALL_RULES},
    "rules for all, pinned": {"workload": _PINNED, "routing": _ALL_RULES},
    "rules for all at once, spread": {"workload": _SPREAD, "routing": _ALL_RULES | {"gather_s": 0.0}},
    "rules for all at once, pinned": {"workload": _PINNED, "routing": _ALL_RULES | {"gather_s": 0.0}},
}
"""Changes of ROUTED by label: KVSwitch's own constants, and what they could be.

With rules for all, each prefix that a node holds has a rule. Rules follow every change of load, as late as a
table update or, idealised, at once. Rules spread over MANY_BUCKETS a worker, or are pinned to the best one.
"""
MANY_BUCKETS = 256
ROUTED_AT_ONCE = tuple(ROUTINGS)[-2:]
"""Routings that are also simulated with the bound, whose switches have whatever any node has."""
POOLS = ("sram", "switch", "merging", "answered_merge", "answered_pool", *FRONTS)
"""Systems whose switch does more than forward."""
WITHOUT = {name: name.partition("_")[0] for name in POOLS} | dict.fromkeys(
    ("sram", "switch", "merging"), "stores"
)
"""Systems of POOLS -> the same system with a switch that only forwards."""
CENTRAL = ("recompute", "stores", "switch")
"""Systems that are left if nodes lend no DRAM and there is no CXL."""
BOUND = "ideal"
"""A system that cannot be bought: distributed DRAM behind a switch that has whatever any node has.

The only queue that is left is that at the reader's own link.
"""
BASELINES = ("recompute", "distributed", "cxl")


@dataclass(frozen=True, slots=True)
class Setting:
    """A place in the space that is swept."""

    shape: str = "agents"
    trace: str = ""
    trace_fields: tuple[tuple[str, Any], ...] = ()
    """Fields of the workload that name a trace and say how its sessions are served."""
    requests: int = 600
    seed: int = 1
    nodes: int = 16
    stores: int = 2
    """Number of storage nodes, which share MEMORY_GB."""
    load: float = 8.0
    """Requests a second and node, relative to the shape's own rate on 16 nodes."""
    reuse: float = 1.0
    block_tokens: int = 512
    link_gbit_s: float = 200.0
    pool_gb: float = 256.0
    scheduler: str = "locality"
    """Scheduler, by default a cache-aware one; the axis `scheduler` shows which systems can do without."""
    model: str = "llama3-70b-fp8"
    codec: str = "none"
    level: int | None = None
    coder: str = "instant"
    asks_homes_first: bool = True
    """Whether nodes ask before they fetch: homes what waits there, and a switch with a pool what it holds."""
    requests_first: bool = True
    """Whether requests overtake blocks at all ports."""
    peer_share: float = SHARE
    """Share of a node's link for reads between nodes."""
    decode: str = "apart"
    """Kind of decoding.

    - apart: other nodes decode.
    - batched: continuous batching on the same GPUs, with prefill in chunks.
    """

    def base(self) -> Scenario:
        """Return the scenario that all systems have in common."""
        return Scenario().changed(
            workload={
                "shape": self.shape,
                **dict(self.trace_fields),
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
                "dram_gb": OWN_GB,
                "gate": "compare",
                "hints": "homes" if self.asks_homes_first else "answers",
                "decode": self.decode,
            },
            network={
                "link_gbit_s": self.link_gbit_s,
                "requests_first": self.requests_first,
                **self.fabric(),
            },
            storage={"count": self.stores, "dram_gb": MEMORY_GB / self.stores, "ssd_gb": 0.0},
            pool={"memory": "none"},
            control=measured_control(),
        )

    def fabric(self) -> dict[str, Any]:
        """Return one switch if its ports suffice for the most storage nodes, else leaves and spines.

        So all systems with one number of nodes have the same fabric, whatever their number of storage nodes.
        """
        if self.nodes + MOST_STORES <= STAR_HOSTS:
            return {"topology": "star"}
        return {"topology": "leafspine", "leaves": max(4, self.nodes // 32), "spines": 4}

    @property
    def switches(self) -> int:
        """Return the number of switches of the fabric."""
        fabric = self.fabric()
        return 1 if fabric["topology"] == "star" else int(fabric["leaves"]) + int(fabric["spines"])


def system(name: str, setting: Setting) -> Scenario:
    """Return the scenario of a system, one of NAMES, at a setting."""
    base = setting.base()
    switch_hints = {"hints": "switch"} if setting.asks_homes_first else {}
    kind, _, front = name.partition("_")
    if name == "l7":
        return base.changed(nodes={"gate": "never"}, workload={"scheduler": "longest_prefix"})
    if name in ROUTED:
        return routed(name, setting, "as published")
    if name == "recompute":
        return base.changed(nodes={"gate": "never"})
    if name == BOUND:
        return _peers(base, setting, MEMORY_GB).changed(direct={"front": "whole"})
    if kind in ("distributed", "lent", "cxl"):
        shared_gb = MEMORY_GB if kind == "distributed" else 0.0
        found = _cxl(base, setting) if kind == "cxl" else _peers(base, setting, shared_gb)
        pool = {"size_gb": setting.pool_gb}
        return found.changed(direct={"front": front}, pool=pool) if front else found
    if kind == "answered":
        found = _peers(base, setting, 0.0).changed(direct={"front": SWITCHES})
        return _pooled(found, front, setting, switch_hints) if front else found
    if name == "sram":
        return base.changed(pool={"memory": "sram", "size_gb": 0.064}, nodes=switch_hints)
    if name == "smartnic":
        return _decoded_by_adapters(base, setting)
    if name in ("merging", "switch"):
        return _pooled(base, "merge" if name == "merging" else "pool", setting, switch_hints)
    return base


def routed(name: str, setting: Setting, routing: str) -> Scenario:
    """Return the scenario of one of ROUTED with one of ROUTINGS.

    Nodes store blocks in their own memory, which is lent in one of the systems.
    """
    base = setting.base()
    found = base.changed(nodes={"gate": "never"}) if name == ROUTED[0] else _peers(base, setting, 0.0)
    changed = ROUTINGS[routing]
    each = MANY_BUCKETS if changed else BUCKETS_A_WORKER
    places = {"leaves": int(setting.fabric().get("leaves", 1)), "buckets": each * setting.nodes}
    return found.changed(workload=_SPREAD, routing=places).changed(**changed)


def _pooled(base: Scenario, kind: str, setting: Setting, switch_hints: dict[str, str]) -> Scenario:
    """Return the scenario with switches that merge, or that also have a pool."""
    if kind == "merge":
        nothing = {"memory": "sram", "size_gb": MERGING_GB}
        return base.changed(pool=nothing, nodes=switch_hints, control={"report_count": 0x8000})
    return base.changed(pool={"memory": "dram", "size_gb": setting.pool_gb}, nodes=switch_hints)


def _peers(base: Scenario, setting: Setting, shared_gb: float) -> Scenario:
    """Return the scenario with the nodes' own DRAM and `shared_gb` in all, read over
    links as Mooncake does."""
    return base.changed(
        storage={"kind": "peers", "own_gb": OWN_GB},
        nodes={"dram_gb": OWN_GB + shared_gb / setting.nodes},
        direct={"peer_share": setting.peer_share, "lookup_s": 8.39e-6, "block_s": 10.55e-6},
    )


def _decoded_by_adapters(base: Scenario, setting: Setting) -> Scenario:
    """Return ShadowServe's scenario: storage nodes hold coded blocks, which the nodes' adapters decode."""
    share = CODED_BITS / (8 * MODELS[setting.model].kv_dtype_bytes)
    rate = ADAPTER_GBYTE_S / share
    return base.changed(model={"coded_share": share, "decoding": "smartnic", "decode_gbyte_s": rate})


def _cxl(base: Scenario, setting: Setting) -> Scenario:
    """Return the scenario with Beluga's memory and adapters: one pool for every 16 servers, taken as one."""
    return base.changed(
        storage={"kind": "direct"},
        direct={
            "size_gb": MEMORY_GB,
            "devices": 32 * -(-setting.nodes // BELUGA_SERVERS),
            "interleaved": True,
        },
    )
