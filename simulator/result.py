"""Result of a simulation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from hostlib.model.blending import BlendTotals
from hostlib.node.request_record import SOURCES
from simulator.record import Record
from simulator.spread import Spread, spread

__all__ = ["SimResult", "Spread", "spread", "sum_sources"]

PARTS = 12
"""Number of parts of a run with figures of their own: five minutes each of an hour."""


@dataclass(frozen=True, slots=True)
class SimResult:
    """Result of one run at real scale."""

    requests: int
    completed: int
    duration_s: float
    """Seconds from the first arrival to the last answer."""
    requests_per_s: float
    output_tokens_per_s: float
    ttft_s: Spread
    tpot_s: Spread
    get_s: Spread
    blocks: dict[str, int]
    """Numbers of blocks by where they were found: gpu, dram, pool, remote, recomputed."""
    prefill_s: float
    """GPU seconds spent on prefill, all nodes."""
    saved_prefill_s: float
    """GPU seconds of prefill that found blocks made unnecessary."""
    gpu_busy_share: float
    link_bytes: dict[str, float]
    """Bytes over each link, by direction."""
    storage_egress_bytes: float
    storage_requests: int
    """Number of requests for fragments that reached storage nodes."""
    storage_busy_share: float
    """Share of time that the busiest storage node's link sent."""
    longest_queue_s: float
    """Longest seconds that anything waited for a link."""
    switch_served_bytes: float
    merged: int
    copies: int
    fills: int
    admitted: int
    evicted: int
    reclaimed: int
    digests: int
    table_writes: int
    """Number of P4Runtime Write requests."""
    table_updates: int
    """Number of updates in the Write requests."""
    entries_read: int
    control_bytes: float
    control_cpu_s: float
    block_bytes: float
    pool_blocks: int
    """Number of blocks that the pool of each switch holds."""
    dollars_per_hour: float
    """Dollars per hour of all hardware."""
    cache_dollars_per_hour: float
    """Dollars per hour of what holds blocks beyond the nodes' own memory: storage nodes and pool."""
    dollars_per_saved_s: float | None
    """Cache dollars for each GPU second of prefill that was saved; None if none was."""
    levels: dict[str, int] = field(default_factory=dict)
    """Numbers of blocks of streams by the level at which they came, "text" for those left to be computed."""
    mean_level: float | None = None
    """Mean level of the blocks that came."""
    met_share: float | None = None
    """Share of requests whose first token came within workload.ttft_slo_s; None without such a target."""
    conductor: dict[str, int] | None = None
    """Counters of the conductor (workload.conductor.ConductorStats), if it is the scheduler."""
    blended: BlendTotals | None = None
    """Totals of blending; None if nothing was blended."""
    between_tokens_s: Spread = field(default_factory=Spread)
    """Seconds from each token of each answer to the next; TPOT is their mean over one answer."""
    end_to_end_s: Spread = field(default_factory=Spread)
    """Seconds from a request's arrival to its last token."""
    sessions_per_hour: float = 0.0
    """Sessions that were served per hour; 0 if requests name no session."""
    group_ttft_s: Spread = field(default_factory=Spread)
    """Seconds from the first arrival to the last first token, in groups of requests that wait for the same
    answer, as sub-agents do."""
    fetch_s: float = 0.0
    """Seconds from asking for blocks to having them, summed over requests."""
    refused_blocks: int = 0
    """Number of blocks that gates did not let nodes ask for, because computing them looked faster."""
    copied_down_blocks: int = 0
    """Number of blocks written from GPU memory to DRAM, all nodes."""
    ssd_reads: int = 0
    """Number of blocks that storage nodes read from SSD."""
    pushed_blocks: int = 0
    """Number of blocks that controllers multicast to subscribers."""
    taken_blocks: int = 0
    """Number of blocks that came without a request and were kept, all nodes."""
    cpu_s: float = 0.0
    """CPU seconds of the simulation itself."""
    ttfts_s: tuple[float, ...] = field(default=(), repr=False)
    """Seconds to the first token of each request, in order of arrival."""
    found: tuple[float, ...] = field(default=(), repr=False)
    """Share of each request's blocks that need not be computed, in the same order."""

    served_by: tuple[int, ...] = field(default=(), repr=False)
    """Index of the node of each request, in the same order."""

    @property
    def found_share(self) -> float:
        """Return the share of blocks that need not be computed."""
        total = sum(self.blocks.values())
        return 1 - self.blocks["recomputed"] / total if total else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return the result for JSON, without the figures of single requests.

        `start_ttft_s` covers the first half of the arrivals, when nodes and pool are cold, and
        `steady_ttft_s` the second half. The two must not be made one rate, because a start happens once.
        `parts_ttft_s` has the figures of each of PARTS equal shares of the arrivals, in order.
        """
        record = asdict(self)
        del record["ttfts_s"], record["found"], record["served_by"]
        half = len(self.ttfts_s) // 2
        record["parts_ttft_s"] = [asdict(spread(part)) for part in _parts(self.ttfts_s)]
        record["start_ttft_s"] = asdict(spread(self.ttfts_s[:half]))
        record["steady_ttft_s"] = asdict(spread(self.ttfts_s[half:]))
        return record


def _parts(values: Sequence[float]) -> list[Sequence[float]]:
    """Return PARTS parts, as equal in length as possible."""
    count = len(values)
    return [values[count * at // PARTS : count * (at + 1) // PARTS] for at in range(PARTS)]


def sum_sources(records: Sequence[Record]) -> dict[str, int]:
    """Return the numbers of blocks by source."""
    return {name: sum(record.sources[name] for record in records) for name in SOURCES}
