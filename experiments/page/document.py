"""HTML document with sections of text, plots and tables. Text is escaped; drawings and scripts are not."""

from __future__ import annotations

import base64
import csv
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.page import charts
from experiments.page.charts import Chart
from experiments.page.style import PATTERNS, SERIES_STYLES, STYLE

if TYPE_CHECKING:
    import plotly.graph_objects as go

_SCRIPT = """
function weirFilter(input) {
  const wanted = input.value.toLowerCase();
  for (const row of document.getElementById(input.dataset.table).tBodies[0].rows)
    row.hidden = !row.textContent.toLowerCase().includes(wanted);
}
function weirMenus(name, draw) {
  const form = document.getElementById(name + "-menus"), plot = document.getElementById(name + "-plot");
  const data = JSON.parse(document.getElementById(name + "-data").textContent);
  const show = () => draw(data, Object.fromEntries(new FormData(form)), plot);
  // report.html?NAME-MENU=value opens with that choice, so that a view can be linked to.
  for (const [key, value] of new URLSearchParams(location.search)) {
    const menu = form.querySelector("#" + CSS.escape(key));
    if (menu && [...menu.options].some(option => option.value === value)) menu.value = value;
  }
  form.addEventListener("change", show);
  form.addEventListener("submit", event => event.preventDefault());
  window.addEventListener("DOMContentLoaded", show);
}
"""
# A plot is first drawn before the columns beside it exist, so its width is wrong until it is resized.
_PLOTLY_SCRIPT = """
window.addEventListener("load", () => {
  for (const plot of document.querySelectorAll(".js-plotly-plot")) Plotly.Plots.resize(plot);
});
"""

_NO_SCRIPT = (
    '<noscript><p class="warning">This browser does not run the page\'s JavaScript, so its plots, menus and '
    "filters are missing. The tables and the links that save them are all here.</p></noscript>"
)
_FILTERED_ROWS = 12
_WORDS = 32
"""Length above which a cell is text, which may be broken into lines."""

_CONFIG = {"responsive": True, "displaylogo": False, "displayModeBar": False}


@dataclass(frozen=True, slots=True)
class Menu:
    """Menu with pairs (value, text that the reader sees); the first is chosen at the start."""

    name: str
    label: str
    values: Sequence[tuple[str, str]]


class Page:
    """Page that is built from top to bottom, and then written."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._parts: list[str] = [f"<h1>{escape(title)}</h1>"]
        self._plots = 0
        self._has_plotly = False
        self._headings: list[str] = []
        self._contents: int | None = None
        """Number of parts before the table of contents; None if there is none."""

    def heading(self, text: str) -> None:
        """Begin a section."""
        self._headings.append(text)
        self._parts.append(f'<h2 id="part{len(self._headings)}">{escape(text)}</h2>')

    def contents(self) -> None:
        """Add links to all sections of the page at this place, also to later sections."""
        self._contents = len(self._parts)

    def text(self, text: str, kind: str = "") -> None:
        """Add a paragraph; `kind` is "lead" or "warning"."""
        self._parts.append(f'<p class="{escape(kind)}">{escape(text)}</p>')

    def points(self, lines: Sequence[str]) -> None:
        """Add a list of sentences."""
        self._parts.append(f'<ul class="points">{_items(lines)}</ul>')

    def svg(self, drawing: str) -> None:
        """Add a drawing in SVG or HTML, which is not escaped."""
        self._parts.append(drawing)

    def plot(self, figure: Chart | go.Figure, description: str) -> None:
        """Add a plot; `description` says what it shows, for readers who can't see it."""
        self._parts.append(self._plot(figure, description))

    def plots(self, figures: Sequence[tuple[Chart | go.Figure, str]]) -> None:
        """Add plots, side by side if the page is wide enough, from pairs (figure, description)."""
        cells = "".join(f"<div>{self._plot(figure, text)}</div>" for figure, text in figures)
        self._parts.append(f'<div class="columns">{cells}</div>')

    def menus(self, name: str, menus: Sequence[Menu], script: str, data: object) -> None:
        """Add menus with which the reader chooses what a plot shows.

        `script` is the body of a function (data, chosen, plot) that draws into the element `plot`, mostly
        with `weirDraw` (charts.js). `chosen` has the value of each menu by its name. The function is called
        when the page is loaded and whenever a choice changes.
        """
        selects = "".join(_menu_html(name, menu) for menu in menus)
        content = json.dumps(data, separators=(",", ":")).replace("</", "<\\/")
        self._parts.append(
            f'<form class="menus" id="{escape(name)}-menus">{selects}</form>'
            f'<div class="plot chart" id="{escape(name)}-plot"></div>'
            f'<script type="application/json" id="{escape(name)}-data">{content}</script>'
            f"<script>weirMenus({json.dumps(name)},function(data,chosen,plot){{{script}}});</script>"
        )

    def details(self, title: str, lines: Sequence[str]) -> None:
        """Add a list of lines that is hidden until the reader opens it."""
        self._parts.append(f"<details><summary>{escape(title)}</summary><ul>{_items(lines)}</ul></details>")

    def table(self, name: str, titles: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """Add a table, with a link that saves it as NAME.csv; a long one can be filtered."""
        head = "".join(f'<th scope="col">{escape(str(title))}</th>' for title in titles)
        body = "".join("<tr>" + "".join(_cell(cell) for cell in row) + "</tr>" for row in rows)
        if len(rows) > _FILTERED_ROWS:
            self._parts.append(
                f'<label class="filter">Only rows with <input type="search" data-table="{escape(name)}" '
                f'oninput="weirFilter(this)"></label>'
            )
        self._parts.append(
            f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(name)}">'
            f'<table id="{escape(name)}"><thead><tr>{head}</tr></thead>'
            f"<tbody>{body}</tbody></table></div>{_download(name, titles, rows)}"
        )

    def write(self, path: Path) -> None:
        """Write the page so that a reader never sees half of it."""
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        part.write_text(self._html(), encoding="utf-8")
        part.replace(path)

    def _plot(self, figure: Chart | go.Figure, description: str) -> str:
        self._plots += 1
        if isinstance(figure, Chart):
            data = json.dumps({"kind": figure.kind, **figure.data}, separators=(",", ":"))
            return (
                f'<div class="plot chart" id="plot{self._plots}" role="img" '
                f'aria-label="{escape(description)}" data-chart="{escape(data)}"></div>'
            )
        self._has_plotly = True
        drawn = figure.to_html(
            full_html=False, include_plotlyjs=False, config=_CONFIG, div_id=f"plot{self._plots}"
        )
        return f'<div class="plot plotly" role="img" aria-label="{escape(description)}">{drawn}</div>'

    def _body(self) -> str:
        parts = list(self._parts)
        if self._contents is not None:
            links = "".join(
                f'<li><a href="#part{number}">{escape(text)}</a></li>'
                for number, text in enumerate(self._headings, 1)
            )
            parts.insert(self._contents, f'<nav aria-label="contents"><ul>{links}</ul></nav>')
        return "".join(parts)

    def _html(self) -> str:
        return (
            '<!doctype html><html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            '<meta name="color-scheme" content="light dark">'
            f"<title>{escape(self._title)}</title><style>{STYLE}</style>{self._plotly()}"
            f"<script>const weirSeriesStyles={json.dumps(SERIES_STYLES)};"
            f"{charts.SCRIPT}{_SCRIPT}</script></head>"
            f"<body>{_NO_SCRIPT}{PATTERNS}{self._body()}</body></html>\n"
        )

    def _plotly(self) -> str:
        """Return plotly's program, 5 MB, if the page has a figure of plotly; otherwise ""."""
        if not self._has_plotly:
            return ""
        from plotly.offline import get_plotlyjs

        return f"<script>{get_plotlyjs()}</script><script>{_PLOTLY_SCRIPT}</script>"


def _items(lines: Sequence[str]) -> str:
    return "".join(f"<li>{escape(line)}</li>" for line in lines)


def _menu_html(name: str, menu: Menu) -> str:
    options = "".join(f'<option value="{escape(v)}">{escape(text)}</option>' for v, text in menu.values)
    return (
        f'<label>{escape(menu.label)} <select name="{escape(menu.name)}" '
        f'id="{escape(name)}-{escape(menu.name)}">{options}</select></label>'
    )


def _cell(cell: object) -> str:
    opening = '<td class="words">' if isinstance(cell, str) and len(cell) > _WORDS else "<td>"
    return f"{opening}{escape(_shown(cell))}</td>"


def _shown(cell: object) -> str:
    if isinstance(cell, float):
        if 0 < abs(cell) < 0.95:  # "0.0" would hide it
            return f"{cell:.2g}"
        return f"{cell:,.1f}" if abs(cell) < 1e6 else f"{cell:,.0f}"
    if isinstance(cell, int) and not isinstance(cell, bool):
        return f"{cell:,}"
    return str(cell)


def _download(name: str, titles: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    file = io.StringIO()
    writer = csv.writer(file)
    writer.writerow(titles)
    writer.writerows(rows)
    data = base64.b64encode(file.getvalue().encode()).decode()
    return (
        f'<a class="download" download="{escape(name)}.csv" href="data:text/csv;base64,{data}">'
        f"Save this table ({escape(name)}.csv)</a>"
    )
