"""The page that every experiment leaves: what it was made with, whether it counts, plots and tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from experiments.page.charts import Chart, bar_chart, line_chart
from experiments.page.document import Page

NAME = "report.html"

Plot = tuple[Chart, str]
"""A chart, and what it shows for those who can't see it."""


@dataclass(frozen=True, slots=True)
class Section:
    """A heading with its plots and a table; `name` is that of the file that the table is saved as."""

    heading: str
    name: str
    titles: Sequence[str]
    rows: Sequence[Sequence[object]]
    plots: Sequence[Plot] = field(default_factory=tuple)
    text: str = ""


def write_report(
    folder: Path,
    title: str,
    about: Mapping[str, object],
    sections: Sequence[Section],
    complaints: Sequence[str] | None = None,
) -> Path:
    """`about` has seed, revision, engine and their like; `complaints` why figures don't count, None where no
    machine has to keep up."""
    page = Page(title)
    if complaints:
        page.text(f"The machine did not keep up: {'; '.join(dict.fromkeys(complaints))}.", "warning")
    elif complaints is not None:
        page.text("The machine kept up in all that is shown here.")
    page.text(", ".join(f"{name.replace('_', ' ')} {_said(value)}" for name, value in about.items()) + ".")
    for section in sections:
        page.heading(section.heading)
        if section.text:
            page.text(section.text)
        if section.plots:
            page.plots(section.plots)
        page.table(section.name, section.titles, section.rows)
    page.write(folder / NAME)
    return folder / NAME


def _said(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return " ".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def lines(
    what: str,
    x_title: str,
    series: Mapping[str, Sequence[tuple[float, float]]],
    log_x: bool = False,
    hollow: Mapping[str, Sequence[bool]] | None = None,
) -> Plot:
    """Return one line a series of (x, y); `hollow` says which points don't count."""
    ticks = sorted({x for points in series.values() for x, _ in points}) if log_x else None
    chart = line_chart(what, x_title, series, log_x=log_x, marks=True, hollow=hollow, ticks=ticks)
    return chart, f"{what} over {x_title}"


def bars(
    what: str, labels: Sequence[str], series: Mapping[str, Sequence[float]], stacked: bool = False
) -> Plot:
    """Return bars by label, one a series; stacked or side by side."""
    return bar_chart(what, labels, series, stacked=stacked), f"{what}: bars for {', '.join(labels)}"
