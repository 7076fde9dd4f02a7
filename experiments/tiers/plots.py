"""Plots of a run: sources of the blocks and time to first token, of every combination."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from experiments.pictures import named_after, panels, save
from experiments.tiers.scenarios import SOURCES, Result

_COLOURS = dict(zip(SOURCES, ("#1b6ca8", "#6db3dd", "#2a9d5c", "#f2b134", "#b9b9b9"), strict=True))


def plot_trace(folder: Path, trace: str, results: Sequence[Result]) -> None:
    """Draw one line of bars for each combination, as PNG and SVG."""
    height = 1.6 + 0.28 * len(results)
    figure, (where, ttft) = panels(1, 2, (11, height), sharey=True)
    names = [f"{r.tiers}, {r.gate}, {r.prefetch}" for r in results]
    left = [0.0] * len(results)
    for source in SOURCES:
        shares = [100 * r.blocks[source] / sum(r.blocks.values()) for r in results]
        where.barh(names, shares, left=left, color=_COLOURS[source], label=source)
        left = [start + share for start, share in zip(left, shares, strict=True)]
    where.set_xlabel("blocks, %")
    where.legend(ncols=len(SOURCES), fontsize="small", loc="lower center", bbox_to_anchor=(0.5, 1.0))
    where.invert_yaxis()
    ttft.barh(names, [r.ttft_mean_s for r in results], color="#555555")
    ttft.set_xlabel("mean time to first token, s")
    ttft.grid(axis="x", alpha=0.3)
    figure.suptitle(trace)
    save(figure, folder, named_after(trace))
