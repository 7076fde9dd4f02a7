"""Page of the experiment: results/engines/report.html."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from experiments.engines.result import ModeResult
from experiments.page import Section, bars, write_report


def write_page(folder: Path, about: Mapping[str, object], modes: Mapping[str, ModeResult]) -> Path:
    """Write the page into `folder`, with a row for each mode; returns its path."""
    titles = (
        "mode", "requests", "identical outputs", "TTFT p50, ms", "TTFT p99, ms", "between tokens p50, ms",
        "between tokens p99, ms", "TTFT of new prefixes p50, ms", "KV from the switch, MB",
        "KV from storage nodes, MB", "merged fragments", "objects that failed",
    )  # fmt: skip
    rows = [
        [
            name, mode.requests, mode.identical, mode.ttft_ms.p50, mode.ttft_ms.p99, mode.tbt_ms.p50,
            mode.tbt_ms.p99, mode.first_ms.p50, mode.pool_bytes / 1e6, mode.store_bytes / 1e6, mode.merged,
            sum(mode.failed.values()),
        ]
        for name, mode in modes.items()
    ]  # fmt: skip
    names = list(modes)
    ttft = {share: [getattr(mode.ttft_ms, share) for mode in modes.values()] for share in ("p50", "p99")}
    loaded = {
        "switch": [mode.pool_bytes / 1e6 for mode in modes.values()],
        "storage nodes": [mode.store_bytes / 1e6 for mode in modes.values()],
    }
    plots = [
        bars("time to first token, ms", names, ttft),
        bars("KV that the engines loaded, MB", names, loaded, stacked=True),
    ]
    section = Section("Each mode", "modes", titles, rows, plots)
    return write_report(folder, "make engines: vLLM on the pool", about, [section])
