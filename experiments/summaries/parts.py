"""Summaries of the benchmarks and tests of single parts."""

from __future__ import annotations

from pydantic.dataclasses import dataclass

from commands.intervals import Interval
from experiments.bench.emulation.measure import Blast, Measured
from experiments.bench.switch.startup import ControlFigures
from experiments.mutate.__main__ import MutationResult
from experiments.summaries.common import DESCRIBED, OPEN, HasEngine, HasRevision, JsonObject


@dataclass(kw_only=True, config=DESCRIBED)
class Reason:
    """Result of one program or test, and its reason."""

    result: str
    reason: str
    """Reason in the compiler's or the test's words; empty if there is none."""


@dataclass(kw_only=True, config=DESCRIBED)
class Stf:
    """STF conformance tests."""

    passed: int
    failed: int
    refused: int
    """Number of tests whose program the compiler refuses."""
    tests: dict[str, Reason]


@dataclass(kw_only=True, config=OPEN)
class Corpus:
    """Results of compiling v1model programs. Any further key is a result, with the number of
    programs that have it."""

    programs: int
    compiled: int
    reasons: dict[str, int]
    """Number of programs by what stopped them."""
    outcomes: dict[str, Reason]


@dataclass(kw_only=True, config=DESCRIBED)
class Mutate(HasRevision):
    """Small changes of the modules that keep the promises, and whether tests noticed them."""

    seed: int
    tried: int
    noticed: int
    """Number of changes that some test noticed."""
    mutations: list[MutationResult]


@dataclass(kw_only=True, config=DESCRIBED)
class ConnectorOutcomes:
    """One connector."""

    version: str
    engine: str
    cases: dict[str, str]
    """Outcome of each case: passed, failed, unsupported or another word of the suite."""


@dataclass(kw_only=True, config=DESCRIBED)
class KvConformance(HasEngine):
    """KV connectors compared with recomputing."""

    seed: int
    connectors: dict[str, ConnectorOutcomes]


@dataclass(kw_only=True, config=DESCRIBED)
class Sensitivity:
    """Test whether the model uses its context, without which no figure counts."""

    perplexity: float
    shuffled_perplexity: float
    recall: float
    foreign_recall: float
    """Recall with the KV of chunks that were computed by themselves."""


@dataclass(kw_only=True, config=DESCRIBED)
class Quality:
    """Quality of one cache on the tails of all samples, against the model's own cache."""

    perplexity: float
    recall: float
    """Share of answers that are the most likely token."""
    top1_agreement: float
    kl: float
    """Mean over tokens of KL(exact || this), in nats."""
    continuation: float
    """Share of a greedy continuation's tokens before the first that differs."""
    intervals: dict[str, Interval] | None = None
    """Intervals of the figures over several sets of documents."""


@dataclass(kw_only=True, config=DESCRIBED)
class CodecQuality(Quality):
    """A codec at a level."""

    codec: str
    level: int | str
    ratio: float
    """Bytes of the plain KV over those of the stream."""
    perplexity_exact: float
    relative_error: float
    encode_mb_s: float
    decode_mb_s: float


@dataclass(kw_only=True, config=DESCRIBED)
class BlendQuality(Quality):
    """A way of reusing chunks that are no prefixes."""

    how: str
    recomputed: float
    """Share of the tokens that are recomputed."""
    flops_saved: float


@dataclass(kw_only=True, config=DESCRIBED)
class Blocks(HasRevision):
    """KV codecs and chunk reuse on a real transformer."""

    model: str
    corpus: str
    """Digest of the documents."""
    samples: int
    seed: int
    seeds: int
    """Number of sets of documents."""
    counts: bool
    """Whether the figures count, because the model uses its context."""
    sensitivity: Sensitivity
    shortfalls: list[str]
    codecs: list[CodecQuality]
    blend: list[BlendQuality]
    block_shares: JsonObject
    """Bytes of single blocks, as shares, by codec and level."""


@dataclass(kw_only=True, config=DESCRIBED)
class Median:
    """A figure over the rounds; null if no round has it."""

    median: float | None
    low: float | None
    """Lowest figure."""
    high: float | None
    """Highest figure."""


@dataclass(kw_only=True, config=DESCRIBED)
class EngineRates:
    """One engine under one workload: medians over the rounds, with the lowest and highest."""

    lossless_per_s: Median
    overload_per_s: Median
    offered_per_s: Median
    engine_busy: Median
    p50_us: Median
    p99_us: Median
    generator_limited: Median
    lossless_ratio_to: dict[str, Median]
    """Ratios within each round, by the other engine."""
    overload_ratio_to: dict[str, Median]
    rounds: list[dict[str, float | bool | None]]
    """The same figures in each round."""


@dataclass(kw_only=True, config=DESCRIBED)
class BenchSwitch(HasRevision):
    """Packets a second of the engines, which take turns."""

    seed: int
    rounds: int
    seconds: float
    versions: dict[str, str]
    machine: dict[str, str]
    """Kernel and processor."""
    background_cpu: float
    """Share of the cores that other programs used before the run."""
    generator_sink_per_s: float | None
    """Packets a second that the generator sends into a sink; null if not measured."""
    control: dict[str, ControlFigures]
    """Control figures by engine."""
    workloads: dict[str, dict[str, EngineRates]]
    """Rates by workload and engine."""


@dataclass(kw_only=True, config=DESCRIBED)
class BenchTables(HasRevision):
    """Costs of large tables in the switch."""

    seed: int
    rounds: int
    packet_ns: dict[str, list[float]]
    """Nanoseconds of a packet in each round, by case."""
    inserts_per_s: dict[str, float]
    ports: dict[str, dict[str, dict[str, float]]]
    """Figures on veth cables, by case and engine."""
    writes: dict[str, dict[int, list[float]]]
    """P4Runtime inserts a second, by engine and number of entries in a Write."""


@dataclass(kw_only=True, config=DESCRIBED)
class BenchHosts(HasEngine):
    """CPU time and latency of a block at client and storage node."""

    seed: int
    blocks: int
    block_bytes: int
    chain: int
    """Number of blocks of a chain."""
    link_mbit_s: float
    rounds: dict[str, list[dict[str, float]]]
    """Figures of each round, by work, mode and core."""


@dataclass(kw_only=True, config=DESCRIBED)
class BenchValues(HasRevision):
    """Cost of a byte by the size of values."""

    rounds: int
    seconds: float
    ns_a_byte: dict[int, list[dict[str, float]]]
    """CPU nanoseconds of a byte in each round, by size of a value, and by part and work."""
    ratios: dict[int, dict[str, float]]
    """Ratios of medians, by size of a value."""


@dataclass(kw_only=True, config=DESCRIBED)
class BenchEmulation(HasRevision):
    """Largest load that the machine keeps up with."""

    seed: int
    topology: str
    blast: Blast
    """Rates of bare datagrams, without Weir."""
    sizes: dict[int, Measured]
    """Measurements by number of nodes."""
