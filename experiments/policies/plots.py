"""Plots of a run: hit ratio and saved time by pool size, and the ablation."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.pictures import named_after, panels, save
from experiments.policies.compare import OURS
from experiments.policies.jobs import ABLATION
from experiments.policies.pools import BELADY
from experiments.policies.replay import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHOWN = (OURS, "mq", "arc", "s3fifo", "lirs", "gdsf", "lru", BELADY)


def plot_trace(folder: Path, trace: str, results: Sequence[Result]) -> None:
    """Plot prefix hits and saved prefill time by pool size, as PNG and SVG."""
    figure, (hits, saved) = panels(1, 2, (11, 4.2))
    for policy in SHOWN:
        rows = sorted((r for r in results if r.policy == policy), key=lambda r: r.blocks)
        if rows:
            width = 2.5 if policy == OURS else 1.0
            line = "--" if policy == BELADY else "-"
            sizes = [r.blocks for r in rows]
            hits.plot(
                sizes, [r.prefix_hit for r in rows], marker=".", label=policy, linewidth=width, linestyle=line
            )
            saved.plot(
                sizes,
                [r.saved_prefill_s for r in rows],
                marker=".",
                label=policy,
                linewidth=width,
                linestyle=line,
            )
    _label(hits, "prefix hit ratio")
    _label(saved, "prefill saved, GPU seconds")
    hits.legend(fontsize="small")
    figure.suptitle(trace)
    save(figure, folder, f"{named_after(trace)}_sizes")


def plot_ablation(folder: Path, trace: str, full: Sequence[Result], ablated: Sequence[Result]) -> None:
    """Plot the prefix hits with one part switched off, relative to the whole policy."""
    whole = {r.blocks: r.prefix_hit for r in full if r.policy == OURS}
    figure, axes = panels(1, 1, (7, 4.2))
    for policy in dict.fromkeys(r.policy for r in ablated):
        rows = sorted((r for r in ablated if r.policy == policy), key=lambda r: r.blocks)
        changes = [100 * (r.prefix_hit / whole[r.blocks] - 1) for r in rows]
        axes.plot([r.blocks for r in rows], changes, marker=".", label=policy.removeprefix(ABLATION))
    _label(axes, "prefix hits against the whole policy, %")
    axes.axhline(0, color="black", linewidth=0.8)
    axes.legend(title="without", fontsize="small")
    figure.suptitle(f"{trace}: one part switched off")
    save(figure, folder, f"{named_after(trace)}_ablation")


def _label(axes: Axes, measure: str) -> None:
    axes.set_xscale("log")
    axes.set_xlabel("blocks in the pool")
    axes.set_ylabel(measure)
    axes.grid(alpha=0.3)
