"""Summaries of the experiments that run on the emulator."""

from __future__ import annotations

from dataclasses import dataclass as plain_dataclass

from pydantic.dataclasses import dataclass

from commands.intervals import Interval
from emulator.result import RunResult
from experiments.engines.result import ModeResult
from experiments.faults.intruders import Result as AttackResult
from experiments.faults.result import Result as FaultResult
from experiments.incast.result import Point as PointOfIncast
from experiments.summaries.common import DESCRIBED, MadeBy


@dataclass(kw_only=True, config=DESCRIBED)
class ServerOfRun:
    """One of SERVERS."""

    cores: float
    """That it may be given work for."""
    load_share: float
    """Share of the CPU time of hosts and switches that is reckoned for those it carries."""
    carries: list[str]
    """Its hosts and switches."""
    wall_clock_ahead_ms: float
    """By how much its clock was ahead of this machine's before the run, ms."""
    clock_within_ms: float | None = None
    """Error of the comparison of clocks by which captures and traces were corrected, ms."""
    clock_drift_ms: float | None = None
    """By how much its clock went ahead during the run, ms."""


@dataclass(kw_only=True, config=DESCRIBED)
class TunnelOfRun:
    """What two of SERVERS have between them, measured before the run."""

    between: list[str]
    asked_bit_s: float
    """Rates of the links in it together, one way, bit/s."""
    carries_bit_s: float
    """What one thread got through, bit/s, without what the tunnel adds; links may ask for half."""
    frame_bytes: int
    """Of the frames that were sent."""
    frames_per_s: float
    """Of these that came through, 1/s."""
    send_us: float
    """CPU time of the sender for each, us."""
    rtt_us: float
    """Of a small packet, there and back, us."""
    lost_share: float
    """Of small packets."""


@dataclass(kw_only=True, config=DESCRIBED)
class Run(MadeBy):
    """One trace, run in several modes."""

    topology: str
    trace: str
    """File or folder of the trace, or the generated shape and its seed."""
    seed: int
    scale: float
    """Sigma: by what bytes and link rates were divided."""
    value_bytes: int
    """Bytes of a value on the wire."""
    scale_chosen: str
    """By whom sigma was chosen: by the user, or by the machine."""
    start_s: float
    """Second of the trace at which the run begins."""
    speed: float
    """Times as fast as the trace was recorded."""
    hosts: int
    """Inference nodes."""
    stores: int
    """Storage nodes; 0 where nodes lend one another their memory."""
    link_gbit_s: float
    """Rate of the nodes' links at real scale."""
    store_gbit_s: list[float] | None
    """Rates of the storage nodes' links, if they differ from the nodes'."""
    policy: str
    eviction: str
    """Which evicted blocks the switch sends to a home: drop, value or all."""
    fill: str
    expect: bool
    """Whether nodes announce what they will ask for."""
    pool_blocks: int
    model: str
    """Preset of the model, or the folder of the one whose KV is real."""
    scheduler: str
    ttft_slo_s: float | None
    """Latest time to the first token that counts as in time."""
    tiers: str
    gate: bool
    """Whether nodes compare fetching with computing."""
    hints: str
    fetch: bool
    """Whether nodes fetch at all."""
    requests_first: bool
    """Whether messages without a value leave ports first."""
    tenants: int
    block_bytes: int
    """Bytes of a block as it is emulated."""
    codec: str
    """What codes the blocks, and to how much."""
    blend_share: float | None
    """Share of a blended chunk's tokens that is recomputed; null without blending."""
    stored_share: float
    """Bytes of a stored block, as a share of the uncoded."""
    runs: dict[str, RunResult]
    """By mode: the run whose median GET is the median of all runs of the mode."""
    repeats: dict[str, list[RunResult]] | None = None
    """By mode: all runs, if there were several."""
    intervals: dict[str, dict[str, Interval]] | None = None
    """By mode and figure, if there were several runs: the mean and its 95 % confidence interval."""
    servers: dict[str, ServerOfRun] | None = None
    """By name, with SERVERS."""
    tunnels: list[TunnelOfRun] | None = None
    """One for each two servers with links between them."""


@plain_dataclass(frozen=True)
class IncastPoint(PointOfIncast):
    """One mode, pattern and number of nodes. Times are of emulated time, from when all nodes ask."""


@dataclass(kw_only=True, config=DESCRIBED)
class Incast(MadeBy):
    """Many nodes that ask one storage node at once."""

    topology: str
    switches: int
    seed: int
    scale: float
    """Sigma: by what bytes and link rates were divided."""
    link_gbit_s: float
    block_bytes: int
    blocks: int
    """Blocks that each node asks for in a burst."""
    bursts: int
    pause_s: float
    """Time between two bursts."""
    points: list[IncastPoint]


@dataclass(kw_only=True, config=DESCRIBED)
class NoticedDamage:
    """One request after a prefix whose loaded KV was damaged on purpose."""

    tokens_changed: int
    max_logprob_diff: float
    noticed: bool
    """Whether the comparison failed, as it must."""


@dataclass(kw_only=True, config=DESCRIBED)
class Engines(MadeBy):
    """vLLM without a pool, on storage nodes, and on the pool."""

    model: str
    switch: str
    """Engine of the switch: embedded or bmv2."""
    seed: int
    link_gbit_s: float
    scale: float
    """Always 1: KV is as large as vLLM makes it."""
    value_bytes: int
    stores: int
    """Storage nodes."""
    prefixes: int
    prefix_tokens: int
    suffix_tokens: int
    output_tokens: int
    own_blocks: int
    """Blocks that an engine's own cache holds."""
    objects_per_block: int
    object_bytes: int
    loading: str
    pool_blocks: int
    policy: str
    rounds: int
    """Turns of each mode, recomputing but one."""
    tolerance: float
    """Largest difference of a log-probability that counts as equal."""
    modes: dict[str, ModeResult]
    damaged: NoticedDamage | None
    """Null if it was not tried."""


@plain_dataclass(frozen=True)
class FaultCase(FaultResult):
    """One fault on one topology."""


@dataclass(kw_only=True, config=DESCRIBED)
class Faults(MadeBy):
    """Parts of a network killed, stopped and cut off under load."""

    replicas: int
    """Homes that keep each block."""
    nodes: int
    stores: int
    seconds: float
    """Load of each case."""
    rate_per_s: float
    """Operations that become due in a second."""
    fragments: int
    """Fragments of a block."""
    seed: int
    complete: bool
    """Whether all cases were run."""
    cases: list[FaultCase]


@dataclass(kw_only=True, config=DESCRIBED)
class Soak(MadeBy):
    """One network for long, under load and random faults."""

    seed: int
    minutes: float
    rounds: list[FaultCase]
    growth: dict[str, float]
    """By process: growth of its memory, as a share."""
    files: dict[str, int]
    """By process: files that it has open beyond those of the beginning."""
    lost_slots: int
    """Slots of the pools that are neither free nor a block's."""
    wrong_blocks: int
    lost_blocks: int
    left_over: list[str]
    """Processes and namespaces that were there after the end."""
    missed: list[str]
    """Goals that were not met, as sentences."""


@plain_dataclass(frozen=True)
class Attack(AttackResult):
    """One attack, and the operations of the others meanwhile."""


@dataclass(kw_only=True, config=DESCRIBED)
class Intruders(MadeBy):
    """One port that floods the network while others work."""

    seed: int
    flood_per_s: int
    """Frames that the intruder sends in a second."""
    apart: bool
    """Whether the intruder had a core of its own."""
    attacks: list[Attack]
