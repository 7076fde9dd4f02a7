"""One simulated cluster: a workload, a pool's memory, what a block is, and whether chunks are blended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from scenario import GB, Scenario
from simulator.result import SimResult
from simulator.simulation import simulate
from workload.compression import NONE
from workload.cost import make_cost_model

MODEL, GPU = "llama3-70b", "h800"
"""It keeps bfloat16, so the codecs' ratios count in full."""
CODECS = {"plain": NONE, "8-bit": "fp8", "CacheGen": "cachegen"}
"""By the name that tables have; each at its default level."""
PREFIX, BLEND = "prefix", "blend"


class Cell(NamedTuple):
    """What one row of the table is about."""

    workload: str
    blocks: int
    """Memory of the pool, in blocks of 512 tokens as the model keeps them, whatever a trace's blocks are."""
    codec: str
    reuse: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """What all cells have in common."""

    requests: int
    load: float
    """Times as fast as the workload."""
    link_gbit_s: float
    gpu_gb: float
    dram_gb: float
    policy: str
    coder: str
    share: float
    """Of blended chunks' tokens, that is recomputed."""
    trace: str = ""
    """File of the workload that is no generated shape."""


@dataclass(frozen=True, slots=True)
class Figures:
    """Of one run."""

    pool_hits: float
    """Blocks from the pool, as a share of all."""
    found: float
    """Blocks that were not computed."""
    egress_tb: float
    """Sent by storage nodes."""
    ttft_mean_ms: float
    ttft_p50_ms: float
    ttft_p99_ms: float
    gpu_s: float
    """Of prefill and blending."""


def play(cell: Cell, cluster: Cluster, seed: int, traced: str) -> Figures:
    """Simulate one; `traced` is the name of the workload that is in a file."""
    result = simulate(scenario_of(cell, cluster, seed, cell.workload == traced))
    total = sum(result.blocks.values())
    return Figures(
        result.blocks["pool"] / total,
        result.found_share,
        result.storage_egress_bytes / 1e12,
        *_ttft_ms(result),
        result.prefill_s,
    )


def scenario_of(cell: Cell, cluster: Cluster, seed: int, from_file: bool) -> Scenario:
    """Nodes with little memory of their own and the gate that compares; misses reported at once."""
    block_bytes = make_cost_model(MODEL, GPU, 512).block_bytes
    asked = {"trace": cluster.trace} if from_file else {"shape": cell.workload}
    return Scenario().changed(
        workload={**asked, "requests": cluster.requests, "load": cluster.load, "seed": seed},
        model={"name": MODEL, "gpu": GPU, "codec": CODECS[cell.codec], "coder": cluster.coder},
        nodes={
            "gate": "compare",
            "gpu_gb": cluster.gpu_gb,
            "dram_gb": cluster.dram_gb,
            "blend": cell.reuse == BLEND,
            "blend_share": cluster.share,
        },
        network={"link_gbit_s": cluster.link_gbit_s},
        pool={"size_gb": (cell.blocks + 0.5) * block_bytes / GB, "policy": cluster.policy},
        control={"report_count": 1},
    )


def _ttft_ms(result: SimResult) -> tuple[float, float, float]:
    spread = result.ttft_s
    return 1000 * spread.mean, 1000 * spread.p50, 1000 * spread.p99
