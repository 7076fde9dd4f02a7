"""Plots as inline SVG, by matplotlib."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from math import isfinite
from zlib import crc32

import matplotlib as mpl
from matplotlib.figure import Figure

from experiments.intervals import Interval

COLOURS = {
    "recompute": "#8c8c8c",
    "distributed": "#c44e52",
    "cxl": "#8172b3",
    "stores": "#dd8452",
    "switch": "#4c72b0",
    "sram": "#55a868",
}
MARKERS = ("o", "s", "D", "^", "v", "P", "X", "*")
DASHES = ("-", "--", ":", "-.")
HATCHES = ("", "//", "xx", "..", "\\\\", "--", "||", "++")
"""By the place of a series in its plot: what tells series apart for those who see no colours."""
SIZE = (6.6, 3.4)
NOTHING = Interval(0.0, 0.0, 0.0)

Series = Mapping[str, tuple[Sequence[float], Sequence[Interval]]]
"""Name -> x, and y with its interval."""


def lines(
    series: Series, labels: tuple[str, str], log_x: bool, names: Mapping[str, str], log_y: bool = False
) -> str:
    """A line a series; x and y axes as labelled."""
    figure = Figure(figsize=SIZE, layout="constrained")
    axes = figure.subplots()
    for place, (name, (xs, ys)) in enumerate(series.items()):
        axes.errorbar(
            xs, [y.mean for y in ys], yerr=_halves(ys), marker=MARKERS[place % len(MARKERS)], markersize=4,
            capsize=2, linestyle=DASHES[place % len(DASHES)],
            label=names.get(name, name), color=COLOURS.get(name),
        )  # fmt: skip
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


def rows(values: Mapping[str, Mapping[str, Interval]], label: str, names: Mapping[str, str]) -> str:
    """Points with intervals on a line for each group, the first group on top; the axis is logarithmic."""
    figure = Figure(figsize=(SIZE[0] + 1.4, 1.0 + 0.3 * len(values)), layout="constrained")
    axes = figure.subplots()
    order = list(values)[::-1]
    series = dict.fromkeys(name for group in values.values() for name in group)
    for place, name in enumerate(series):
        found = [values[group][name] for group in order]
        axes.errorbar(
            [value.mean for value in found], range(len(order)), xerr=_halves(found),
            fmt=MARKERS[place % len(MARKERS)], markersize=4, capsize=2, label=names.get(name, name),
        )  # fmt: skip
    axes.set_yticks(range(len(order)), order, fontsize=8)
    axes.set_xscale("log")
    axes.set_xlabel(label)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    return _svg(figure)


def bars(values: Mapping[str, Interval], label: str) -> str:
    """A horizontal bar a value, with its interval."""
    figure = Figure(figsize=(SIZE[0], 0.6 + 0.34 * len(values)), layout="constrained")
    axes = figure.subplots()
    names = list(values)[::-1]
    intervals = [values[name] for name in names]
    drawn = axes.barh(
        names, [value.mean for value in intervals], xerr=_halves(intervals), capsize=2, color="#4c72b0"
    )
    axes.bar_label(drawn, fmt="%.3g", padding=3, fontsize=8)
    axes.set_xlabel(label)
    axes.margins(x=0.12)
    return _svg(figure)


def groups(values: Mapping[str, Mapping[str, Interval]], label: str, names: Mapping[str, str]) -> str:
    """Groups of bars: group -> series -> value."""
    figure = Figure(figsize=SIZE, layout="constrained")
    axes = figure.subplots()
    series = list(dict.fromkeys(name for group in values.values() for name in group))
    width = 0.8 / max(1, len(series))
    for place, name in enumerate(series):
        xs = [at + (place - (len(series) - 1) / 2) * width for at in range(len(values))]
        heights = [group.get(name, NOTHING) for group in values.values()]
        axes.bar(
            xs, [height.mean for height in heights], width, yerr=_halves(heights), capsize=2,
            error_kw={"linewidth": 0.8}, label=names.get(name, name), color=COLOURS.get(name),
            hatch=HATCHES[place % len(HATCHES)], edgecolor="#0006",
        )  # fmt: skip
    axes.set_xticks(range(len(values)), list(values))
    axes.set_ylabel(label)
    axes.grid(axis="y", alpha=0.3)
    axes.legend(fontsize=8)
    return _svg(figure)


def _halves(values: Sequence[Interval]) -> list[float]:
    """For error bars; one run has no finite interval and gets none."""
    return [value.half if isfinite(value.half) else 0.0 for value in values]


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
