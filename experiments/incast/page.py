"""Page of the experiment: results/incast/report.html."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from experiments.incast.report import findings
from experiments.incast.result import Point
from experiments.page import Section, lines, write_report
from experiments.page.report import Plot

_TITLES = (
    "pattern", "mode", "nodes", "left the storage node, bytes", "copies of what was asked for", "p50, ms",
    "p99, ms",
    "first burst p99, ms", "later bursts p99, ms", "Jain's index", "drops", "control messages", "kept up",
)  # fmt: skip


def write_page(folder: Path, title: str, about: Mapping[str, object], points: Sequence[Point]) -> Path:
    """Write the page into `folder`, with a section for each pattern; returns its path."""
    sections: list[Section] = []
    for pattern in dict.fromkeys(point.pattern for point in points):
        some = [point for point in points if point.pattern == pattern]
        plots = [
            _plot(some, "p99 of a block, ms", lambda point: point.block_ms.p99),
            _plot(some, "copies that left the storage node", lambda point: point.copies),
        ]
        text = "" if sections else " ".join(findings(points))
        rows = [_row(point) for point in some]
        sections.append(Section(f"Pattern: {pattern}", pattern, _TITLES, rows, plots, text))
    complaints = [text for point in points for text in point.complaints]
    return write_report(folder, title, about, sections, complaints)


def _plot(points: Sequence[Point], what: str, value: Callable[[Point], float]) -> Plot:
    modes = dict.fromkeys(point.mode for point in points)
    by_mode = {mode: [point for point in points if point.mode == mode] for mode in modes}
    series = {mode: [(point.n, value(point)) for point in some] for mode, some in by_mode.items()}
    hollow = {mode: [point.overloaded for point in some] for mode, some in by_mode.items()}
    return lines(what, "nodes", series, log_x=True, hollow=hollow)


def _row(point: Point) -> Sequence[object]:
    times = (point.block_ms.p50, point.block_ms.p99, point.first_burst_ms.p99, point.later_bursts_ms.p99)
    kept_up = "no" if point.overloaded else "yes"
    head = (point.pattern, point.mode, point.n, point.storage_egress_bytes, f"{point.copies:.2f}", *times)
    return (*head, f"{point.fairness:.2f}", point.drops, point.control_messages, kept_up)
