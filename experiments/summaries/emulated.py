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
from experiments.summaries.common import DESCRIBED, HasEngine


@dataclass(kw_only=True, config=DESCRIBED)
class ServerOfRun:
    """One server of SERVERS."""

    cores: float
    """Number of cores that it may use."""
    load_share: float
    """Share of the estimated CPU time of all hosts and switches that those on this server take."""
    carries: list[str]
    """Names of the hosts and switches on this server."""
    wall_clock_ahead_ms: float
    """Milliseconds by which its wall clock was ahead of this machine's before the run."""
    clock_within_ms: float | None = None
    """Error in milliseconds of the clock comparison that corrects captures and traces."""
    clock_drift_ms: float | None = None
    """Milliseconds that its clock gained on this machine's during the run."""


@dataclass(kw_only=True, config=DESCRIBED)
class TunnelOfRun:
    """Tunnel between two servers of SERVERS, measured before the run."""

    between: list[str]
    asked_bit_s: float
    """Sum of the rates of its links in one direction, bit/s."""
    carries_bit_s: float
    """Rate that one thread got through, bit/s, without the tunnel's headers; links may ask for half of it."""
    frame_bytes: int
    """Bytes of each frame that was sent."""
    frames_per_s: float
    """Frames that came through, 1/s."""
    send_us: float
    """CPU time of the sender for a frame, us."""
    rtt_us: float
    """Round-trip time of a small packet, us."""
    lost_share: float
    """Share of the small packets that were lost."""


@dataclass(kw_only=True, config=DESCRIBED)
class Run(HasEngine):
    """One trace, run in several modes."""

    topology: str
    trace: str
    """File or folder of the trace, or the generated shape and its seed."""
    seed: int
    scale: float
    """Sigma: the number that bytes and link rates were divided by."""
    value_bytes: int
    """Bytes of a value on the wire."""
    scale_chosen: str
    """Origin of sigma: chosen "by the user" or "by the machine"."""
    start_s: float
    """Second of the trace at which the run begins."""
    speed: float
    """Speed of the run relative to the recorded trace."""
    hosts: int
    """Number of inference nodes."""
    stores: int
    """Number of storage nodes; 0 if nodes lend one another their memory."""
    link_gbit_s: float
    """Rate of the nodes' links at real scale."""
    store_gbit_s: list[float] | None
    """Rates of the storage nodes' links, if they differ from the nodes'."""
    policy: str
    eviction: str
    """Evicted blocks that the switch sends to a home: drop, value or all."""
    fill: str
    expect: bool
    """Whether nodes announce what they will ask for."""
    pool_blocks: int
    model: str
    """Preset of the model, or the folder of the one whose KV is real."""
    scheduler: str
    ttft_slo_s: float | None
    """Largest time to the first token that counts as in time."""
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
    """Codec of the blocks and the share of bytes that it stores, in words."""
    blend_share: float | None
    """Share of a blended chunk's tokens that is recomputed; null without blending."""
    stored_share: float
    """Bytes of a stored block over those of an uncoded one."""
    runs: dict[str, RunResult]
    """Run of each mode whose median GET is the median of all runs of the mode."""
    repeats: dict[str, list[RunResult]] | None = None
    """Runs of each mode, if there were several."""
    intervals: dict[str, dict[str, Interval]] | None = None
    """Mean and 95 % confidence interval by mode and figure, if there were several runs."""
    servers: dict[str, ServerOfRun] | None = None
    """Servers by name, if SERVERS was given."""
    tunnels: list[TunnelOfRun] | None = None
    """Tunnels between each two servers with links between them."""


@plain_dataclass(frozen=True)
class IncastPoint(PointOfIncast):
    """One mode, pattern and number of nodes; times are emulated and begin when all nodes ask."""


@dataclass(kw_only=True, config=DESCRIBED)
class Incast(HasEngine):
    """Many nodes that ask one storage node at once."""

    topology: str
    switches: int
    seed: int
    scale: float
    """Sigma: the number that bytes and link rates were divided by."""
    link_gbit_s: float
    block_bytes: int
    blocks: int
    """Number of blocks that each node asks for in a burst."""
    bursts: int
    pause_s: float
    """Seconds between two bursts."""
    points: list[IncastPoint]


@dataclass(kw_only=True, config=DESCRIBED)
class NoticedDamage:
    """One request after a prefix whose loaded KV was damaged on purpose."""

    tokens_changed: int
    max_logprob_diff: float
    noticed: bool
    """Whether the comparison failed, as it must."""


@dataclass(kw_only=True, config=DESCRIBED)
class Engines(HasEngine):
    """vLLM without a pool, on storage nodes, and on the pool."""

    model: str
    switch: str
    """Engine of the switch: embedded or bmv2."""
    seed: int
    link_gbit_s: float
    scale: float
    """Sigma, which is always 1: KV is as large as vLLM makes it."""
    value_bytes: int
    stores: int
    """Number of storage nodes."""
    prefixes: int
    prefix_tokens: int
    suffix_tokens: int
    output_tokens: int
    own_blocks: int
    """Number of blocks that an engine's own cache holds."""
    objects_per_block: int
    object_bytes: int
    loading: str
    pool_blocks: int
    policy: str
    rounds: int
    """Number of turns of each mode, except recomputing, which has one."""
    tolerance: float
    """Largest difference of a log-probability that counts as equal."""
    modes: dict[str, ModeResult]
    damaged: NoticedDamage | None
    """Test with damaged KV; null if it was not run."""


@plain_dataclass(frozen=True)
class FaultCase(FaultResult):
    """One fault on one topology."""


@dataclass(kw_only=True, config=DESCRIBED)
class Faults(HasEngine):
    """Faults under load: parts of a network are killed, stopped and cut off."""

    replicas: int
    """Number of homes that hold each block."""
    nodes: int
    stores: int
    seconds: float
    """Seconds of load in each case."""
    rate_per_s: float
    """Operations that become due in a second."""
    fragments: int
    """Number of fragments of a block."""
    seed: int
    complete: bool
    """Whether all cases were run."""
    cases: list[FaultCase]


@dataclass(kw_only=True, config=DESCRIBED)
class Soak(HasEngine):
    """One network for a long time, under load and random faults."""

    seed: int
    minutes: float
    rounds: list[FaultCase]
    growth: dict[str, float]
    """Growth of each process's memory, as a share."""
    files: dict[str, int]
    """Number of files that each process has open beyond those at the beginning."""
    lost_slots: int
    """Number of slots of the pools that are neither free nor part of a block."""
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
class Intruders(HasEngine):
    """One port that floods the network while others work."""

    seed: int
    flood_per_s: int
    """Number of frames that the intruder sends in a second."""
    apart: bool
    """Whether the intruder had a core of its own."""
    attacks: list[Attack]
