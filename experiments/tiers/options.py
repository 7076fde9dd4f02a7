"""Options of `make tiers`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic.dataclasses import dataclass as declared

from commands.cores import whole_cores
from commands.declarations import DECLARED, OneOf, Variable, Within
from commands.options import read
from commands.trace_options import TraceOptions
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
    """Time at which a node asks for what it fetches, as fields of a scenario's nodes."""

    help: str
    loading: str
    asking: str


PREFETCHES = {
    "none": Prefetch("block by block, when the GPU is the request's", "blocking", "block"),
    "chain": Prefetch("the whole chain at once, when the GPU is the request's", "blocking", "chain"),
    "queued": Prefetch("the whole chain at once, on arrival", "overlapped", "chain"),
}


@declared(frozen=True, slots=True, kw_only=True, config=DECLARED)
class TiersOptions(TraceOptions):
    """Traces, combinations and cluster of one run; sizes and rates are real ones."""

    shapes: tuple[Annotated[str, OneOf(SHAPES)], ...] = ("chat",)
    """Generated shapes, by commas."""
    requests: Annotated[int, Within(1, 10_000_000)] = 12_000
    """Number of requests of each generated trace."""
    seed: Annotated[int, Within(0, 2**31)] = DEFAULT_SEED
    """Seed of generator, scheduler and policy."""
    load: Annotated[float, Within(0.01, 1000)] = 1.0
    """Rate of the requests, relative to the trace's own."""
    tiers: tuple[Annotated[str, OneOf(RULES)], ...] = tuple(RULES)
    """Rules between GPU memory and DRAM."""
    gate: tuple[Annotated[str, OneOf(GATES)], ...] = GATES
    """Gates to compare: always fetch, or compare with computing first."""
    prefetch: tuple[Annotated[str, OneOf(PREFETCHES)], ...] = tuple(PREFETCHES)
    """Times at which blocks are asked for."""
    hosts: Annotated[int, Within(1, 256)] = 8
    """Number of inference nodes."""
    scheduler: Annotated[str, OneOf(PLANNED)] = "random"
    """Scheduler, which chooses the node of a request."""
    gpu_blocks: Annotated[int, Within(1, 10_000_000)] = 400
    """Number of blocks in GPU memory of a node."""
    dram_blocks: Annotated[int, Within(0, 10_000_000)] = 3_000
    """Number of blocks in DRAM of a node."""
    policy: Annotated[str, OneOf(POLICY_NAMES)] = "reuse"
    """Policy of the pool."""
    pool_blocks: Annotated[int, Within(0, 10_000_000)] = 3_000
    """Number of blocks that the switch's pool holds; 0: no pool."""
    stores: Annotated[int, Within(1, 256)] = 2
    """Number of storage nodes."""
    store_blocks: Annotated[int, Within(1, 10_000_000)] = 10_000
    """Number of blocks in DRAM of a storage node."""
    ssd_blocks: Annotated[int, Within(0, 100_000_000)] = 100_000
    """Number of blocks on SSDs of a storage node."""
    ssd_gbyte_s: Annotated[float, Within(0.001, 1e5), Variable("SSD_GBYTE")] = 12.0
    """Rate of a storage node's SSDs, GB/s."""
    link_gbit_s: Annotated[float, Within(0.001, 1e5), Variable("LINK_GBIT")] = 200.0
    """Rate of a host's link, Gbit/s."""
    model: Annotated[str, OneOf(MODELS)] = DEFAULT_MODEL
    """Model whose KV is stored."""
    gpu: Annotated[str, OneOf(GPUS)] = "h800"
    """GPUs of a node."""
    jobs: Annotated[int, Within(1, 256)] = min(8, whole_cores())
    """Number of simulations at once."""
    results: Path = Path("results/tiers")
    """Folder for the results."""

    def traces(self) -> list[Trace]:
        """Return the trace of the given file, or all generated shapes; raises TraceError or GenerateError."""
        given = self.read_trace(self.seed)
        if given is not None:
            return [given]
        tokens = self.generated_tokens
        return [generate(shape, self.seed, self.requests, block_tokens=tokens) for shape in self.shapes]


def parse_options(arguments: Sequence[str]) -> TiersOptions:
    """Return the options from the command line and the environment; raises OptionError."""
    description = "Simulate traces in the whole hierarchy, under each rule, gate and prefetch."
    return read(TiersOptions, arguments, "weir tiers", description)
