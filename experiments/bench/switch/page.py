"""Page of the benchmark: results/bench-switch/report.html."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

from experiments.bench.switch.summary import Figure, Rounds, figures
from experiments.bench.switch.workloads import WORKLOADS
from experiments.page import Section, bars, write_report

_FIGURES = {"without loss": "lossless_per_s", "in overload": "overload_per_s"}


def write_page(folder: Path, about: Mapping[str, object], rounds: Rounds) -> Path:
    """Write the page into `folder`: medians over the rounds, with the lowest and highest."""
    titles = {workload.name: workload.title for workload in WORKLOADS}
    measured = {
        workload: {engine: figures(one) for engine, one in engines.items()}
        for workload, engines in rounds.items()
    }
    rows = [
        [titles[workload], engine, *(_shown(of[name]) for name in _FIGURES.values())]
        for workload, engines in measured.items()
        for engine, of in engines.items()
    ]
    engines = list(dict.fromkeys(engine for one in measured.values() for engine in one))
    plots = [
        bars(
            f"packets a second, {what}",
            [titles[workload] for workload in measured],
            {engine: [_median(one, engine, name) for one in measured.values()] for engine in engines},
        )
        for what, name in _FIGURES.items()
    ]
    heads = ["traffic", "engine", *(f"packets/s {what}" for what in _FIGURES)]
    text = "Medians over the rounds; in the table also the lowest and the highest."
    section = Section("Packets answered a second", "packets", heads, rows, plots, text)
    return write_report(folder, "make bench WHAT=switch: engines in turns", about, [section])


def _median(measured: Mapping[str, Mapping[str, Figure]], engine: str, name: str) -> float:
    return measured[engine][name].median if engine in measured else math.nan


def _shown(figure: Figure) -> str:
    return f"{figure.median:,.0f} ({figure.low:,.0f} to {figure.high:,.0f})"
