"""The report: one HTML file without references to anything outside of it."""

from __future__ import annotations

import base64
import html
from collections.abc import Mapping, Sequence
from typing import Any

from experiments.study.panels import Panel
from experiments.study.table import Table

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #222; }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2.5rem; }
svg { max-width: 100%; height: auto; } figure { margin: 0; }
figcaption { margin: .3rem 0 .8rem; } .about { color: #555; }
table { border-collapse: collapse; font-size: .8rem; }
th, td { padding: .15rem .5rem; border: 1px solid #ddd; } td { text-align: right; }
.scroll { overflow-x: auto; max-height: 24rem; }
a.download { font-size: .9rem; }
"""


def page(
    title: str, about: Mapping[str, object], answers: Sequence[str], panels: Sequence[Panel], all_: Table
) -> str:
    """The whole file."""
    facts = "; ".join(f"{name} {value}" for name, value in about.items())
    listed = "".join(f"<li>{html.escape(answer)}</li>" for answer in answers)
    body = "".join(_section(panel) for panel in panels)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(title)}</title><style>{STYLE}</style></head><body>"
        f'<h1>{html.escape(title)}</h1><p class="about">{html.escape(facts)}</p>'
        f"<ol>{listed}</ol><p>All simulations: {_download(all_)}</p>{body}</body></html>\n"
    )


def _section(panel: Panel) -> str:
    return (
        f'<section id="{panel.table.name}"><h2>{html.escape(panel.title)}</h2><figure>{panel.svg}'
        f"<figcaption>{html.escape(panel.sentence)}</figcaption></figure>"
        f"{_download(panel.table)}<details><summary>Table</summary>{_html(panel.table)}</details></section>"
    )


def _download(table: Table) -> str:
    data = base64.b64encode(table.csv().encode()).decode()
    name = html.escape(table.name)
    return f'<a class="download" download="{name}.csv" href="data:text/csv;base64,{data}">{name}.csv</a>'


def _html(table: Table) -> str:
    head = "".join(f"<th>{html.escape(column)}</th>" for column in table.columns)
    rows = "".join(f"<tr>{''.join(f'<td>{_cell(value)}</td>' for value in row)}</tr>" for row in table.rows)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'


def _cell(value: Any) -> str:
    if value is None:
        return "none"
    return f"{value:.4g}" if isinstance(value, float) else html.escape(str(value))
