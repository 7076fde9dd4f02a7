"""The report of a run: tables on the console, and summary.json."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from emulator.result import revision
from experiments.tiers.options import TiersOptions
from experiments.tiers.scenarios import SOURCES, Result

Results = Mapping[str, Sequence[Result]]
"""Results by the name of their trace."""

_Column = tuple[str, Callable[[Result], str]]


def _share(source: str) -> Callable[[Result], str]:
    return lambda result: f"{result.blocks[source] / sum(result.blocks.values()):.1%}"


def _terabytes(name: str) -> Callable[[Result], str]:
    return lambda result: f"{getattr(result, name) / 1e12:.2f}"


_WHERE: tuple[_Column, ...] = tuple((source, _share(source)) for source in SOURCES)
_TIME: tuple[_Column, ...] = (
    ("prefill saved", lambda r: f"{r.saved_prefill_s:,.0f}"),
    ("fetching", lambda r: f"{r.fetch_s:,.0f}"),
    ("TTFT mean", lambda r: f"{r.ttft_mean_s:.3f}"),
    ("p50", lambda r: f"{r.ttft_p50_s:.3f}"),
    ("p99", lambda r: f"{r.ttft_p99_s:.2f}"),
)
_MOVED: tuple[_Column, ...] = (
    ("SSD to DRAM", lambda r: f"{r.ssd_reads * r.block_bytes / 1e12:.2f}"),
    ("storage to node", _terabytes("storage_bytes")),
    ("pool to node", _terabytes("pool_bytes")),
    ("GPU to DRAM", _terabytes("copied_down_bytes")),
    ("refused", lambda r: f"{r.refused_blocks * r.block_bytes / 1e12:.2f}"),
)
_TABLES = {"where blocks came from": _WHERE, "seconds": _TIME, "terabytes": _MOVED}


def print_report(console: Console, results: Results) -> None:
    """Print for each trace where blocks came from, the time that it took or saved, and
    the bytes that moved."""
    for trace, rows in results.items():
        for title, columns in _TABLES.items():
            _print(console, f"{Path(trace).name}: {title}", rows, columns)
        best = min(rows, key=lambda result: result.ttft_mean_s)
        console.print(
            f"shortest mean time to first token: {best.tiers}, gate {best.gate}, prefetch {best.prefetch}"
        )


def _print(console: Console, title: str, rows: Sequence[Result], columns: Sequence[_Column]) -> None:
    table = Table(title=title, title_justify="left", padding=(0, 0, 0, 1))
    table.add_column("tiers, gate, prefetch", no_wrap=True)
    for name, _ in columns:
        table.add_column(name, justify="right")
    last = ""
    for result in rows:
        if last and result.tiers != last:
            table.add_section()
        last = result.tiers
        name = f"{result.tiers}, {result.gate}, {result.prefetch}"
        table.add_row(name, *(show(result) for _, show in columns))
    console.print(table)


def write_results(path: Path, options: TiersOptions, results: Results) -> None:
    """Write all results with their traces, and the options that they were made with."""
    about = {
        name: str(value) if isinstance(value, Path) else value for name, value in asdict(options).items()
    }
    records = [{"trace": trace, **asdict(result)} for trace, rows in results.items() for result in rows]
    path.write_text(
        json.dumps({"revision": revision(), "options": about, "results": records}, indent=1) + "\n"
    )
