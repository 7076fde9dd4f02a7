"""results/congestion/report.html."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from emulator.machine import busy_complaints
from experiments.congestion.result import Point
from experiments.page import Section, bars, write_report

_TITLES = (
    "pattern", "mode", "from the pool, %", "loss, %", "Jain's index", "throughput, % of the link", "p99, ms",
    "asked again", "hits alone p99, ms", "hits beside a busy home p99, ms", "CPU, %", "missed",
)  # fmt: skip


def write_page(folder: Path, about: Mapping[str, object], points: Sequence[Point]) -> Path:
    """Write the page, a row for each pattern and mode; return its path."""
    patterns = list(dict.fromkeys(point.pattern for point in points))
    modes = list(dict.fromkeys(point.mode for point in points))
    by_case = {(point.pattern, point.mode): point for point in points}
    figures: dict[str, Callable[[Point], float]] = {
        "throughput, % of the link": lambda point: 100 * point.throughput,
        "p99 of a block, ms": lambda point: point.p99_ms,
    }

    def of(pattern: str, mode: str, figure: Callable[[Point], float]) -> float:
        point = by_case.get((pattern, mode))
        return math.nan if point is None else figure(point)

    plots = [
        bars(what, patterns, {mode: [of(pattern, mode, figure) for pattern in patterns] for mode in modes})
        for what, figure in figures.items()
    ]
    text = "none: the switch forwards; both: it merges and pools."
    section = Section(
        "Links that are asked for too much", "points", _TITLES, list(map(_row, points)), plots, text
    )
    complaints = busy_complaints({f"{one.pattern}, {one.mode}": one.cpu for one in points})
    return write_report(folder, "make congestion: loss, fairness, throughput", about, [section], complaints)


def _row(point: Point) -> list[object]:
    return [
        point.pattern, point.mode, 100 * point.from_pool, f"{100 * point.loss:.2f}", f"{point.jain:.3f}",
        100 * point.throughput, point.p99_ms, point.retransmits, *(point.hits_p99_ms or ("", "")),
        100 * point.cpu, "; ".join(point.missed_goals()) or "nothing",
    ]  # fmt: skip
