"""The HTML document: sections of text, plots and tables. Everything that comes from outside is escaped."""

from __future__ import annotations

import base64
import csv
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #111; background: #fff; margin: 0 auto; max-width: 1360px; padding: 0 12px 48px; }
h1 { font-size: 1.6em; margin: 24px 0 4px; } h2 { font-size: 1.25em; margin: 36px 0 4px; border-top: 1px solid #ccc; padding-top: 16px; }
p { max-width: 76ch; margin: 6px 0; white-space: pre-line; } td.words { text-align: left; white-space: pre-line; min-width: 24ch; max-width: 96ch; } p.lead { font-size: 1.1em; } p.warning { border-left: 6px solid #d55e00; padding-left: 10px; }
.scroll { overflow-x: auto; background: linear-gradient(to right, #fff 30%, #fff0) left / 40px 100% no-repeat local, linear-gradient(to left, #fff 30%, #fff0) right / 40px 100% no-repeat local, radial-gradient(farthest-side at 0 50%, #0004, #0000) left / 12px 100% no-repeat scroll, radial-gradient(farthest-side at 100% 50%, #0004, #0000) right / 12px 100% no-repeat scroll; } table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .92em; }
th, td { padding: 3px 10px; border-bottom: 1px solid #ddd; text-align: right; white-space: nowrap; } th { white-space: normal; vertical-align: bottom; max-width: 15ch; } th:first-child, td:first-child { text-align: left; }
thead th { border-bottom: 2px solid #111; } a.download { font-size: .85em; } .plot { min-height: 320px; }
@media (max-width: 600px) { th, td { padding: 3px 5px; } td:first-child { white-space: normal; min-width: 11ch; } table { font-size: .85em; } }
.choices { display: flex; flex-wrap: wrap; gap: 8px 20px; margin: 8px 0; } select, input { font: inherit; }
label.filter { display: block; margin: 6px 0; font-size: .92em; } details { margin: 4px 0; } details li, ul.points li { max-width: 76ch; } ul.points { margin: 6px 0; padding-left: 22px; } ul.points li { margin: 3px 0; }
tr:has(> td.words) > td { vertical-align: top; } nav ul { columns: 24ch; margin: 6px 0; padding-left: 22px; font-size: .92em; }
.columns > div { min-width: 0; overflow: hidden; }
.columns { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 400px), 1fr)); gap: 12px; }
"""  # noqa: E501  (CSS, a line a rule)

_SCRIPT = """
function weirFilter(input) {
  const wanted = input.value.toLowerCase();
  for (const row of document.getElementById(input.dataset.table).tBodies[0].rows)
    row.hidden = !row.textContent.toLowerCase().includes(wanted);
}
function weirChoices(name, draw) {
  const form = document.getElementById(name + "-choices"), plot = document.getElementById(name + "-plot");
  const data = JSON.parse(document.getElementById(name + "-data").textContent);
  const show = () => draw(data, Object.fromEntries(new FormData(form)), plot);
  // report.html?NAME-MENU=value opens with that choice, so that a view can be linked to.
  for (const [key, value] of new URLSearchParams(location.search)) {
    const menu = form.querySelector("#" + CSS.escape(key));
    if (menu && [...menu.options].some(option => option.value === value)) menu.value = value;
  }
  form.addEventListener("change", show);
  form.addEventListener("submit", event => event.preventDefault());
  show();
}
// A plot is drawn when the columns beside it are not there yet.
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
"""A cell that is longer than this is text, which may be broken into lines."""

_CONFIG = {"responsive": True, "displaylogo": False, "displayModeBar": False}


@dataclass(frozen=True, slots=True)
class Choice:
    """A menu: (value, what the reader sees), the first one chosen at the start."""

    name: str
    label: str
    values: Sequence[tuple[str, str]]


class Page:
    """Built from top to bottom, then written."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._parts: list[str] = [f"<h1>{escape(title)}</h1>"]
        self._plots = 0
        self._headings: list[str] = []
        self._contents: int | None = None
        """Behind so many parts."""

    def heading(self, text: str) -> None:
        """Begin a section."""
        self._headings.append(text)
        self._parts.append(f'<h2 id="part{len(self._headings)}">{escape(text)}</h2>')

    def contents(self) -> None:
        """Links to all sections, those that come later too; here."""
        self._contents = len(self._parts)

    def text(self, text: str, kind: str = "") -> None:
        """A paragraph; `kind`: "lead" or "warning"."""
        self._parts.append(f'<p class="{escape(kind)}">{escape(text)}</p>')

    def points(self, lines: Sequence[str]) -> None:
        """Sentences below one another."""
        self._parts.append(f'<ul class="points">{_items(lines)}</ul>')

    def plot(self, figure: go.Figure, description: str) -> None:
        """A plot; `description` is what it shows, for those who can't see it."""
        self._parts.append(self._plot(figure, description))

    def plots(self, figures: Sequence[tuple[go.Figure, str]]) -> None:
        """Plots side by side where there is room: (figure, description)."""
        cells = "".join(f"<div>{self._plot(figure, text)}</div>" for figure, text in figures)
        self._parts.append(f'<div class="columns">{cells}</div>')

    def choices(self, name: str, choices: Sequence[Choice], script: str, data: object) -> None:
        """Menus by which the reader chooses what a plot shows.

        `script` is the body of a function (data, chosen, plot) that draws with Plotly into the element
        `plot`; `chosen` has the value of each menu by its name. It is called at the start and whenever one
        changes.
        """
        menus = "".join(_menu(name, choice) for choice in choices)
        content = json.dumps(data, separators=(",", ":")).replace("</", "<\\/")
        self._parts.append(
            f'<form class="choices" id="{escape(name)}-choices">{menus}</form>'
            f'<div class="plot" id="{escape(name)}-plot"></div>'
            f'<script type="application/json" id="{escape(name)}-data">{content}</script>'
            f"<script>weirChoices({json.dumps(name)},function(data,chosen,plot){{{script}}});</script>"
        )

    def folded(self, title: str, lines: Sequence[str]) -> None:
        """Lines that are there for who opens them."""
        self._parts.append(f"<details><summary>{escape(title)}</summary><ul>{_items(lines)}</ul></details>")

    def table(self, name: str, titles: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """A table, with a link that saves it as NAME.csv; a long one can be filtered."""
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
        """Write the page; a reader never sees half of it."""
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        part.write_text(self._html(), encoding="utf-8")
        part.replace(path)

    def _plot(self, figure: go.Figure, description: str) -> str:
        self._plots += 1
        drawn = figure.to_html(
            full_html=False, include_plotlyjs=False, config=_CONFIG, div_id=f"plot{self._plots}"
        )
        return f'<div class="plot" role="img" aria-label="{escape(description)}">{drawn}</div>'

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
            f"<title>{escape(self._title)}</title><style>{_STYLE}</style>"
            f"<script>{get_plotlyjs()}</script><script>{_SCRIPT}</script></head>"
            f"<body>{_NO_SCRIPT}{self._body()}</body></html>\n"
        )


def _items(lines: Sequence[str]) -> str:
    return "".join(f"<li>{escape(line)}</li>" for line in lines)


def _menu(name: str, choice: Choice) -> str:
    options = "".join(f'<option value="{escape(v)}">{escape(text)}</option>' for v, text in choice.values)
    return (
        f'<label>{escape(choice.label)} <select name="{escape(choice.name)}" '
        f'id="{escape(name)}-{escape(choice.name)}">{options}</select></label>'
    )


def _cell(cell: object) -> str:
    opening = '<td class="words">' if isinstance(cell, str) and len(cell) > _WORDS else "<td>"
    return f"{opening}{escape(_shown(cell))}</td>"


def _shown(cell: object) -> str:
    if isinstance(cell, float):
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
