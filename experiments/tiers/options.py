"""What a run is asked to do."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from commands.options import Option, list_of, number, one_of, parse_into, whole
from commands.trace_options import TRACE_OPTIONS, TraceOptions
from controller.policies import POLICY_NAMES
from hostlib.model.gate import GATES
from hostlib.model.tier_rules import RULES
from workload.cost import DEFAULT_MODEL, GPUS, MODELS
from workload.generate import DEFAULT_SEED, generate
from workload.schedule import PLANNED
from workload.shapes import SHAPES
from workload.trace import Trace


@dataclass(frozen=True, slots=True)
class Prefetch:
    """How early what is fetched is asked for, as fields of a scenario's nodes."""

    help: str
    loading: str
    asking: str


PREFETCHES = {
    "none": Prefetch("block by block, when the GPU is the request's", "blocking", "block"),
    "chain": Prefetch("the whole chain at once, when the GPU is the request's", "blocking", "chain"),
    "queued": Prefetch("the whole chain at once, on arrival", "overlapped", "chain"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TiersOptions(TraceOptions):
    """One run; sizes and rates are real ones."""

    shapes: tuple[str, ...]
    requests: int
    seed: int
    load: float
    tiers: tuple[str, ...]
    gate: tuple[str, ...]
    prefetch: tuple[str, ...]
    hosts: int
    scheduler: str
    gpu_blocks: int
    dram_blocks: int
    policy: str
    pool_blocks: int
    stores: int
    store_blocks: int
    ssd_blocks: int
    ssd_gbyte_s: float
    link_gbit_s: float
    model: str
    gpu: str
    jobs: int
    results: Path

    def traces(self) -> list[Trace]:
        """Those to play; raises TraceError or GenerateError."""
        given = self.read_trace(self.seed)
        if given is not None:
            return [given]
        tokens = self.generated_tokens
        return [generate(shape, self.seed, self.requests, block_tokens=tokens) for shape in self.shapes]


# In the order of TiersOptions' fields. A block of the default model has 84 MB.
_OPTIONS = (
    *TRACE_OPTIONS,
    Option("SHAPES", list_of(one_of(tuple(SHAPES))), ("chat",), "generated shapes, by commas"),
    Option("REQUESTS", whole(1, 10_000_000), 12_000, "requests of each generated trace"),
    Option("SEED", whole(0, 2**31), DEFAULT_SEED, "of generator, scheduler and policy"),
    Option("LOAD", number(0.01, 1000), 1.0, "requests come so many times as fast as in the trace"),
    Option("TIERS", list_of(one_of(tuple(RULES))), tuple(RULES), "rules between GPU memory and DRAM"),
    Option("GATE", list_of(one_of(GATES)), GATES, "always fetch, or compare with computing first"),
    Option(
        "PREFETCH", list_of(one_of(tuple(PREFETCHES))), tuple(PREFETCHES), "how early blocks are asked for"
    ),
    Option("HOSTS", whole(1, 256), 8, "inference nodes"),
    Option("SCHEDULER", one_of(tuple(PLANNED)), "random", "which node serves a request"),
    Option("GPU_BLOCKS", whole(1, 10_000_000), 400, "blocks of GPU memory a node"),
    Option("DRAM_BLOCKS", whole(0, 10_000_000), 3_000, "blocks of DRAM a node"),
    Option("POLICY", one_of(tuple(POLICY_NAMES)), "reuse", "policy of the pool"),
    Option("POOL_BLOCKS", whole(0, 10_000_000), 3_000, "blocks that the switch's pool holds; 0: no pool"),
    Option("STORES", whole(1, 256), 2, "storage nodes"),
    Option("STORE_BLOCKS", whole(1, 10_000_000), 10_000, "blocks of DRAM a storage node"),
    Option("SSD_BLOCKS", whole(0, 100_000_000), 100_000, "blocks of SSD a storage node"),
    Option("SSD_GBYTE", number(0.001, 1e5), 12.0, "rate of a storage node's SSDs, GB/s"),
    Option("LINK_GBIT", number(0.001, 1e5), 200.0, "rate of a host's link, Gbit/s"),
    Option("MODEL", one_of(tuple(MODELS)), DEFAULT_MODEL, "model whose KV is stored"),
    Option("GPU", one_of(tuple(GPUS)), "h800", "GPUs of a node"),
    Option("JOBS", whole(1, 256), min(8, os.cpu_count() or 1), "simulations at once"),
    Option("RESULTS", Path, Path("results/tiers"), "folder for the results"),
)


def parse_options(arguments: Sequence[str]) -> TiersOptions:
    """Options from the command line and the environment; raises OptionError."""
    description = "Simulate traces in the whole hierarchy, under each rule, gate and prefetch."
    return parse_into(TiersOptions, _OPTIONS, arguments, "python -m experiments.tiers", description)
