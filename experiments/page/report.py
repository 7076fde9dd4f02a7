"""Page that every experiment writes: conditions, whether the figures count, plots and tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from experiments.page.charts import Chart, bar_chart, line_chart
from experiments.page.document import Page

NAME = "report.html"

Plot = tuple[Chart, str]
"""Chart, with a description for readers who can't see it."""


@dataclass(frozen=True, slots=True)
class Section:
    """Section with a heading, plots and a table; `name` is the name of the file that saves the table."""

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
    """Write report.html into `folder`; returns its path.

    `about` has conditions such as seed, revision and engine. `complaints` has reasons why figures don't
    count; it is None if the machine need not keep up.
    """
    page = Page(title)
    if complaints:
        page.text(f"The machine did not keep up: {'; '.join(dict.fromkeys(complaints))}.", "warning")
    elif complaints is not None:
        page.text("The machine kept up in all that is shown here.")
    page.text(", ".join(f"{name.replace('_', ' ')} {_shown(value)}" for name, value in about.items()) + ".")
    for section in sections:
        page.heading(section.heading)
        if section.text:
            page.text(section.text)
        if section.plots:
            page.plots(section.plots)
        page.table(section.name, section.titles, section.rows)
    page.write(folder / NAME)
    return folder / NAME


def _shown(value: object) -> str:
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
    """Return a plot with a line for each series of points (x, y); `hollow` tells which points don't count."""
    ticks = sorted({x for points in series.values() for x, _ in points}) if log_x else None
    chart = line_chart(what, x_title, series, log_x=log_x, marks=True, hollow=hollow, ticks=ticks)
    return chart, f"{what} over {x_title}"


def bars(
    what: str, labels: Sequence[str], series: Mapping[str, Sequence[float]], stacked: bool = False
) -> Plot:
    """Return a plot with bars for each label, one of each series, stacked or side by side."""
    return bar_chart(what, labels, series, stacked=stacked), f"{what}: bars for {', '.join(labels)}"
