"""The plots of results/run/report.html, from the content of details.json."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import plotly.graph_objects as go

from controller.p4_constants import OUTCOME_MERGED, OUTCOME_SERVED
from experiments.page import SERIES, base_layout, series_style
from experiments.run.modes import MODES

SOURCES = ("gpu", "dram", "pool", "remote", "recomputed")
MOST_LINE_PX = 16
CDF_POINTS = 400

Run = Mapping[str, Any]
Runs = Mapping[str, Run]


def title_of(mode: str) -> str:
    """What a mode is called in front of people."""
    return MODES[mode].title if mode in MODES else mode


def megabytes(count: float) -> float:
    """Rounded to what a reader can use."""
    return round(count / 1e6, 2)


def sources(runs: Runs) -> go.Figure:
    """Stacked bars, one a mode."""
    figure = go.Figure(layout=base_layout(barmode="stack", height=60 + 70 * len(runs), xaxis_title="blocks"))
    for number, source in enumerate(SOURCES):
        looks = SERIES[number]
        figure.add_bar(
            y=[title_of(name) for name in runs],
            x=[run["result"]["blocks"][source] for run in runs.values()],
            name=source,
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
    figure = go.Figure(
        layout=base_layout(title_text=title, showlegend=False, xaxis=hidden, yaxis=hidden, height=380)
    )
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
    for number, kind in enumerate(("switches", "nodes", "stores")):
        names = shape[kind]
        figure.add_scatter(
            x=[at[name][0] for name in names],
            y=[at[name][1] for name in names],
            mode="markers+text",
            text=list(names),
            textposition="bottom center",
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
    """What left all storage nodes, in Mbit/s of the emulation."""
    links = [link["link"] for link in shape["links"] if link["ends"][1] in shape["stores"]]

    def sent_bits(sample: Mapping[str, Any]) -> float:
        sent: int = sum(sample["link_bytes"].get(link, (0, 0))[0] for link in links)
        return 8e-6 * sent

    return _rates(runs, sent_bits, "left the storage nodes, Mbit/s")


def occupancy(runs: Runs) -> go.Figure:
    """Blocks in the pool."""
    return _levels(runs, lambda sample: float(sample["resident"]), "blocks in the pool")


def completed(runs: Runs) -> go.Figure:
    """Requests completed so far."""
    return _levels(runs, lambda sample: float(sample["completed"]), "requests completed")


def served(runs: Runs) -> go.Figure:
    """GETs that ended in the switch: answered from a slot, or absorbed because one was in flight."""

    def spared(sample: Mapping[str, Any]) -> float:
        outcomes = sample["outcomes"]
        return float(outcomes[OUTCOME_SERVED] + outcomes[OUTCOME_MERGED]) if outcomes else 0.0

    return _levels(runs, spared, "GETs that went no further than the switch")


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


def waterfall(requests: Sequence[Mapping[str, Any]], title: str) -> go.Figure:
    """Bars from arrival on: fetching, waiting for the GPU, computing, then the other tokens."""
    labels = [f"{record['node']} at {record['arrival_s']:.1f} s" for record in requests]
    figure = go.Figure(
        layout=base_layout(title_text=title, barmode="stack", xaxis_title="s since arrival", height=420)
    )
    stages = (("fetching", "fetch_s"), ("waiting for the GPU", "queue_s"), ("computing", "prefill_s"))
    for number, (name, field) in enumerate(stages):
        figure.add_bar(
            y=labels,
            x=[record[field] for record in requests],
            name=name,
            orientation="h",
            marker={"color": SERIES[number].colour, "pattern": {"shape": SERIES[number].pattern}},
        )
    figure.add_bar(
        y=labels,
        x=[
            max(0.0, (record["end_s"] or 0.0) - record["arrival_s"] - record["ttft_s"]) for record in requests
        ],
        name="other tokens",
        orientation="h",
        marker={"color": "#bbbbbb"},
    )
    figure.update_yaxes(autorange="reversed")
    return figure
