"""One simulated cluster: a workload, a pool's memory, the codec of blocks, and whether chunks are blended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from scenario import GB, Scenario
from simulator.result import SimResult
from simulator.simulation import simulate
from workload.compression import NONE
from workload.cost import make_cost_model

MODEL, GPU = "llama3-70b", "h800"
"""Model and GPU; the model's KV is bfloat16, so that the codecs' ratios count in full."""
CODECS = {"plain": NONE, "8-bit": "fp8", "CacheGen": "cachegen"}
"""Codecs by their names in tables; each is used at its default level."""
PREFIX, BLEND = "prefix", "blend"


class Cell(NamedTuple):
    """Variables of one row of the table."""

    workload: str
    blocks: int
    """Memory of the pool, in blocks of 512 tokens as the model makes them, whatever the
    trace's block size is."""
    codec: str
    reuse: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Variables that all cells have in common."""

    requests: int
    load: float
    """Rate of the requests, relative to the workload's own."""
    link_gbit_s: float
    gpu_gb: float
    dram_gb: float
    policy: str
    coder: str
    share: float
    """Share of blended chunks' tokens that is recomputed."""
    trace: str = ""
    """File of the workload that is no generated shape."""


@dataclass(frozen=True, slots=True)
class Figures:
    """Figures of one run."""

    pool_hits: float
    """Blocks from the pool, as a share of all."""
    found: float
    """Blocks that were not computed, as a share of all."""
    egress_tb: float
    """Terabytes that storage nodes sent."""
    ttft_mean_ms: float
    ttft_p50_ms: float
    ttft_p99_ms: float
    gpu_s: float
    """GPU seconds of prefill and blending."""


def play(cell: Cell, cluster: Cluster, seed: int, traced: str) -> Figures:
    """Simulate one cell and return its figures; `traced` is the name of the workload that is in a file."""
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
    """Return the scenario of a cell: nodes with little memory and the gate that compares;
    misses reported at once."""
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
