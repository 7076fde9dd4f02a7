"""results/guidelines/report.html."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path

from commands.intervals import mean_interval
from experiments.guidelines.cases import Case
from experiments.guidelines.result import Compared, Measured
from experiments.page import Section, bars, write_report

_TITLES = ("case", "MB/s, mean", "± (95 %)", "request p50, ms, mean", "± (95 %)", "failed")


def write_page(
    folder: Path,
    about: Mapping[str, object],
    found: Mapping[Case, Sequence[Measured]],
    compared: Sequence[Compared],
    complaints: Sequence[str],
) -> Path:
    """A section a guideline."""
    sections = []
    beside = {one.published.guideline: one for one in compared}
    for guideline, members in groupby(found, key=lambda case: case.guideline):
        cases = list(members)
        rates = [mean_interval([one.mbyte_s for one in found[case]]) for case in cases]
        latencies = [mean_interval([one.latency_ms for one in found[case]]) for case in cases]
        labels = [case.label for case in cases]
        rows = [
            [
                case.label, f"{rate.mean:.2f}", f"{rate.half:.2f}", latency.mean, latency.half,
                sum(one.failed for one in found[case]),
            ]
            for case, rate, latency in zip(cases, rates, latencies, strict=True)
        ]  # fmt: skip
        plots = [
            bars("loaded, MB/s", labels, {"MB/s": [rate.mean for rate in rates]}),
            bars("request p50, ms", labels, {"ms": [latency.mean for latency in latencies]}),
        ]
        published = _beside(beside[guideline]) if guideline in beside else ""
        name = guideline.replace(" ", "-")
        sections.append(Section(guideline.capitalize(), name, _TITLES, rows, plots, published))
    return write_report(folder, "make guidelines: load through segments", about, sections, complaints)


def _beside(one: Compared) -> str:
    what, ours, theirs, direction, _ = one.cells()
    theirs += f" in Beluga's paper ({one.published.what})"
    return f"{what}: {ours} times here, {theirs}; direction: {direction}."
