"""Table of the points in Markdown, for documents."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.incast.result import Point

_HEAD = ("pattern", "N", "mode", "copies", "storage bytes", "GETs there", "p50 ms", "p99 ms", "first p99 ms",
         "later p99 ms", "Jain", "drops", "control messages", "kept up")  # fmt: skip


def markdown(points: Sequence[Point]) -> str:
    """Return the table, with a line for each point, in order of pattern and number of nodes."""
    patterns = list(dict.fromkeys(point.pattern for point in points))
    ordered = sorted(points, key=lambda point: (patterns.index(point.pattern), point.n))
    rows = [_HEAD, ["---"] * len(_HEAD), *(_row(point) for point in ordered)]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _row(p: Point) -> list[str]:
    times = (p.block_ms.p50, p.block_ms.p99, p.first_burst_ms.p99, p.later_bursts_ms.p99)
    return [
        p.pattern, str(p.n), p.mode,
        f"{p.copies:.2f}", f"{p.storage_egress_bytes:,}", f"{p.storage_packets:,}",
        *(f"{ms:.0f}" for ms in times), f"{p.fairness:.2f}", str(p.drops), str(p.control_messages),
        "no" if p.overloaded else "yes",
    ]  # fmt: skip
