"""The page results/tiers/report.html."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from emulator.result import revision
from experiments.page import Section, bars, write_report
from experiments.tiers.options import TiersOptions
from experiments.tiers.scenarios import SOURCES, Result
from simulator.compiled import engine

_TITLES = (
    "tiers", "gate", "prefetch", *SOURCES, "from SSD", "prefill saved, s", "fetching, s", "TTFT mean, ms",
    "TTFT p50, ms", "TTFT p99, ms",
)  # fmt: skip


def write_page(options: TiersOptions, results: Mapping[str, Sequence[Result]]) -> Path:
    """Write the page with one section for each trace, and return its path.

    Simulations run in virtual time, so that the page has no warning about a slow machine.
    """
    about = {"seed": options.seed, "revision": revision(), "engine": engine(), "policy": options.policy}
    sections = []
    for trace, rows in results.items():
        labels = [f"{row.tiers}, {row.gate}, {row.prefetch}" for row in rows]
        shares = {
            source: [100 * row.blocks[source] / sum(row.blocks.values()) for row in rows]
            for source in SOURCES
        }
        ttft = {"mean": [1000 * row.ttft_mean_s for row in rows]}
        plots = [
            bars("where blocks came from, %", labels, shares, stacked=True),
            bars("mean time to first token, ms", labels, ttft),
        ]
        sections.append(
            Section(Path(trace).name, Path(trace).stem, _TITLES, [_row(row) for row in rows], plots)
        )
    return write_report(options.results, "make tiers: the whole hierarchy, simulated", about, sections)


def _row(result: Result) -> list[object]:
    times = (1000 * s for s in (result.ttft_mean_s, result.ttft_p50_s, result.ttft_p99_s))
    found = (result.blocks[source] for source in SOURCES)
    return [
        result.tiers, result.gate, result.prefetch, *found, result.ssd_reads, result.saved_prefill_s,
        result.fetch_s, *times,
    ]  # fmt: skip
