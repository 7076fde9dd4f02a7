"""Plots: completion time and storage bytes over the number of nodes, one panel a pattern."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt

from experiments.incast.result import Point

_FIGURES: dict[str, tuple[str, Callable[[Point], float]]] = {
    "block_p99": ("p99 completion of a block, ms", lambda point: point.block_ms.p99),
    "storage_bytes": ("storage egress, MB", lambda point: point.storage_egress_bytes / 1e6),
}


def draw(points: Sequence[Point], title: str, directory: Path) -> list[Path]:
    """One SVG a figure; points that don't count are hollow."""
    directory.mkdir(parents=True, exist_ok=True)
    return [_figure(points, title, name, directory) for name in _FIGURES]


def _figure(points: Sequence[Point], title: str, name: str, directory: Path) -> Path:
    label, value = _FIGURES[name]
    patterns = list(dict.fromkeys(point.pattern for point in points))
    figure, panels = plt.subplots(1, len(patterns), figsize=(4.2 * len(patterns), 3.6), squeeze=False)
    for panel, pattern in zip(panels[0], patterns, strict=True):
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
    panels[0][0].set_ylabel(label)
    panels[0][-1].legend()
    figure.suptitle(title, fontsize=9)
    figure.tight_layout()
    path = directory / f"{name}.svg"
    figure.savefig(path)
    plt.close(figure)
    return path
