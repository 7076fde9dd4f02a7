"""The report: one HTML file without references to anything outside of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import floor, isfinite, log10
from pathlib import Path

from commands.intervals import Interval
from experiments.page import Page
from experiments.study.adaptive import Coarse
from experiments.study.figures import Plot
from experiments.study.panels.panel import Panel
from experiments.study.table import Table

TITLE = "When does a pool in the switch pay?"
MOST_DIGITS = 6
LEAD = (
    "Each dot is a way to spend money on a cluster: its cost an hour, and its mean time to the first token "
    "over that of recomputing everything. A pool pays where its dot lies below all that cost no more."
)


@dataclass(frozen=True, slots=True)
class Report:
    """Content of the page, in reading order."""

    front: Plot | None
    """Plot of all purchases."""
    in_short: Table
    about: Mapping[str, object]
    """Names and values that say how the figures were made."""
    coarse: Sequence[Coarse]
    panels: Sequence[Panel]
    everything: Table
    """Table of all simulations."""


def write_page(path: Path, report: Report) -> None:
    """Write the plot of purchases, how figures were made, the panels, and the table of all points."""
    page = Page(TITLE)
    page.text(LEAD, "lead")
    if report.front is not None:
        page.plot(*report.front)
        _, _, left_out = report.front[1].partition("; ")
        if left_out:
            page.text(f"{left_out[0].upper()}{left_out[1:]}.")
    if report.in_short.rows:
        page.table(report.in_short.name, report.in_short.columns, shown_rows(report.in_short))
    page.details("How these figures were made", [f"{name}: {value}" for name, value in report.about.items()])
    if report.coarse:
        left = len(report.coarse)
        title = f"Means left wider than wanted (±1 %, in the map ±0.5 %), or out: {left} comparisons"
        page.details(title, coarse_lines(report.coarse))
    page.contents()
    for panel in report.panels:
        add_panel(page, panel)
    page.heading("All simulations")
    page.table(report.everything.name, report.everything.columns, shown_rows(report.everything))
    page.write(path)


def add_panel(page: Page, panel: Panel) -> None:
    """Add a panel's plots, its note and its table."""
    page.heading(panel.title)
    for figure, description in panel.plots:
        page.plot(figure, description)
    if panel.note:
        page.text(panel.note)
    page.table(panel.table.name, panel.table.columns, shown_rows(panel.table))


def coarse_lines(coarse: Sequence[Coarse]) -> list[str]:
    """Return a line for each comparison, with its seeds and the widest watched interval."""
    return [
        f"{one.name}: {one.seeds} seeds, ±{one.spread:.1%}"
        if one.seeds > 1
        else f"{one.name}: {one.seeds} seeds"
        for one in coarse
    ]


def shown_rows(table: Table) -> list[list[object]]:
    """Return the rows with four significant digits; intervals are "mean ± half"."""
    return [[_shown(value) for value in row] for row in table.rows]


def _shown(value: object) -> object:
    if isinstance(value, Interval):
        return _with_half(value)
    return f"{value:.4g}" if isinstance(value, float) else "none" if value is None else value


def _with_half(value: Interval) -> str:
    """Return mean and half with two digits of the half.

    The larger of both has five digits at most, and MOST_DIGITS at most are behind the point.
    """
    if not isfinite(value.half) or not value.half:
        return f"{value.mean:.4g}{' ± 0' if not value.half else ''}"
    digits = min(4 - _magnitude(max(abs(value.mean), value.half)), 1 - _magnitude(value.half), MOST_DIGITS)
    return f"{value:,.{max(0, digits)}f}"


def _magnitude(value: float) -> int:
    """Return the power of ten of the value's first digit; 0 for 0."""
    return floor(log10(value)) if value else 0
