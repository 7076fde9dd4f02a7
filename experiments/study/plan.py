"""Plan of the sweeps: purchases at each fan-in, an hour, one axis at a time, and the ablation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from experiments.study.designs import (
    codec_points,
    decoder_points,
    design_points,
    engine_points,
    gate_points,
    joining_points,
    warm_points,
)
from experiments.study.hours import hour_points
from experiments.study.point import Point
from experiments.study.space import space_points
from experiments.study.systems import (
    ANSWERED,
    BASELINES,
    BOUND,
    LENT,
    MOST_STORES,
    PEER_SHARES,
    ROUTED,
    ROUTED_AT_ONCE,
    ROUTINGS,
    Setting,
    routed,
    system,
)
from experiments.study.tornado import tornado_points
from workload.cost import MODELS
from workload.schedule import SCHEDULERS


@dataclass(frozen=True, slots=True)
class Axis:
    """A field of Setting and the values that it takes."""

    field: str
    label: str
    values: tuple[Any, ...]
    quick: tuple[Any, ...]
    systems: tuple[str, ...]
    log: bool = True


POOLED = (*BASELINES, "stores", "switch")
AXES = (
    Axis(
        "pool_gb",
        "pool, GB a switch",
        (1.0, 4.0, 16.0, 64.0, 256.0, 1000.0, 4000.0, 16_000.0),
        (4.0, 64.0, 1000.0),
        ("recompute", "stores", "switch"),
    ),
    Axis("nodes", "inference nodes (fan-in)", (1, 2, 4, 8, 16, 32, 60, 128, 256), (2, 16, 60), POOLED),
    Axis(
        "stores",
        "storage nodes that share 8 TB",
        (1, 2, 4, 8, MOST_STORES),
        (2, 8),
        ("recompute", "stores", "switch"),
    ),
    Axis(
        "load",
        "load, times the traffic's own rate",
        (1.0, 2.0, 4.0, 8.0, 16.0, 24.0, 32.0),
        (2.0, 24.0),
        POOLED,
    ),
    Axis(
        "reuse",
        "share of requests that keep their prefix",
        (0.0, 0.25, 0.5, 0.75, 1.0),
        (0.0, 0.5, 1.0),
        POOLED,
        log=False,
    ),
    Axis(
        "link_gbit_s",
        "link, Gbit/s",
        (10.0, 25.0, 50.0, 100.0, 200.0, 400.0, 800.0),
        (25.0, 200.0),
        (*POOLED, "smartnic"),
    ),
    Axis("model", "model", tuple(MODELS), ("llama3-70b-fp8", "deepseek-v3"), POOLED, log=False),
    Axis("scheduler", "scheduler", SCHEDULERS, ("random", "locality"), POOLED, log=False),
    Axis("block_tokens", "tokens a block", (32, 64, 128, 256, 512), (128, 512), (*POOLED, "sram")),
)
"""Axes of the sweeps of one change at a time.

SRAM of 64 MB holds no block of 512 tokens of this model (84 MB): it is simulated only with small blocks.
"""

RIVAL_FAN_INS = (16, 32, 46, 60)
"""Numbers of nodes; 46 nodes and 16 storage nodes are the most that one switch of 63 ports connects."""
QUICK_RIVAL_FAN_INS = (16, 32)
RIVAL_STORES = (1, 2, 4, 8, MOST_STORES)
QUICK_RIVAL_STORES = (2, 8)
REQUESTS_A_NODE = 50
"""Least number of requests a node: in the second half of the arrivals, each node has served 25 requests."""

SHAPES = ("agents", "chat", "rag", "flash")
QUICK_SHAPES = ("agents", "chat")

Parts = dict[str, dict[str, Any]]
ABLATION: dict[str, Parts] = {
    "everything": {},
    "no merging": {"pool": {"merging": False}},
    "no multicast": {"pool": {"multicast": False}},
    "merging only, nothing cached": {"pool": {"size_gb": 0.1}, "control": {"report_count": 0x8000}},
    "admitted blocks are fetched at once": {"control": {"report_count": 1, "fill": "now"}},
    "with reclaim": {"control": {"report_count": 1, "eviction": "reclaim"}},
    "reclaim from stores that forget": {
        "control": {"report_count": 1, "eviction": "reclaim"},
        "storage": {"dram_gb": 10.0},
    },
    "stores that forget, no reclaim": {"storage": {"dram_gb": 10.0}},
    "LRU instead of reuse value": {"pool": {"policy": "lru"}},
}
ABLATION_POOL_GB = 4.0
"""Pool size in GB that is small enough to fill."""

CONTROL: dict[str, Parts] = {
    "as measured": {},
    "tables that take 115 updates/s": {"control": {"writes_per_s": 115.0}},
    "digests are not gathered": {"control": {"list_s": 0.0}},
    "reports from the 2nd miss on": {"control": {"report_count": 2}},
    "reports from the 4th miss on": {"control": {"report_count": 4}},
}


def points(centre: Setting, traced: Setting | None, quick: bool, space: int = 0) -> Iterator[Point]:
    """Yield all simulations whose place is known beforehand; `space` is the number of those
    of the sweep space."""
    yield from space_points(centre, space)
    yield from _rivals(centre, quick)
    yield from gate_points(centre, quick)
    yield from design_points(centre, quick)
    yield from codec_points(centre, quick)
    yield from engine_points(centre, quick)
    yield from decoder_points(centre, quick)
    yield from warm_points(centre, quick)
    yield from joining_points(centre, quick)
    yield from tornado_points(centre, quick)
    yield from hour_points(centre, quick)
    yield from _shapes(centre, traced, quick)
    for axis in AXES:
        for value in axis.quick if quick else axis.values:
            setting = replace(centre, **{axis.field: value})
            for name in axis.systems:
                if name != "sram" or value <= 128:
                    yield Point(axis.field, value, name, setting, system(name, setting))
    small = replace(centre, pool_gb=ABLATION_POOL_GB)
    for label, tables in ABLATION.items():
        yield Point("ablation", label, "switch", small, system("switch", small).changed(**tables))
    yield Point("ablation", "no pool", "stores", small, system("stores", small))
    for label, tables in CONTROL.items():
        yield Point("control", label, "switch", small, system("switch", small).changed(**tables))


def _rivals(centre: Setting, quick: bool) -> Iterator[Point]:
    """Yield the purchases at each fan-in: total memory is the same, the number of storage nodes differs."""
    least = 0 if quick else REQUESTS_A_NODE
    for nodes in QUICK_RIVAL_FAN_INS if quick else RIVAL_FAN_INS:
        setting = replace(centre, nodes=nodes, requests=max(centre.requests, least * nodes))
        for name in (*BASELINES, *LENT, *ANSWERED, "l7", BOUND):
            yield Point("rivals", nodes, name, setting, system(name, setting))
        for variant, share in PEER_SHARES.items():
            slower = replace(setting, peer_share=share)
            for name in ("distributed", "lent"):
                yield Point("rivals", nodes, name, slower, system(name, slower), variant)
        for name in ROUTED:
            for variant in ROUTINGS:
                yield Point("rivals", nodes, name, setting, routed(name, setting, variant), variant)
        for variant in ROUTED_AT_ONCE:
            whole = routed(ROUTED[1], setting, variant).changed(direct={"front": "whole"})
            yield Point("rivals", nodes, BOUND, setting, whole, variant)
        queues = replace(setting, scheduler="conductor")
        for name in (*BASELINES, "lent", "stores", "switch"):
            yield Point("rivals", nodes, name, queues, system(name, queues), "conductor")
        for stores in QUICK_RIVAL_STORES if quick else RIVAL_STORES:
            split = replace(setting, stores=stores)
            for name in ("stores", "switch", "smartnic"):
                yield Point("rivals", nodes, name, split, system(name, split))


def _shapes(centre: Setting, traced: Setting | None, quick: bool) -> Iterator[Point]:
    """Yield every system on every kind of traffic, and on the trace, if one is given."""
    settings = {shape: replace(centre, shape=shape) for shape in (QUICK_SHAPES if quick else SHAPES)}
    if traced is not None:
        settings["trace"] = traced
    for label, setting in settings.items():
        for name in POOLED:
            yield Point("shape", label, name, setting, system(name, setting))
