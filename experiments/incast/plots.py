"""Plots of completion time and storage bytes over the number of nodes, with a panel for each pattern."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from experiments.incast.result import Point
from experiments.pictures import panels, save

_FIGURES: dict[str, tuple[str, Callable[[Point], float]]] = {
    "block_p99": ("p99 completion of a block, ms", lambda point: point.block_ms.p99),
    "storage_bytes": ("storage egress, MB", lambda point: point.storage_egress_bytes / 1e6),
}


def draw(points: Sequence[Point], title: str, directory: Path) -> list[Path]:
    """Draw an SVG for each figure and return the files. Points that don't count are hollow."""
    return [_figure(points, title, name, directory) for name in _FIGURES]


def _figure(points: Sequence[Point], title: str, name: str, directory: Path) -> Path:
    label, value = _FIGURES[name]
    patterns = list(dict.fromkeys(point.pattern for point in points))
    figure, ((*row,),) = panels(1, len(patterns), (4.2 * len(patterns), 3.6), squeeze=False)
    for panel, pattern in zip(row, patterns, strict=True):
        for color, mode in enumerate(dict.fromkeys(point.mode for point in points)):
            line = [point for point in points if (point.pattern, point.mode) == (pattern, mode)]
            ns = [point.n for point in line]
            panel.plot(ns, [value(point) for point in line], color=f"C{color}", label=mode)
            for point in line:
                face = "none" if point.overloaded else f"C{color}"
                panel.plot(point.n, value(point), "o", color=f"C{color}", markerfacecolor=face)
        panel.set_xscale("log", base=2)
        panel.set_yscale("log")
        panel.set_title(pattern)
        panel.set_xlabel("nodes")
        panel.grid(alpha=0.3)
    row[0].set_ylabel(label)
    row[-1].legend()
    figure.suptitle(title, fontsize=9)
    (path,) = save(figure, directory, name, ("svg",))
    return path
