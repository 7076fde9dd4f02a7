"""Plots as inline SVG, by matplotlib."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from zlib import crc32

import matplotlib as mpl
from matplotlib.figure import Figure

COLOURS = {
    "recompute": "#8c8c8c",
    "distributed": "#c44e52",
    "cxl": "#8172b3",
    "stores": "#dd8452",
    "switch": "#4c72b0",
    "sram": "#55a868",
}
SIZE = (6.6, 3.4)

Series = Mapping[str, tuple[Sequence[float], Sequence[float]]]
"""Name -> x and y."""


def lines(
    series: Series, labels: tuple[str, str], log_x: bool, names: Mapping[str, str], log_y: bool = False
) -> str:
    """A line a series; x and y axes as labelled."""
    figure = Figure(figsize=SIZE, layout="constrained")
    axes = figure.subplots()
    for name, (xs, ys) in series.items():
        axes.plot(xs, ys, marker="o", markersize=4, label=names.get(name, name), color=COLOURS.get(name))
    axes.set_xlabel(labels[0])
    axes.set_ylabel(labels[1])
    if log_x:
        axes.set_xscale("log", base=2)
        ticks = sorted({x for xs, _ in series.values() for x in xs})
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    if log_y:
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    return _svg(figure)


def bars(values: Mapping[str, float], label: str) -> str:
    """A horizontal bar a value."""
    figure = Figure(figsize=(SIZE[0], 0.6 + 0.34 * len(values)), layout="constrained")
    axes = figure.subplots()
    names = list(values)[::-1]
    drawn = axes.barh(names, [values[name] for name in names], color="#4c72b0")
    axes.bar_label(drawn, fmt="%.3g", padding=3, fontsize=8)
    axes.set_xlabel(label)
    axes.margins(x=0.12)
    return _svg(figure)


def groups(values: Mapping[str, Mapping[str, float]], label: str, names: Mapping[str, str]) -> str:
    """Groups of bars: group -> series -> value."""
    figure = Figure(figsize=SIZE, layout="constrained")
    axes = figure.subplots()
    series = list(dict.fromkeys(name for group in values.values() for name in group))
    width = 0.8 / max(1, len(series))
    for place, name in enumerate(series):
        xs = [at + (place - (len(series) - 1) / 2) * width for at in range(len(values))]
        heights = [group.get(name, 0.0) for group in values.values()]
        axes.bar(xs, heights, width, label=names.get(name, name), color=COLOURS.get(name))
    axes.set_xticks(range(len(values)), list(values))
    axes.set_ylabel(label)
    axes.grid(axis="y", alpha=0.3)
    axes.legend(fontsize=8)
    return _svg(figure)


def _svg(figure: Figure) -> str:
    """Text only, same bytes for the same data, ids that are unique in a page of several."""
    text = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": "weir", "svg.fonttype": "none", "font.size": 9}):
        figure.savefig(text, format="svg", metadata={"Date": None})
    svg = text.getvalue()
    svg = svg[svg.index("<svg") :]
    mark = f"f{crc32(svg.encode()):x}"
    svg = re.sub(r'\bid="([^"]+)"', rf'id="{mark}-\1"', svg)
    return re.sub(r'(href="|url\()#', rf"\1#{mark}-", svg)
