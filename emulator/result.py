"""Results of a run."""

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
    """Percentiles in ms of emulated time."""

    p50: float
    p99: float


@dataclass(frozen=True, slots=True)
class BlockSources:
    """Number of blocks by where a request found them."""

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
    """Evicted blocks by what became of them, and the cost of that (controller.costs.PoolCounts)."""

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
    """Results of one tenant's nodes."""

    tenant: int
    nodes: int
    completed: int
    """Number of requests."""
    blocks: BlockSources
    ttft_ms: Percentiles
    pool_blocks: int
    """Number of its blocks in the switches' pools when the run ended."""


@dataclass(frozen=True, slots=True)
class TargetResult:
    """Number of requests that met TTFT_SLO. Times are emulated."""

    target_ms: float
    """Longest time to first token that meets the target: TTFT_SLO."""
    met: int
    """Number of requests whose first token came in time; a request without one did not meet the target."""
    ttfts_ms: tuple[float, ...]
    """Time to first token of each request that got one, in order of arrival."""


@dataclass(frozen=True, slots=True)
class IndexResult:
    """Use of the index by nodes that lend one another their memory. All but questions are blocks."""

    questions: int
    asked: int
    located: int
    """Number of asked blocks in the longest prefixes that other nodes held."""
    promised: int
    """Number of located blocks that were then fetched."""


@dataclass(frozen=True, slots=True)
class RunResult:
    """Result of one run of the trace."""

    requests: int
    completed: int
    failed: int
    corrupt: int
    """Number of blocks whose content differed from what was stored, after the client's repairs."""
    blocks: BlockSources
    storage_egress_bytes: int
    """Bytes that left the storage nodes' interfaces, headers included.

    Without storage nodes, those of all nodes, with their own requests.
    """
    switch_served_bytes: int
    """Bytes of the replies that the switch made from its pool, headers included."""
    get_ms: Percentiles
    """Time from a block's request to its check."""
    ttft_ms: Percentiles
    """Time from a request's arrival to its first token."""
    merged: int
    """Number of GETs that the switch held because one for the same fragment was in flight."""
    admitted: int
    evicted: int
    p4runtime_writes: int
    digests: int
    wall_s: float
    overloaded: bool
    complaints: list[str] = field(default_factory=list)
    """Reasons why it counts as overloaded."""
    cpu_share: float = 0.0
    """Mean share of all cores that were busy."""
    timer_late_p99_ms: float = 0.0
    """Lateness of the timers of the latest process: 99th percentile in ms."""
    switch_saturated: float = 0.0
    """Share of the samples in which the busiest thread of a switch had no pause."""
    controller_cpu_s: float = 0.0
    cpu_s: dict[str, float] = field(default_factory=dict)
    """CPU time in seconds while the trace ran, by role, summed over the processes of each.

    Roles are node, store, switch, controller, watch (the run's own process), router and index.
    """
    link_drops: int = 0
    """Number of packets dropped by the queues of the modelled links."""
    pool_held: int = 0
    """Number of blocks in the switches' pools at the end."""
    decoded: int = 0
    """Number of fetched blocks that were decoded; 0 without a codec."""
    decode_ms: Percentiles = Percentiles(0.0, 0.0)
    """Time from the last block's arrival until all were decoded, of requests that fetched."""
    levels: dict[str, int] = field(default_factory=dict)
    """Number of blocks by level, with LEVEL=adaptive; "text" counts those left to be computed."""
    mean_level: float | None = None
    """Mean level of the blocks that were sent."""
    target: TargetResult | None = None
    """Result for the target, with TTFT_SLO."""
    gate_limited: int = 0
    """Number of requests whose fetch the gate refused or cut short because computing was faster."""
    gate_refused: int = 0
    """Number of blocks that were therefore not fetched."""
    evictions: Evictions = field(default_factory=Evictions)
    ssd_reads: int = 0
    """Number of reads of blocks that a request waited for."""
    read_ahead: int = 0
    """Number of blocks read from SSD before they were requested."""
    read_ahead_hits: int = 0
    """Number of blocks read ahead that were requested later."""
    retransmitted: int = 0
    """Number of fragments that clients requested or sent again."""
    compared: int = 0
    """Number of fetched blocks that were compared, to the bit, with the KV of the model (MODEL=folder)."""
    blended: BlendTotals | None = None
    """Totals of blending with BLEND, if any request was blended."""
    rejected: int = 0
    """Number of requests that the conductor refused because their first token would have come too late."""
    replicated: int = 0
    """Number of blocks that the conductor had a node fetch though another node's memory held them."""
    tenants: tuple[TenantResult, ...] = ()
    """Results by tenant, with TENANTS."""
    index: IndexResult | None = None
    """Use of the index, with STORES=0."""

    @property
    def is_right(self) -> bool:
        """Return whether every request was served or refused by the conductor, and every block was right."""
        return not self.failed and not self.corrupt and self.completed + self.rejected == self.requests


def percentiles(values: Sequence[float]) -> Percentiles:
    """Return p50 and p99 by nearest rank; zeros for no values."""
    if not values:
        return Percentiles(0.0, 0.0)
    ordered = sorted(values)
    return Percentiles(
        *(round(ordered[min(len(ordered) - 1, int(share * len(ordered)))], 3) for share in (0.5, 0.99))
    )


def is_checkout() -> bool:
    """Return whether this is a checkout with Makefile, scripts and tests, and no installed package."""
    return (ROOT / "Makefile").is_file()


def version() -> str:
    """Return the version of the installed distribution; "unknown" if the files were only copied."""
    try:
        return metadata.version("weir")
    except metadata.PackageNotFoundError:
        return "unknown"


def revision() -> str:
    """Return the git revision of this checkout, with "+" if there are changes.

    It is "unknown" for a checkout without git, and the version for an installed package.
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
