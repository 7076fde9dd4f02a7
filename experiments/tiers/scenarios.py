"""Scenarios of a run, one for each trace, rule, gate and prefetch, and their results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from experiments.tiers.options import PREFETCHES, TiersOptions
from hostlib.node.request_record import SOURCES
from scenario import GB, Scenario
from simulator.simulation import simulate
from workload.cost import make_cost_model
from workload.trace import Trace

SEGMENTS = 8
"""Number of pieces of a block behind its probe: with few fragments in a window, few whole
blocks pass at once."""

__all__ = ["SOURCES", "Result", "make_scenario", "play"]


@dataclass(frozen=True, slots=True)
class Result:
    """Result of one combination; its fields are those of results/tiers/summary.json."""

    tiers: str
    gate: str
    prefetch: str
    blocks: dict[str, int]
    """Number of blocks by source."""
    block_bytes: float
    ssd_reads: int
    """Number of blocks that storage nodes read from SSD, for any reason."""
    saved_prefill_s: float
    fetch_s: float
    """Seconds from asking to the last block, summed over requests."""
    storage_bytes: float
    """Bytes that left storage nodes, with headers."""
    pool_bytes: float
    """Bytes that switches served, with headers."""
    copied_down_bytes: float
    """Bytes written from GPU memory to DRAM."""
    refused_blocks: int
    """Number of blocks that were not fetched because computing them was faster."""
    ttft_mean_s: float
    ttft_p50_s: float
    ttft_p99_s: float


def make_scenario(trace: Trace, options: TiersOptions, tiers: str, gate: str, prefetch: str) -> Scenario:
    """Return the scenario of a trace under a rule, a gate and a prefetch; it begins with empty memories."""
    block_bytes = make_cost_model(options.model, options.gpu, trace.block_tokens).block_bytes

    def gigabytes(blocks: int) -> float:
        return (blocks + 0.5) * block_bytes / GB if blocks else 0.0

    chosen = PREFETCHES[prefetch]
    pool: dict[str, Any] = {"memory": "none"}
    if options.pool_blocks:
        pool = {"memory": "sram", "size_gb": gigabytes(options.pool_blocks), "policy": options.policy}
    return Scenario(name=f"{tiers}, {gate}, {prefetch}").changed(
        workload={
            **(options.scenario_fields() or {"shape": _shape(trace)}),
            "requests": len(trace.requests),
            "start_s": 0.0,
            "load": options.load,
            "scheduler": options.scheduler,
            "seed": options.seed,
        },
        model={"name": options.model, "gpu": options.gpu, "block_tokens": trace.block_tokens},
        nodes={
            "count": options.hosts,
            "gpu_gb": gigabytes(options.gpu_blocks),
            "dram_gb": gigabytes(options.dram_blocks),
            "tiers": tiers,
            "gate": gate,
            "loading": chosen.loading,
            "asking": chosen.asking,
        },
        network={"link_gbit_s": options.link_gbit_s, "segments": SEGMENTS},
        storage={
            "count": options.stores,
            "dram_gb": gigabytes(options.store_blocks),
            "ssd_gb": gigabytes(options.ssd_blocks),
            "ssd_gbyte_s": options.ssd_gbyte_s,
        },
        pool=pool,
    )


def play(trace: Trace, options: TiersOptions, tiers: str, gate: str, prefetch: str) -> Result:
    """Simulate one combination and return its result; raises ScenarioError if it is impossible."""
    found = simulate(make_scenario(trace, options, tiers, gate, prefetch))
    return Result(
        tiers,
        gate,
        prefetch,
        blocks=found.blocks,
        block_bytes=found.block_bytes,
        ssd_reads=found.ssd_reads,
        saved_prefill_s=found.saved_prefill_s,
        fetch_s=found.fetch_s,
        storage_bytes=found.storage_egress_bytes,
        pool_bytes=found.switch_served_bytes,
        copied_down_bytes=found.copied_down_blocks * found.block_bytes,
        refused_blocks=found.refused_blocks,
        ttft_mean_s=found.ttft_s.mean,
        ttft_p50_s=found.ttft_s.p50,
        ttft_p99_s=found.ttft_s.p99,
    )


def _shape(trace: Trace) -> str:
    """Return the shape of a generated trace, whose name begins with it."""
    return trace.name.split()[0]
