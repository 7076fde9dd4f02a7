"""The plots of results/run/report.html, from the content of details.json."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import plotly.graph_objects as go

from controller.p4_constants import OUTCOME_MERGED, OUTCOME_SERVED
from experiments.page import SERIES, base_layout, series_style
from experiments.sources import answering, sources
from scenario.modes import MODES

MOST_LINE_PX = 16
CDF_POINTS = 400

Run = Mapping[str, Any]
Runs = Mapping[str, Run]


def answerer(shape: Mapping[str, Any]) -> str:
    """Who answers what no pool does in a topology, as people call it."""
    return answering(lends=not shape["stores"])


def answerers(shape: Mapping[str, Any]) -> Sequence[str]:
    """Their names."""
    names: Sequence[str] = shape["stores"] or shape["nodes"]
    return names


def sources_of(shape: Mapping[str, Any]) -> dict[str, str]:
    """Where a block of a request came from: as the records have it, and as people read it."""
    return sources(lends=not shape["stores"])


def title_of(mode: str) -> str:
    """What a mode is called in front of people."""
    return MODES[mode].title if mode in MODES else mode


def megabytes(count: float) -> float:
    """Rounded to what a reader can use."""
    return round(count / 1e6, 2)


def by_source(shape: Mapping[str, Any], runs: Runs) -> go.Figure:
    """Stacked bars, one a mode."""
    figure = go.Figure(layout=base_layout(barmode="stack", height=140 + 60 * len(runs), xaxis_title="blocks"))
    for number, (source, title) in enumerate(sources_of(shape).items()):
        looks = SERIES[number]
        figure.add_bar(
            y=[title_of(name) for name in runs],
            x=[run["result"]["blocks"][source] for run in runs.values()],
            name=title,
            orientation="h",
            marker={"color": looks.colour, "pattern": {"shape": looks.pattern}},
        )
    return figure


def topology(
    shape: Mapping[str, Any], carried: Mapping[str, tuple[int, int]], title: str, most_bytes: int
) -> go.Figure:
    """Nodes on the left, switches in the middle, stores on the right; links as wide as what they carried."""
    at = _places(shape)
    hidden = {"visible": False, "showgrid": False}
    layout = base_layout(title_text=title, showlegend=False, xaxis=hidden, yaxis=hidden, height=380)
    figure = go.Figure(layout=layout | {"margin": {"l": 8, "r": 8, "t": 40, "b": 8}})
    figure.update_xaxes(range=[-0.55, 2.55])  # room for names beside the outer columns
    for link in shape["links"]:
        (x0, y0), (x1, y1) = (at[end] for end in link["ends"])
        to_switch, from_switch = carried.get(link["link"], (0, 0))
        width = 1 + MOST_LINE_PX * (to_switch + from_switch) / max(1, most_bytes)
        switch, peer = link["ends"]
        said = (
            f"{peer} to {switch}: {megabytes(to_switch)} MB<br>"
            f"{switch} to {peer}: {megabytes(from_switch)} MB"
        )
        figure.add_scatter(
            x=[x0, (x0 + x1) / 2, x1],
            y=[y0, (y0 + y1) / 2, y1],
            mode="lines",
            line={"width": width, "color": SERIES[0].colour},
            hovertext=said,
            hoverinfo="text",
        )
    beside = (("switches", "bottom center"), ("nodes", "middle left"), ("stores", "middle right"))
    for number, (kind, position) in enumerate(beside):
        names = shape[kind]
        figure.add_scatter(
            x=[at[name][0] for name in names],
            y=[at[name][1] for name in names],
            mode="markers+text",
            text=list(names),
            textposition=position,
            hoverinfo="text",
            marker={"size": 16, "color": SERIES[number + 1].colour, "symbol": SERIES[number].marker},
        )
    return figure


def _places(shape: Mapping[str, Any]) -> dict[str, tuple[float, float]]:
    columns = ((0.0, shape["nodes"]), (1.0, shape["switches"]), (2.0, shape["stores"]))
    return {
        name: (x, -(index + 0.5) / len(names)) for x, names in columns for index, name in enumerate(names)
    }


def store_egress(shape: Mapping[str, Any], runs: Runs) -> go.Figure:
    """What left all who answer GETs, in Mbit/s of the emulation."""
    links = [link["link"] for link in shape["links"] if link["ends"][1] in answerers(shape)]

    def sent_bits(sample: Mapping[str, Any]) -> float:
        sent: int = sum(sample["link_bytes"].get(link, (0, 0))[0] for link in links)
        return 8e-6 * sent

    return _rates(runs, sent_bits, f"left the {answerer(shape)}s, Mbit/s")


def occupancy(runs: Runs) -> go.Figure:
    """Blocks in the pool."""
    return _levels(runs, lambda sample: float(sample["resident"]), "blocks in the pool")


def completed(runs: Runs) -> go.Figure:
    """Requests completed so far."""
    return _levels(runs, lambda sample: float(sample["completed"]), "requests completed")


def served(runs: Runs) -> go.Figure:
    """GETs of fragments that were answered from a slot."""
    return _outcomes(runs, OUTCOME_SERVED, "fragments served by the pool")


def merged(runs: Runs) -> go.Figure:
    """GETs of fragments that were absorbed because one like them was in flight."""
    return _outcomes(runs, OUTCOME_MERGED, "fragments asked for that were merged")


def _outcomes(runs: Runs, outcome: int, title: str) -> go.Figure:
    def count(sample: Mapping[str, Any]) -> float:
        return float(sample["outcomes"][outcome]) if sample["outcomes"] else 0.0

    return _levels(runs, count, title)


def tiers(shape: Mapping[str, Any], run: Run, mode: str) -> go.Figure:
    """Blocks of one mode by where they were found, so far."""
    figure = go.Figure(
        layout=base_layout(xaxis_title="s", yaxis_title=f"blocks by source ({title_of(mode)})")
    )
    for number, (source, title) in enumerate(sources_of(shape).items()):
        figure.add_scatter(
            x=[sample["t_s"] for sample in run["timeline"]],
            y=[sample["blocks"].get(source, 0) for sample in run["timeline"]],
            name=title,
            mode="lines",
            **series_style(number),
        )
    return figure


def _levels(runs: Runs, value: Callable[[Mapping[str, Any]], float], title: str) -> go.Figure:
    figure = go.Figure(layout=base_layout(xaxis_title="s", yaxis_title=title))
    for number, (name, run) in enumerate(runs.items()):
        samples = run["timeline"]
        figure.add_scatter(
            x=[sample["t_s"] for sample in samples],
            y=[value(sample) for sample in samples],
            name=title_of(name),
            mode="lines",
            **series_style(number),
        )
    return figure


def _rates(runs: Runs, total: Callable[[Mapping[str, Any]], float], title: str) -> go.Figure:
    """The increase of `total` a second."""
    figure = go.Figure(layout=base_layout(xaxis_title="s", yaxis_title=title))
    for number, (name, run) in enumerate(runs.items()):
        samples = run["timeline"]
        pairs = [(one, two) for one, two in pairwise(samples) if two["t_s"] > one["t_s"]]
        figure.add_scatter(
            x=[two["t_s"] for _, two in pairs],
            y=[(total(two) - total(one)) / (two["t_s"] - one["t_s"]) for one, two in pairs],
            name=title_of(name),
            mode="lines",
            **series_style(number),
        )
    return figure


def distribution(values: Mapping[str, Sequence[float]], title: str) -> go.Figure:
    """Cumulative shares, on a logarithmic axis, with p50 and p99 marked; values in order of size."""
    figure = go.Figure(
        layout=base_layout(
            xaxis={"type": "log", "title": title}, yaxis={"title": "share", "range": [0, 1.02]}
        )
    )
    for number, (name, ordered) in enumerate(values.items()):
        if not ordered:
            continue
        last = len(ordered) - 1
        at = sorted({round(last * point / CDF_POINTS) for point in range(CDF_POINTS + 1)})
        marked = [min(last, int(share * len(ordered))) for share in (0.5, 0.99)]
        looks = series_style(number)
        figure.add_scatter(
            x=[ordered[index] for index in at],
            y=[(index + 1) / len(ordered) for index in at],
            name=title_of(name),
            mode="lines",
            line=looks["line"],
        )
        figure.add_scatter(
            x=[ordered[index] for index in marked],
            y=[(index + 1) / len(ordered) for index in marked],
            name=f"p50, p99: {title_of(name)}",
            mode="markers",
            marker={**looks["marker"], "size": 11},
            showlegend=False,
        )
    return figure
