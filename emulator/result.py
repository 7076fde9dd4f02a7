"""What a run measured."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from importlib import metadata
from pathlib import Path

from hostlib.model.blending import BlendTotals

ROOT = Path(__file__).resolve().parents[1]
"""The checkout, or the folder that pip installed the packages in."""
PROGRAM = (ROOT / "weir" / "p4" / "weir.p4").resolve()
"""The pool's P4 program: p4/weir.p4 of a checkout, or the copy in the package."""


@dataclass(frozen=True, slots=True)
class Percentiles:
    """Milliseconds of emulated time."""

    p50: float
    p99: float


@dataclass(frozen=True, slots=True)
class BlockSources:
    """Blocks by where a request found them."""

    gpu: int = 0
    dram: int = 0
    pool: int = 0
    remote: int = 0
    recomputed: int = 0

    @classmethod
    def added_up(cls, parts: Sequence[Mapping[str, int]]) -> BlockSources:
        """Return the sources of all nodes together."""
        return cls(**{entry.name: sum(part[entry.name] for part in parts) for entry in fields(cls)})

    @property
    def total(self) -> int:
        """Return the number of blocks of all requests."""
        return self.gpu + self.dram + self.pool + self.remote + self.recomputed


@dataclass(frozen=True, slots=True)
class Evictions:
    """What became of the evicted, in blocks, and what that took (controller.costs.PoolCounts)."""

    dropped: int = 0
    stubs: int = 0
    held_elsewhere: int = 0
    reclaimed: int = 0
    not_whole: int = 0
    reclaims_failed: int = 0
    reclaim_requests: int = 0
    reclaim_bytes: int = 0


@dataclass(frozen=True, slots=True)
class TenantResult:
    """What one tenant's nodes got."""

    tenant: int
    nodes: int
    completed: int
    """Requests."""
    blocks: BlockSources
    ttft_ms: Percentiles
    pool_blocks: int
    """Of its own in the switches' pools when the run ended."""


@dataclass(frozen=True, slots=True)
class TargetResult:
    """How many requests met TTFT_SLO."""

    target_ms: float
    """Of emulated time, as all that follows."""
    met: int
    """Requests whose first token came in time; one that never got any did not."""
    ttfts_ms: tuple[float, ...]
    """Of each request that got one, in order of arrival."""


@dataclass(frozen=True, slots=True)
class IndexResult:
    """What nodes that lend one another their memory asked their index. All but questions are blocks."""

    questions: int
    asked: int
    located: int
    """Of these, as the longest prefixes that other nodes held."""
    promised: int
    """Of these, that were then fetched."""


@dataclass(frozen=True, slots=True)
class RunResult:
    """One run of the trace."""

    requests: int
    completed: int
    failed: int
    corrupt: int
    """Blocks that came back other than they were stored, after all that the client does about it."""
    blocks: BlockSources
    storage_egress_bytes: int
    """Bytes that left the storage nodes' interfaces, headers included; without storage nodes all nodes', what
    they ask for included."""
    switch_served_bytes: int
    """Bytes of the replies that the switch made from its pool, headers included."""
    get_ms: Percentiles
    """Block requested to block checked."""
    ttft_ms: Percentiles
    """Arrival to first token."""
    merged: int
    """GETs that the switch absorbed because one for the same fragment was in flight."""
    admitted: int
    evicted: int
    p4runtime_writes: int
    digests: int
    wall_s: float
    overloaded: bool
    complaints: list[str] = field(default_factory=list)
    """Why it counts as overloaded."""
    cpu_share: float = 0.0
    """Mean share of all cores that were busy."""
    timer_late_p99_ms: float = 0.0
    """How late the timers of the latest process were."""
    switch_saturated: float = 0.0
    """Share of the samples in which the busiest thread of a switch had no pause."""
    controller_cpu_s: float = 0.0
    cpu_s: dict[str, float] = field(default_factory=dict)
    """CPU time while the trace ran, by role: all nodes, all storage nodes (store), all switches, the
    controller, the run's own process (watch), and the router or index where there is one."""
    link_drops: int = 0
    """Packets dropped by the queues of the modelled links."""
    pool_held: int = 0
    """Blocks that lay in the switches' pools at the end."""
    decoded: int = 0
    """Fetched blocks that were decoded; 0 without a codec."""
    decode_ms: Percentiles = Percentiles(0.0, 0.0)
    """Of requests that fetched: from the last block's arrival until all were decoded."""
    levels: dict[str, int] = field(default_factory=dict)
    """With LEVEL=adaptive: blocks by the level at which they came, "text" for those left to be computed."""
    mean_level: float | None = None
    """Of those that came."""
    target: TargetResult | None = None
    """With TTFT_SLO."""
    gate_limited: int = 0
    """Requests whose fetch the gate refused or cut short, as computing was faster."""
    gate_refused: int = 0
    """Blocks that were not fetched for that."""
    evictions: Evictions = field(default_factory=Evictions)
    ssd_reads: int = 0
    """Blocks that someone waited for."""
    read_ahead: int = 0
    """Blocks read from SSD before anyone asked for them."""
    read_ahead_hits: int = 0
    """Of those, asked for since."""
    retransmitted: int = 0
    """Fragments that clients asked for, or sent, again."""
    compared: int = 0
    """Fetched blocks that were compared, to the bit, with the KV that the model computed (MODEL=folder)."""
    blended: BlendTotals | None = None
    """With BLEND, where any request was."""
    rejected: int = 0
    """Requests that the conductor refused, as their first token would have come too late."""
    replicated: int = 0
    """Blocks that it had a node fetch though another node's memory held them."""
    tenants: tuple[TenantResult, ...] = ()
    """With TENANTS."""
    index: IndexResult | None = None
    """With STORES=0."""

    @property
    def is_right(self) -> bool:
        """Return whether every request was served, or refused by the conductor, and every block came back
        right."""
        return not self.failed and not self.corrupt and self.completed + self.rejected == self.requests


def percentiles(values: Sequence[float]) -> Percentiles:
    """p50 and p99 by nearest rank; zeros where there is nothing."""
    if not values:
        return Percentiles(0.0, 0.0)
    ordered = sorted(values)
    return Percentiles(
        *(round(ordered[min(len(ordered) - 1, int(share * len(ordered)))], 3) for share in (0.5, 0.99))
    )


def is_checkout() -> bool:
    """Return whether this is a checkout, which has Makefile, scripts and tests, or an installed package."""
    return (ROOT / "Makefile").is_file()


def version() -> str:
    """Return the version of the installed distribution; "unknown" where the files were only copied."""
    try:
        return metadata.version("weir")
    except metadata.PackageNotFoundError:
        return "unknown"


def revision() -> str:
    """Return the git revision of this checkout, "+" when there are changes.

    A checkout without git is "unknown"; what was installed has its version.
    """
    # A tarball may lie inside of another repository. A checkout may be somebody else's: sudo make run.
    git = ["git", "-C", str(ROOT), "-c", f"safe.directory={ROOT}"]
    try:
        top, described = (
            subprocess.run([*git, *words], capture_output=True, text=True, check=False).stdout.strip()
            for words in (
                ("rev-parse", "--show-toplevel"),
                ("describe", "--always", "--dirty=+", "--abbrev=12"),
            )
        )
    except OSError:
        described = ""
    if described and Path(top) == ROOT:
        return described
    return version() if ROOT.name in ("site-packages", "dist-packages") else "unknown"
