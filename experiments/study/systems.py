"""The systems that are compared: the same nodes, the same memory for blocks, the same demand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from scenario import Scenario
from scenario.tables import SWITCHES
from simulator.measured import ENTRIES_S, measured_control
from workload.cost import MODELS

MERGING_GB = 0.5
"""A pool that holds a few blocks of any model here, and is never told to keep one."""
MEMORY_GB = 8000.0
"""DRAM for shared blocks in every system that shares any."""
MOST_STORES = 16
BELUGA_SERVERS = 16
"""Servers that one CXL switch connects."""

OWN_GB = 64.0
"""DRAM for blocks in every node of every system."""
SHARE = 1 / 1.02
"""Of a link that blocks get: what headers leave, at storage nodes and where nodes read from one another."""
SHARES = {"RDMA as measured": 0.87, "over TCP": 0.36}
"""Of a link that Mooncake's transfer engine reached: 87 GB/s of four links of 200 Gbit/s, and 2.4 times less
over TCP, where cores copy (its README)."""

CODED_BITS = 2.05
"""Of each value of KV that a prefix cache with decoding adapters stores: CacheGen, 3.5 to 4.3 times smaller
than eight bits."""
ADAPTER_GBYTE_S = 20.6 / 8
"""Of coded blocks that ShadowServe's adapter decodes (arXiv 2509.16857, second-hand), one a node."""

STAR_HOSTS = 62
"""Hosts that one switch connects: a P4 switch here has at most 63 ports."""

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
"""Without memory of their own: cheaper than distributed DRAM, and as fast while the nodes' DRAM suffices."""
ANSWERED = ("answered", "answered_merge", "answered_pool")
"""Lent as well, but over the network that storage nodes have: with the switches' own pools, controllers,
digests and pending tables, where FRONTS have an idealised switch."""
ROUTED = ("kvswitch", "kvswitch_lent")
"""Switches send requests where their prefix lies, and keep no blocks, so they are none of POOLS."""
BUCKETS_A_WORKER = 8
"""KVSwitch's: 32 for the four workers of a leaf."""
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
"""Label -> what of ROUTED is changed: KVSwitch's own constants, and what they could be made. With rules for
all each prefix that somebody holds has one, and rules follow every change of load, as late as a table update
comes or, idealised, at once; spread over MANY_BUCKETS a worker, or pinned to the best."""
MANY_BUCKETS = 256
ROUTED_AT_ONCE = tuple(ROUTINGS)[-2:]
"""Played with the bound as well: such switches that have whatever any node has."""
POOLS = ("sram", "switch", "merging", "answered_merge", "answered_pool", *FRONTS)
"""Those with a switch that does more than forward."""
WITHOUT = {name: name.partition("_")[0] for name in POOLS} | dict.fromkeys(
    ("sram", "switch", "merging"), "stores"
)
"""The same with a switch that only forwards."""
CENTRAL = ("recompute", "stores", "switch")
"""What is left where nodes lend no DRAM and there is no CXL."""
BOUND = "ideal"
"""No system that could be bought: the nodes' DRAM as of distributed DRAM, behind a switch that has whatever
any node has, so that no queue is left but that at the reader's own link."""
BASELINES = ("recompute", "distributed", "cxl")


@dataclass(frozen=True, slots=True)
class Setting:
    """A place in the space that is swept."""

    shape: str = "agents"
    trace: str = ""
    trace_fields: tuple[tuple[str, Any], ...] = ()
    """Of a trace, fields of the workload that name it and say how its sessions are served."""
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
    peer_share: float = SHARE
    """Of a node's link, for what nodes read from one another."""
    decode: str = "apart"
    """apart: other nodes decode; batched: continuous batching on the same GPUs, prefill in chunks."""

    def base(self) -> Scenario:
        """Return what all systems have in common."""
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
            control=measured_control(),
        )

    def fabric(self) -> dict[str, Any]:
        """Return one switch as long as its ports suffice for the most storage nodes, then leaves and spines.

        So that all systems at one fan-in have the same fabric, whatever their number of storage nodes.
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
    told = {"hints": "switch"} if setting.asks_first else {}
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
        return _pooled(found, front, setting, told) if front else found
    if name == "sram":
        return base.changed(pool={"memory": "sram", "size_gb": 0.064}, nodes=told)
    if name == "smartnic":
        return _decoded_by_adapters(base, setting)
    if name in ("merging", "switch"):
        return _pooled(base, "merge" if name == "merging" else "pool", setting, told)
    return base


def routed(name: str, setting: Setting, routing: str) -> Scenario:
    """Return the scenario of one of ROUTED by one of ROUTINGS: nodes keep blocks in their own memory, which
    is lent or not."""
    base = setting.base()
    found = base.changed(nodes={"gate": "never"}) if name == ROUTED[0] else _peers(base, setting, 0.0)
    changed = ROUTINGS[routing]
    each = MANY_BUCKETS if changed else BUCKETS_A_WORKER
    places = {"leaves": int(setting.fabric().get("leaves", 1)), "buckets": each * setting.nodes}
    return found.changed(workload=_SPREAD, routing=places).changed(**changed)


def _pooled(base: Scenario, kind: str, setting: Setting, told: dict[str, str]) -> Scenario:
    """With switches that merge, or also have a pool."""
    if kind == "merge":
        nothing = {"memory": "sram", "size_gb": MERGING_GB}
        return base.changed(pool=nothing, nodes=told, control={"report_count": 0x8000})
    return base.changed(pool={"memory": "dram", "size_gb": setting.pool_gb}, nodes=told)


def _peers(base: Scenario, setting: Setting, shared_gb: float) -> Scenario:
    """The nodes' own DRAM and so much more, read from one another over their links, as Mooncake does."""
    return base.changed(
        storage={"kind": "peers", "own_gb": OWN_GB},
        nodes={"dram_gb": OWN_GB + shared_gb / setting.nodes},
        direct={"peer_share": setting.peer_share, "lookup_s": 8.39e-6, "block_s": 10.55e-6},
    )


def _decoded_by_adapters(base: Scenario, setting: Setting) -> Scenario:
    """ShadowServe's: storage nodes hold coded blocks, which the nodes' adapters decode."""
    share = CODED_BITS / (8 * MODELS[setting.model].kv_dtype_bytes)
    rate = ADAPTER_GBYTE_S / share
    return base.changed(model={"coded_share": share, "decoding": "smartnic", "decode_gbyte_s": rate})


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
