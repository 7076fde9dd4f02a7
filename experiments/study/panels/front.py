"""The plot of the answer: cost of each purchase, and its time to the first token over recomputing's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from commands.intervals import Interval
from experiments.page import base_layout, series_style
from experiments.study.figures import Plot, halves, near
from experiments.study.point import Point
from experiments.study.rivals import Done, fan_ins
from experiments.study.sample import MEAN, ratio
from experiments.study.systems import BOUND, POOLS, ROUTED

KINDS = ("a switch merges or keeps blocks", "a switch routes requests", "neither", "the bound, not for sale")
NAMED = {
    ("lent", 2): "lent DRAM",
    ("cxl", 2): "CXL pool",
    ("stores", 2): "2 storage nodes",
    ("switch", 2): "2 and pool",
}
"""Text beside a dot, by system and number of storage nodes; with more of them, none could be read."""
COLUMNS = 2
ROW_PX = 400


@dataclass(frozen=True, slots=True)
class _Dot:
    """One purchase."""

    point: Point
    cost: float
    time: Interval
    """Mean time to the first token over recomputing's, seed by seed."""

    @property
    def text(self) -> str:
        """Return the text beside the dot."""
        named = not self.point.variant
        return NAMED.get((self.point.system, self.point.setting.stores), "") if named else ""


def kind(system: str) -> str:
    """Return one of KINDS, which says what the system's switch does."""
    if system == BOUND:
        return KINDS[3]
    return KINDS[0] if system in POOLS else KINDS[1] if system in ROUTED else KINDS[2]


def by_kind(played: Done) -> dict[str, list[str]]:
    """Return the labels of the simulated purchases, by kind."""
    found: dict[str, list[str]] = {name: [] for name in KINDS}
    for point, _ in played:
        found[kind(point.system)].append(point.label)
    return found


def front(done: Done) -> Plot | None:
    """Return a plot for each number of nodes, all with the same axes; None if
    recomputing was not simulated."""
    places = {nodes: dots for nodes in fan_ins(done) if (dots := _dots(done, nodes))}
    if not places:
        return None
    rows = -(-len(places) // COLUMNS)
    figure = go.Figure(layout=base_layout(height=ROW_PX * rows + 60))
    make_subplots(
        figure=figure,
        rows=rows,
        cols=min(COLUMNS, len(places)),
        subplot_titles=[f"{nodes} nodes" for nodes in places],
        shared_xaxes="all",
        shared_yaxes="all",
        horizontal_spacing=0.04,
        vertical_spacing=0.1,
    )
    figure.update_layout(legend_y=1.04)
    low, high = near([dot.time.mean for dots in places.values() for dot in dots])
    beyond: set[str] = set()
    for number, dots in enumerate(places.values()):
        beyond |= {dot.point.label for dot in dots if not low <= dot.time.mean <= high}
        inside = [dot for dot in dots if low <= dot.time.mean <= high]
        _draw(figure, inside, number // COLUMNS + 1, number % COLUMNS + 1, legend=number == 0)
    figure.update_xaxes(title_text="cache, $/h", row=rows)
    figure.update_yaxes(title_text="mean first token<br>over recomputing's", col=1)
    figure.add_hline(y=1, line_dash="dot")
    nodes = ", ".join(map(str, places))
    text = f"mean time to the first token over recomputing's, by $/h, with {nodes} nodes"
    return figure, text + (f"; far above and not drawn: {'; '.join(sorted(beyond))}" if beyond else "")


def _dots(done: Done, nodes: int) -> list[_Dot]:
    pairs = [pair for pair in done if pair[0].sweep == "rivals" and pair[0].value == nodes]
    nothing = [sample for point, sample in pairs if point.system == "recompute" and not point.variant]
    if not nothing:
        return []
    return [_Dot(point, sample.cost, ratio(sample, nothing[0], *MEAN)) for point, sample in pairs]


def _draw(figure: go.Figure, dots: Sequence[_Dot], row: int, column: int, legend: bool) -> None:
    for number, name in enumerate(KINDS):
        mine = [dot for dot in dots if kind(dot.point.system) == name]
        figure.add_scatter(
            x=[dot.cost for dot in mine],
            y=[dot.time.mean for dot in mine],
            error_y={"array": halves(dot.time for dot in mine), "visible": True, "thickness": 0.8},
            text=[dot.text for dot in mine],
            textposition="middle right",
            textfont_size=11,
            hovertext=[f"{dot.point.label}: {dot.time:.3f} for {dot.cost:.2f} $/h" for dot in mine],
            hoverinfo="text",
            mode="markers+text",
            marker=series_style(number)["marker"],
            name=name,
            legendgroup=name,
            showlegend=legend,
            row=row,
            col=column,
        )
