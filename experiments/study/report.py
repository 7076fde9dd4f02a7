"""The report: one HTML file without references to anything outside of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import floor, isfinite, log10
from pathlib import Path

from experiments.intervals import Interval
from experiments.page import Page
from experiments.study.adaptive import Coarse
from experiments.study.panels.panel import Panel
from experiments.study.table import Table

TITLE = "When does a pool in the switch pay?"
MOST_DIGITS = 6


def write_page(
    path: Path,
    about: Mapping[str, object],
    first: Sequence[str],
    in_short: Table,
    answers: Sequence[str],
    objected: Table,
    made: Sequence[Panel],
    everything: Table,
    coarse: Sequence[Coarse],
) -> None:
    """What is said first, answers, objections, panels with claim, plot, what argues against it and table, and
    what was left coarse."""
    page = Page(TITLE)
    for number, text in enumerate(first):
        page.text(text, "lead" if number == 0 else "")
    if in_short.rows:
        page.table(in_short.name, in_short.columns, shown_rows(in_short))
    for number, answer in enumerate(answers, 1):
        page.text(f"{number}. {answer}")
    page.text("; ".join(f"{name}: {value}" for name, value in about.items()) + ".")
    if coarse:
        title = f"Means left wider than wanted (±1 %, in the map ±0.5 %), or out: {len(coarse)} comparisons"
        page.folded(title, coarse_lines(coarse))
    if objected.rows:
        page.table(objected.name, objected.columns, objected.rows)
    for panel in made:
        add_panel(page, panel)
    page.heading("All simulations")
    page.table(everything.name, everything.columns, shown_rows(everything))
    page.write(path)


def add_panel(page: Page, panel: Panel) -> None:
    """Its claim, its plots, what argues against it, and its table."""
    page.heading(panel.title)
    page.text(panel.claim.text)
    for figure, description in panel.plots:
        page.plot(figure, description)
    page.text(f"Against it: {panel.against}")
    page.table(panel.table.name, panel.table.columns, shown_rows(panel.table))


def coarse_lines(coarse: Sequence[Coarse]) -> list[str]:
    """Each with its seeds and the widest interval that was watched."""
    return [
        f"{one.name}: {one.seeds} seeds, ±{one.spread:.1%}"
        if one.seeds > 1
        else f"{one.name}: {one.seeds} seeds"
        for one in coarse
    ]


def shown_rows(table: Table) -> list[list[object]]:
    """Numbers with four digits that count, intervals as "mean ± half"."""
    return [[_shown(value) for value in row] for row in table.rows]


def _shown(value: object) -> object:
    if isinstance(value, Interval):
        return _with_half(value)
    return f"{value:.4g}" if isinstance(value, float) else "none" if value is None else value


def _with_half(value: Interval) -> str:
    """With two digits of the half, as long as the larger of both has no more than five; no more than
    MOST_DIGITS behind the point."""
    if not isfinite(value.half) or not value.half:
        return f"{value.mean:.4g}{' ± 0' if not value.half else ''}"
    digits = min(4 - _magnitude(max(abs(value.mean), value.half)), 1 - _magnitude(value.half), MOST_DIGITS)
    return f"{value:,.{max(0, digits)}f}"


def _magnitude(value: float) -> int:
    """The power of ten of its first digit."""
    return floor(log10(value)) if value else 0
