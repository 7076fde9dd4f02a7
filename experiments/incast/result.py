"""Points of results/incast/summary.json, computed from the measurements."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from emulator.machine import Strain
from emulator.result import Percentiles, percentiles
from experiments.incast.emulation import Measurements
from experiments.incast.patterns import distinct_blocks
from experiments.incast.scenario import Case
from hostlib.protocol.wire import VALUE_FRAME_BYTES

SOURCES = ("from_pool", "from_home", "merged", "local", "pushed", "unwanted")
CONTROL_COUNTS = ("admitted", "digests", "subscriptions", "group_changes", "pushes")
CONTROL_MESSAGES = ("p4runtime_writes", "p4runtime_reads", "digest_lists", "packet_ins", "packet_outs")


@dataclass(frozen=True, slots=True)
class Point:
    """Measured point. Times are milliseconds of emulated time from the moment at which all nodes ask."""

    mode: str
    pattern: str
    n: int
    storage_egress_bytes: int
    """Bytes that left the storage node's interface, headers included."""
    storage_packets: int
    """Number of packets that reached the storage node: nearly all are GETs, one for each fragment."""
    copies: float
    """Storage egress over the bytes of one copy of all blocks asked for in each burst."""
    block_ms: Percentiles
    first_burst_ms: Percentiles
    """Times in the first burst, when nothing is in the pool yet."""
    later_bursts_ms: Percentiles
    nodes: dict[str, Percentiles]
    """Times of blocks, by node."""
    fairness: float
    """Jain's index of the nodes' goodput: 1 if all are alike, 1/n if one takes all (DEC-TR-301, 1984)."""
    drops: int
    """Number of packets that the queues of the links dropped."""
    retransmits: int
    sources: dict[str, int]
    """Number of fragments by source, with those pushed; merged: copies of another node's reply."""
    control_messages: int
    control: dict[str, int]
    """Number of control messages by kind, and counts of what the controller did."""
    errors: dict[str, int]
    """Number of blocks that nodes did not get, by error."""
    corrupt: int
    """Number of wrong values that arrived."""
    wall_s: float
    cpu_share: float
    overloaded: bool
    complaints: list[str]
    """Reasons why the point does not count; empty if it does."""


def evaluate(case: Case, measured: Measurements, fragments: int) -> Point:
    """Return the figures of a point whose blocks have `fragments` fragments."""
    reports = [report for burst in measured.bursts for report in burst.values()]
    once = sum(len(distinct_blocks(burst)) for burst in case.bursts) * fragments * VALUE_FRAME_BYTES
    complaints = _strain(measured).complaints()
    control = {name: measured.controller[name] for name in (*CONTROL_MESSAGES, *CONTROL_COUNTS)}
    return Point(
        mode=case.mode,
        pattern=case.pattern,
        n=case.n,
        storage_egress_bytes=measured.storage_egress_bytes,
        storage_packets=measured.storage_packets,
        copies=round(measured.storage_egress_bytes / once, 3),
        block_ms=_times(measured.bursts),
        first_burst_ms=_times(measured.bursts[:1]),
        later_bursts_ms=_times(measured.bursts[1:]),
        nodes={node: _times([{node: burst[node]} for burst in measured.bursts]) for node in case.bursts[0]},
        fairness=jain([_goodput(node, measured.bursts) for node in case.bursts[0]]),
        drops=measured.link_drops,
        retransmits=sum(report["retransmits"] for report in reports),
        sources={name: sum(report[name] for report in reports) for name in SOURCES},
        control_messages=sum(control[name] for name in CONTROL_MESSAGES),
        control=control,
        errors=dict(sum((Counter(report["errors"]) for report in reports), Counter())),
        corrupt=sum(report["corrupt"] for report in reports),
        wall_s=measured.wall_s,
        cpu_share=round(measured.cpu.mean, 3),
        overloaded=bool(complaints),
        complaints=complaints,
    )


def jain(shares: Sequence[float]) -> float:
    """Return Jain's fairness index of shares; it is 1 if all shares are 0."""
    squares = sum(share * share for share in shares)
    return round(sum(shares) ** 2 / (len(shares) * squares), 4) if squares else 1.0


def write_summary(path: Path, about: dict[str, object], points: Sequence[Point]) -> None:
    """Write the summary so that a reader never sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_text(json.dumps({**about, "points": [asdict(point) for point in points]}, indent=1) + "\n")
    part.replace(path)


def _times(bursts: Sequence[dict[str, dict[str, Any]]]) -> Percentiles:
    return percentiles([ms for burst in bursts for report in burst.values() for ms in report["block_ms"]])


def _goodput(node: str, bursts: Sequence[dict[str, dict[str, Any]]]) -> float:
    """Return a node's blocks a second while it was waiting for any."""
    times = [burst[node]["block_ms"] for burst in bursts]
    waited_ms = sum(max(burst, default=0.0) for burst in times)
    return 1000 * sum(map(len, times)) / waited_ms if waited_ms else 0.0


def _strain(measured: Measurements) -> Strain:
    late: dict[str, float] = {}
    dropped: Counter[str] = Counter({"by the socket of the store": measured.store_drops})
    for burst in measured.bursts:
        for node, report in burst.items():
            late[node] = max(late.get(node, 0.0), report["late_ms"])
            dropped[f"by the socket of {node}"] += report["dropped"]
    return Strain(measured.cpu, late, dropped)
