"""The table in the terminal, the page, and a plot of all workloads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.box import SIMPLE
from rich.table import Table

from commands.intervals import Interval
from experiments.page import Section, lines, write_report
from experiments.page.report import Plot
from experiments.pictures import panels, save

Row = Mapping[str, Any]
FIGURES = {
    "pool_hits": ("blocks from the pool, %", 100.0),
    "found": ("blocks not computed, %", 100.0),
    "egress_tb": ("storage nodes sent, TB", 1.0),
    "ttft_mean_ms": ("first token, mean, ms", 1.0),
    "ttft_p50_ms": ("p50", 1.0),
    "ttft_p99_ms": ("p99", 1.0),
}
SHOWN = ("pool_hits", "egress_tb", "ttft_mean_ms", "ttft_p99_ms")
"""Figures that are plotted."""
_STYLES = {"plain": ("o", "#111111"), "8-bit": ("s", "#0072b2"), "CacheGen": ("^", "#d55e00")}


def interval_text(value: Interval, factor: float = 1.0) -> str:
    """Return a mean and half of its interval, in text."""
    shown = factor * value
    digits = 2 if abs(shown.mean) < 10 else 1 if abs(shown.mean) < 100 else 0
    return f"{shown:,.{digits}f}"


def cells_table(rows: Sequence[Row], seeds: int) -> Table:
    """Return the table of every cell's means; the page has the intervals."""
    title = f"What compressing and blending are worth (means over {seeds} seeds)"
    table = Table(title=title, title_justify="left", box=SIMPLE, collapse_padding=True)
    names = ("workload", "pool", "blocks", "reuse", "pool, %", "sent, TB", "TTFT, ms", "p50", "p99")
    for name in names:
        table.add_column(name, justify="left" if name in ("workload", "blocks", "reuse") else "right")
    for row in rows:
        times = [row[name].mean for name in ("ttft_mean_ms", "ttft_p50_ms", "ttft_p99_ms")]
        table.add_row(
            *(row["workload"], f"{row['blocks']:,}", row["codec"], row["reuse"]),
            *(f"{100 * row['pool_hits'].mean:.1f}", f"{row['egress_tb'].mean:.2f}"),
            *(f"{one:,.0f}" for one in times),
        )
    return table


def write_page(
    folder: Path, about: Mapping[str, object], rows: Sequence[Row], verdicts: Mapping[str, Sequence[Row]]
) -> Path:
    """Write report.html and worth.svg beside it; return the page's path."""
    titles = ["workload", "plain blocks", "blocks", "reuse", *(title for title, _ in FIGURES.values())]
    sections = []
    for workload in dict.fromkeys(row["workload"] for row in rows):
        mine = [row for row in rows if row["workload"] == workload]
        cells = [_cells(row) for row in mine]
        sections.append(
            Section(workload, f"worth-{workload}", titles, cells, [_plot(mine, f) for f in SHOWN])
        )
    for name, heading in (
        ("compressed", "Compressed blocks against plain ones"),
        ("blended", "Blending against prefixes alone"),
    ):
        found = verdicts[name]
        if found:
            table = [
                [interval_text(cell) if isinstance(cell, Interval) else cell for cell in one.values()]
                for one in found
            ]
            sections.append(Section(heading, name, list(found[0]), table))
    _picture(folder, rows)
    return write_report(folder, "make worth: what compressing and blending are worth", about, sections)


def _cells(row: Row) -> list[object]:
    figures = [interval_text(row[name], factor) for name, (_, factor) in FIGURES.items()]
    return [row["workload"], f"{row['blocks']:,}", row["codec"], row["reuse"], *figures]


def _series(rows: Sequence[Row], figure: str) -> dict[tuple[str, str], list[tuple[float, float]]]:
    """Return the points by codec and reuse."""
    series: dict[tuple[str, str], list[tuple[float, float]]] = {}
    factor = FIGURES[figure][1]
    for row in rows:
        points = series.setdefault((row["codec"], row["reuse"]), [])
        points.append((row["blocks"], factor * row[figure].mean))
    return series


def _plot(rows: Sequence[Row], figure: str) -> Plot:
    named = {", ".join(name): points for name, points in _series(rows, figure).items()}
    return lines(FIGURES[figure][0], "memory of the pool, plain blocks", named, log_x=True)


def _picture(folder: Path, rows: Sequence[Row]) -> None:
    workloads = list(dict.fromkeys(row["workload"] for row in rows))
    figure, axes = panels(3, len(workloads), (3.2 * len(workloads), 7.5), squeeze=False, sharex=True)
    for column, workload in enumerate(workloads):
        mine = [row for row in rows if row["workload"] == workload]
        for line, name in enumerate(("pool_hits", "egress_tb", "ttft_mean_ms")):
            ax = axes[line][column]
            for (codec, reuse), points in _series(mine, name).items():
                marker, colour = _STYLES[codec]
                style = "--" if reuse == "blend" else "-"
                x, y = zip(*points, strict=True)
                ax.plot(x, y, style, marker=marker, color=colour, label=f"{codec}, {reuse}", markersize=4)
            ax.set_xscale("log")
            ax.margins(y=0.1)
            ax.set_ylim(bottom=0)
            if line == 0:
                ax.set_title(workload)
            if column == 0:
                ax.set_ylabel(FIGURES[name][0])
            if line == 2:
                ax.set_xlabel("pool, plain blocks")
    most = max(axes[0], key=lambda ax: len(ax.get_lines()))
    figure.legend(*most.get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize="small")
    save(figure, folder, "worth", ("svg",))
