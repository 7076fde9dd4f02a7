"""The report: one HTML file without references to anything outside of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import floor, isfinite, log10
from pathlib import Path

from experiments.intervals import Interval
from experiments.page import Page
from experiments.page.report import Plot
from experiments.study.adaptive import Coarse
from experiments.study.panels.panel import Panel
from experiments.study.table import Table

TITLE = "When does a pool in the switch pay?"
MOST_DIGITS = 6


@dataclass(frozen=True, slots=True)
class Report:
    """What the page shows, in the order of reading."""

    opening: Sequence[str]
    """For who reads no further."""
    front: Plot | None
    """The purchases, in one picture."""
    in_short: Table
    about: Mapping[str, object]
    """What the figures were made with."""
    coarse: Sequence[Coarse]
    answers: Sequence[str]
    panels: Sequence[Panel]
    objections: Table
    everything: Table
    """All simulations."""


def write_page(path: Path, report: Report) -> None:
    """The answer with its picture and table, how it was made, the questions, a panel for each part with its
    claim, its plots, what argues against it and a table, the objections, and all points."""
    page = Page(TITLE)
    for number, text in enumerate(report.opening):
        page.text(text, "lead" if number == 0 else "")
    if report.front is not None:
        page.plot(*report.front)
        _, _, left_out = report.front[1].partition("; ")
        if left_out:
            page.text(f"{left_out[0].upper()}{left_out[1:]}.")
    if report.in_short.rows:
        page.table(report.in_short.name, report.in_short.columns, shown_rows(report.in_short))
    page.folded("How these figures were made", [f"{name}: {value}" for name, value in report.about.items()])
    if report.coarse:
        left = len(report.coarse)
        title = f"Means left wider than wanted (±1 %, in the map ±0.5 %), or out: {left} comparisons"
        page.folded(title, coarse_lines(report.coarse))
    page.contents()
    if report.answers:
        page.heading("The questions")
        for number, answer in enumerate(report.answers, 1):
            _add_answer(page, number, answer)
    for panel in report.panels:
        add_panel(page, panel)
    if report.objections.rows:
        page.heading("What was objected, and the figures")
        page.table(report.objections.name, report.objections.columns, report.objections.rows)
    page.heading("All simulations")
    page.table(report.everything.name, report.everything.columns, shown_rows(report.everything))
    page.write(path)


def _add_answer(page: Page, number: int, answer: str) -> None:
    """A question with its lines, or a line without one."""
    question, asked, text = answer.partition("? ")
    page.text(f"{number}. {question}{asked.strip()}")
    if text:
        page.points(text.split("\n"))


def add_panel(page: Page, panel: Panel) -> None:
    """Its claim, its plots, what argues against it, and its table."""
    page.heading(panel.title)
    first, *more = panel.claim.text.split("\n")
    page.text(first)
    if more:
        page.points(more)
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
