"""The page that every experiment leaves: what it was made with, whether it counts, plots and tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import plotly.graph_objects as go

from experiments.page.document import Page
from experiments.page.style import SERIES, base_layout, series_style

NAME = "report.html"

Plot = tuple[go.Figure, str]
"""A figure, and what it shows for those who can't see it."""


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
    """One line a series of (x, y); `hollow` says which points don't count."""
    figure = go.Figure(layout=base_layout(title_text=what, xaxis_title=x_title, yaxis_rangemode="tozero"))
    for number, (name, points) in enumerate(series.items()):
        looks = series_style(number)
        if hollow and any(hollow[name]):
            symbol = looks["marker"]["symbol"]
            looks["marker"]["symbol"] = [f"{symbol}-open" if open_ else symbol for open_ in hollow[name]]
        x, y = [point[0] for point in points], [point[1] for point in points]
        figure.add_scatter(x=x, y=y, name=name, mode="lines+markers", **looks)
    if log_x:
        figure.update_xaxes(type="log", tickvals=sorted({x for points in series.values() for x, _ in points}))
    return figure, f"{what} over {x_title}"


def bars(
    what: str, labels: Sequence[str], series: Mapping[str, Sequence[float]], stacked: bool = False
) -> Plot:
    """Bars by label, one a series; stacked or side by side."""
    mode = "stack" if stacked else "group"
    figure = go.Figure(layout=base_layout(title_text=what, barmode=mode))
    for number, (name, values) in enumerate(series.items()):
        looks = SERIES[number % len(SERIES)]
        marker = {"color": looks.colour, "pattern": {"shape": looks.pattern}}
        figure.add_bar(x=list(labels), y=list(values), name=name, marker=marker)
    return figure, f"{what}: bars for {', '.join(labels)}"
