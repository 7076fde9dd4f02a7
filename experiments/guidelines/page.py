"""results/guidelines/report.html."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path

from experiments.guidelines.cases import PUBLISHED, Case
from experiments.guidelines.result import Measured
from experiments.intervals import mean_interval
from experiments.page import Section, bars, write_report

_TITLES = ("case", "MB/s, mean", "± (95 %)", "request p50, ms, mean", "± (95 %)", "failed")


def write_page(
    folder: Path,
    about: Mapping[str, object],
    found: Mapping[Case, Sequence[Measured]],
    complaints: Sequence[str],
) -> Path:
    """A section a guideline."""
    sections = []
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
        published = f"Beluga: {PUBLISHED[guideline]}." if guideline in PUBLISHED else ""
        name = guideline.replace(" ", "-")
        sections.append(Section(guideline.capitalize(), name, _TITLES, rows, plots, published))
    return write_report(folder, "make guidelines: load through segments", about, sections, complaints)
