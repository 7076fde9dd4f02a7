"""What a simulation yields."""

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
"""Of a run, whose figures are apart: of an hour five minutes each."""


@dataclass(frozen=True, slots=True)
class SimResult:
    """One run at real scale."""

    requests: int
    completed: int
    duration_s: float
    """From the first arrival to the last answer."""
    requests_per_s: float
    output_tokens_per_s: float
    ttft_s: Spread
    tpot_s: Spread
    get_s: Spread
    blocks: dict[str, int]
    """By where they were found: gpu, dram, pool, remote, recomputed."""
    prefill_s: float
    """GPU time spent on prefill, all nodes."""
    saved_prefill_s: float
    """GPU time that found blocks made unnecessary."""
    gpu_busy_share: float
    link_bytes: dict[str, float]
    """Of each link and direction."""
    storage_egress_bytes: float
    storage_requests: int
    """Requests for fragments that reached storage nodes."""
    storage_busy_share: float
    """Of the busiest storage node's link."""
    longest_queue_s: float
    """The longest that anything waited for a link."""
    switch_served_bytes: float
    merged: int
    copies: int
    fills: int
    admitted: int
    evicted: int
    reclaimed: int
    digests: int
    table_writes: int
    """P4Runtime Write requests."""
    table_updates: int
    """Updates in them."""
    entries_read: int
    control_bytes: float
    control_cpu_s: float
    block_bytes: float
    pool_blocks: int
    """Of each switch."""
    dollars_per_hour: float
    """Everything."""
    cache_dollars_per_hour: float
    """What holds blocks beyond the nodes' own memory: storage nodes, pool, their share of the fabric."""
    dollars_per_saved_s: float | None
    """Cache dollars for each GPU second of prefill that was saved; None where nothing was."""
    levels: dict[str, int] = field(default_factory=dict)
    """Blocks of streams by the level at which they came, "text" for those left to be computed."""
    mean_level: float | None = None
    """Of those that came."""
    met_share: float | None = None
    """Requests whose first token came within workload.ttft_slo_s; None where there is no such."""
    conductor: dict[str, int] | None = None
    """Its counters (workload.conductor.ConductorStats), where it decides who serves a request."""
    blended: BlendTotals | None = None
    """None where nothing was."""
    between_tokens_s: Spread = field(default_factory=Spread)
    """Time from each token of each answer to the next; TPOT is its mean over one answer."""
    end_to_end_s: Spread = field(default_factory=Spread)
    """From a request's arrival to its last token."""
    sessions_per_hour: float = 0.0
    """Sessions of which all requests were answered; 0 where requests say of no session."""
    group_ttft_s: Spread = field(default_factory=Spread)
    """Of requests that wait for the same answer, as sub-agents do: from the first one's arrival to the last
    one's first token."""
    fetch_s: float = 0.0
    """Sum over requests, from asking for blocks to having them."""
    refused_blocks: int = 0
    """That gates did not let nodes ask for: computing them looked faster."""
    copied_down_blocks: int = 0
    """Written from GPU memory to DRAM, all nodes."""
    ssd_reads: int = 0
    """Blocks that storage nodes read from SSD."""
    pushed_blocks: int = 0
    """That controllers had multicast to subscribers."""
    taken_blocks: int = 0
    """That came unasked and were kept, all nodes."""
    cpu_s: float = 0.0
    """How long the simulation itself took."""
    ttfts_s: tuple[float, ...] = field(default=(), repr=False)
    """Of each request, in order of arrival."""
    found: tuple[float, ...] = field(default=(), repr=False)
    """Of each request the share of its blocks that need not be computed, in the same order."""

    served_by: tuple[int, ...] = field(default=(), repr=False)
    """The node of each request, in the same order."""

    @property
    def found_share(self) -> float:
        """Return the share of blocks that need not be computed."""
        total = sum(self.blocks.values())
        return 1 - self.blocks["recomputed"] / total if total else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return the result for JSON, without the figures of single requests.

        `start_ttft_s` is of the first half of the arrivals, when nodes and pool are cold, `steady_ttft_s` of
        the second: the two must not be made one rate, because a start happens once. `parts_ttft_s` has the
        figures of each of PARTS equal shares of the arrivals, in order.
        """
        record = asdict(self)
        del record["ttfts_s"], record["found"], record["served_by"]
        half = len(self.ttfts_s) // 2
        record["parts_ttft_s"] = [asdict(spread(part)) for part in _parts(self.ttfts_s)]
        record["start_ttft_s"] = asdict(spread(self.ttfts_s[:half]))
        record["steady_ttft_s"] = asdict(spread(self.ttfts_s[half:]))
        return record


def _parts(values: Sequence[float]) -> list[Sequence[float]]:
    """As even as it goes."""
    count = len(values)
    return [values[count * at // PARTS : count * (at + 1) // PARTS] for at in range(PARTS)]


def sum_sources(records: Sequence[Record]) -> dict[str, int]:
    """Return the blocks by source."""
    return {name: sum(record.sources[name] for record in records) for name in SOURCES}
