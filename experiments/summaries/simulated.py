"""Summaries of the experiments that simulate or replay."""

from __future__ import annotations

from dataclasses import dataclass as plain_dataclass

from pydantic.dataclasses import dataclass

from commands.intervals import Interval
from experiments.policies.replay import Result as Replayed
from experiments.simulate_faults.run import RunOutcome as FaultyRun
from experiments.summaries.common import DESCRIBED, OPEN, HasEngine, HasRevision, JsonObject
from experiments.tiers.scenarios import Result as TiersPlayed


@dataclass(frozen=True, kw_only=True, config=DESCRIBED)
class ReplayedTrace(Replayed):
    """Result of one policy at one pool size; it has its trace if there are several."""

    trace: str | None = None


@dataclass(kw_only=True, config=DESCRIBED)
class Policies:
    """Traces replayed through all policies."""

    trace: str
    """Names of the traces, with commas between them."""
    results: list[ReplayedTrace]


@plain_dataclass(frozen=True, kw_only=True)
class TiersOfTrace(TiersPlayed):
    """Result of one combination on one trace."""

    trace: str


@dataclass(kw_only=True, config=DESCRIBED)
class Tiers(HasRevision):
    """Traces simulated in the whole hierarchy."""

    options: JsonObject
    """All options of the command with their values."""
    results: list[TiersOfTrace]


@dataclass(kw_only=True, config=DESCRIBED)
class Ratio:
    """A ratio over seeds, with its 95 % confidence interval."""

    ratio: float
    low: float
    high: float


@dataclass(kw_only=True, config=DESCRIBED)
class ClaimRecord:
    """Ratios of one system's figures to another's on the same traffic."""

    traffic: str
    condition: str
    """Condition of the traffic that makes it special."""
    system: str
    over: str
    """Name of the system that it is compared with."""
    memory: str
    """Memory of the system's pool."""
    seeds: int
    cache_dollars_per_hour: list[float]
    """Cost of the system, and of the one that it is compared with."""
    ttft_mean_s: Ratio
    ttft_p99_s: Ratio
    group_ttft_s: Ratio
    """Time until the last reader of a group had its first token."""
    sessions_per_hour: Ratio
    sent_gb: Ratio
    """Bytes that left storage nodes."""


@dataclass(kw_only=True, config=DESCRIBED)
class ClaimCell:
    """One system on one traffic."""

    traffic: str
    system: str
    runs: list[dict[str, float]]
    """Figures of each seed by name."""


@dataclass(kw_only=True, config=DESCRIBED)
class Claims(HasEngine):
    """Benefit of merging and pools if many readers need the same blocks."""

    seed: int
    """First seed."""
    seeds: int
    """Number of seeds."""
    requests: int
    claims: list[ClaimRecord]
    cells: list[ClaimCell]


@dataclass(kw_only=True, config=DESCRIBED)
class Times:
    """Seconds, or a ratio, over seeds: mean, median and 99th percentile; bounds are null for one run."""

    mean: float | None
    low: float | None
    high: float | None
    """Upper bound of the mean's 95 % confidence interval."""
    p50: float | None
    p50_low: float | None
    p50_high: float | None
    p99: float | None
    p99_low: float | None
    p99_high: float | None


@dataclass(kw_only=True, config=DESCRIBED)
class MeanTime:
    """Seconds over seeds, with the bounds of the 95 % confidence interval."""

    mean: float | None
    low: float | None
    high: float | None


@dataclass(kw_only=True, config=DESCRIBED)
class Over:
    """Times over those of another system, seed by seed."""

    first_token: Times
    steady: Times
    end_to_end: Times


@dataclass(kw_only=True, config=DESCRIBED)
class StudyPoint(Times):
    """One system at one value of one sweep; its own times are those to the first token."""

    sweep: str
    value: str | float | bool | None
    """Value of what the sweep varies."""
    system: str
    variant: str
    label: str
    nodes: int
    stores: int
    decode: str
    """Place where tokens are decoded: apart, or batched with the prefills."""
    requests: int
    seeds: list[int]
    start: Times
    """Times to the first token in the first half of the arrivals."""
    steady: Times
    """Times to the first token in the second half of the arrivals."""
    time_per_output_token: Times
    between_tokens: Times
    end_to_end: Times
    start_extra_wait_s: MeanTime
    over_recomputing: Over | None = None
    over_the_same_without: Over | None = None
    """Times over those of the same system with a switch that only forwards."""
    hour_without_its_start: Times | None = None
    """Times to the first token of an hour without its first twelfth; only in the sweep over an hour."""
    cost_per_hour: float
    """Dollars an hour for what caches."""
    total_cost_per_hour: float
    """Dollars an hour for everything."""


@dataclass(kw_only=True, config=DESCRIBED)
class CoarseComparison:
    """A comparison whose interval stayed wider than wanted, with all seeds or because the time ended."""

    name: str
    seeds: int
    half: float | None


@dataclass(kw_only=True, config=OPEN)
class Study:
    """Study of where the pool pays. Any further key is a table of the report: a list of rows by column."""

    about: JsonObject
    """Revision, engine, seeds, and how to read the figures, in words."""
    points: list[StudyPoint]
    coarse: list[CoarseComparison]


@dataclass(kw_only=True, config=DESCRIBED)
class LiteratureRow:
    """A published figure beside the simulator's."""

    source: str
    row: str
    """System or setting."""
    figure: str
    published: float
    simulated: float
    deviation: float
    """Simulated over published, less 1."""
    fitted: bool
    """Whether a parameter was chosen by this figure, so that it says nothing about the model."""


@dataclass(kw_only=True, config=DESCRIBED)
class EmulatorRow:
    """A figure of the emulator beside the simulator's."""

    scenario: str
    figure: str
    emulator: float
    simulator: float
    deviation: float
    """Simulator over emulator, less 1."""
    tolerance: float | None
    agrees: bool | None
    """Whether the deviation is within the tolerance; null without one."""


@dataclass(kw_only=True, config=DESCRIBED)
class Validate(HasRevision):
    """The simulator against the emulator and the literature."""

    revisions: dict[str, str | None]
    """Revision that made each of the two lists."""
    literature: list[LiteratureRow]
    emulator: list[EmulatorRow]
    overloaded: list[str]
    """Plays in which the machine did not keep up, so their rows do not count."""


@dataclass(kw_only=True, config=DESCRIBED)
class WorthCell:
    """One workload, pool, codec and way of reuse."""

    workload: str
    blocks: int
    """Memory of the pool, in uncoded blocks of 512 tokens."""
    codec: str
    reuse: str
    """Way of reuse: "prefix" for prefixes only, or "blend" for blended chunks as well."""


@dataclass(kw_only=True, config=DESCRIBED)
class WorthFigures(WorthCell):
    """A cell and its figures over seeds."""

    pool_hits: Interval
    """Blocks from the pool, as a share of all."""
    found: Interval
    """Blocks that were not computed, as a share of all."""
    egress_tb: Interval
    """Terabytes that storage nodes sent."""
    ttft_mean_ms: Interval
    ttft_p50_ms: Interval
    ttft_p99_ms: Interval
    gpu_s: Interval
    """GPU seconds of prefill and blending."""


@dataclass(kw_only=True, config=DESCRIBED)
class Compressed(WorthCell):
    """Benefit of compressing."""

    than_plain_ms: Interval
    """Mean time to the first token less that of the same memory with plain blocks."""
    beats_plain_blocks: int
    """Size of the largest plain pool that is slower, in blocks; 0 for none."""


@dataclass(kw_only=True, config=DESCRIBED)
class Blended(WorthCell):
    """Benefit of blending."""

    than_prefix_ms: Interval
    """Mean time to the first token less that of reusing prefixes only."""
    than_prefix_gpu: Interval
    """GPU time over that of reusing prefixes only, less 1."""


@dataclass(kw_only=True, config=DESCRIBED)
class Worth:
    """Comparison of compressing with a larger pool, and of blending with recomputing."""

    about: JsonObject
    """Model, GPU, options of the cluster, seeds, revision and engine."""
    cells: list[WorthFigures]
    compressed: list[Compressed]
    blended: list[Blended]


@dataclass(kw_only=True, config=DESCRIBED)
class SimulateFaults(HasRevision):
    """Whole systems in virtual time with random faults."""

    runs: int
    failed: list[int]
    """Seeds of the runs that broke a promise."""
    cpu_s: float
    virtual_s: float
    counts: dict[str, int]
    """Number of operations by outcome, and of faults, over all runs."""
    outcomes: list[FaultyRun]
