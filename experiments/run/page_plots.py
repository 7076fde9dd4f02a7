"""The plots of results/run/report.html, from the content of details.json."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from controller.p4_constants import MERGED, SERVED
from experiments.page import Chart, bar_chart, line_chart
from experiments.run.words import title_of
from experiments.sources import answering, sources

CDF_POINTS = 250
LEAST_MS = 0.01
"""Milliseconds shown for what took no time, as the axis is logarithmic."""

Run = Mapping[str, Any]
Runs = Mapping[str, Run]


def answerer(shape: Mapping[str, Any]) -> str:
    """Return what people call the hosts that answer GETs which no pool answers."""
    return answering(lends=not shape["stores"])


def answerers(shape: Mapping[str, Any]) -> Sequence[str]:
    """Return the names of the hosts that answer GETs."""
    names: Sequence[str] = shape["stores"] or shape["nodes"]
    return names


def sources_of(shape: Mapping[str, Any]) -> dict[str, str]:
    """Return the sources of blocks: their names in the records, and for people."""
    return sources(lends=not shape["stores"])


def by_source(shape: Mapping[str, Any], runs: Runs) -> Chart:
    """Return stacked bars of blocks by source, one bar a mode, in the order of the tables."""
    blocks = {
        title: [run["result"]["blocks"][source] for run in runs.values()]
        for source, title in sources_of(shape).items()
    }
    return bar_chart("blocks", [title_of(name) for name in runs], blocks, stacked=True)


def store_egress(shape: Mapping[str, Any], runs: Runs) -> Chart:
    """Plot what all hosts that answer GETs sent, in Mbit/s of the emulation."""
    links = [link["link"] for link in shape["links"] if link["ends"][1] in answerers(shape)]

    def sent_bits(sample: Mapping[str, Any]) -> float:
        sent: int = sum(sample["link_bytes"].get(link, (0, 0))[0] for link in links)
        return 8e-6 * sent

    return _rates(runs, sent_bits, f"left the {answerer(shape)}s, Mbit/s")


def occupancy(runs: Runs) -> Chart:
    """Plot the number of blocks in the pool."""
    return _levels(runs, lambda sample: float(sample["resident"]), "blocks in the pool")


def completed(runs: Runs) -> Chart:
    """Plot the number of requests completed so far."""
    return _levels(runs, lambda sample: float(sample["completed"]), "requests completed")


def served(runs: Runs) -> Chart:
    """Plot the number of fragments so far that the switch answered from a slot."""
    return _outcomes(runs, SERVED, "fragments served by the pool")


def merged(runs: Runs) -> Chart:
    """Plot the number of GETs of fragments so far that the switch merged with one in flight."""
    return _outcomes(runs, MERGED, "fragments asked for that were merged")


def _outcomes(runs: Runs, outcome: str, title: str) -> Chart:
    return _levels(runs, lambda sample: float(sample["outcomes"].get(outcome, 0)), title)


def tiers(shape: Mapping[str, Any], run: Run, mode: str) -> Chart:
    """Plot the blocks of one mode so far, by where they were found."""
    series = {
        title: [(sample["t_s"], sample["blocks"].get(source, 0)) for sample in run["timeline"]]
        for source, title in sources_of(shape).items()
    }
    return line_chart(f"blocks by source ({title_of(mode)})", "seconds", series)


def _levels(runs: Runs, value: Callable[[Mapping[str, Any]], float], title: str) -> Chart:
    series = {
        title_of(name): [(sample["t_s"], value(sample)) for sample in run["timeline"]]
        for name, run in runs.items()
    }
    return line_chart(title, "seconds", series)


def _rates(runs: Runs, total: Callable[[Mapping[str, Any]], float], title: str) -> Chart:
    """Plot the increase of `total` a second."""
    series = {}
    for name, run in runs.items():
        pairs = [(one, two) for one, two in pairwise(run["timeline"]) if two["t_s"] > one["t_s"]]
        series[title_of(name)] = [
            (two["t_s"], (total(two) - total(one)) / (two["t_s"] - one["t_s"])) for one, two in pairs
        ]
    return line_chart(title, "seconds", series)


def distribution(values: Mapping[str, Sequence[float]], title: str) -> Chart:
    """Plot cumulative shares in % on a logarithmic axis, with p50 and p99 marked; `values` are sorted."""
    series, marked = {}, {}
    for name, ordered in values.items():
        if not ordered:
            continue
        last = len(ordered) - 1
        at = sorted({round(last * point / CDF_POINTS) for point in range(CDF_POINTS + 1)})
        both = [min(last, int(share * len(ordered))) for share in (0.5, 0.99)]
        series[title_of(name)], marked[title_of(name)] = (
            [(max(ordered[index], LEAST_MS), 100 * (index + 1) / len(ordered)) for index in chosen]
            for chosen in (at, both)
        )
    return line_chart("share, %", title, series, log_x=True, marked=marked, y_max=100)
