"""How plots look: colours that the colour-blind tell apart, and dashes and markers for those who see none."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, NamedTuple

import plotly.io as pio


class Series(NamedTuple):
    """One series' looks."""

    colour: str
    dash: str
    marker: str
    pattern: str
    """Of a filled bar."""


# Colours: Okabe and Ito, "Color Universal Design" (2008).
SERIES = (
    Series("#0072b2", "solid", "circle", ""),
    Series("#d55e00", "dash", "square", "/"),
    Series("#009e73", "dot", "diamond", "x"),
    Series("#cc79a7", "dashdot", "cross", "."),
    Series("#e69f00", "longdash", "triangle-up", "\\"),
    Series("#56b4e9", "longdashdot", "star", "-"),
    Series("#000000", "solid", "x", "|"),
)


def _template() -> dict[str, Any]:
    """plotly's simple_white, whose lines across a plot have no width: nobody would see them. As JSON has it:
    what is drawn by a page's own script is given it so."""
    looks: dict[str, Any] = deepcopy(pio.templates["simple_white"].to_plotly_json())
    looks["layout"]["shapedefaults"] = {"line": {"width": 1, "color": "#555"}, "opacity": 1}
    return looks


TEMPLATE = _template()


def series_style(number: int) -> dict[str, Any]:
    """Line and marker of the series with that number, as plotly's scatter takes them."""
    looks = SERIES[number % len(SERIES)]
    return {
        "line": {"color": looks.colour, "dash": looks.dash, "width": 2},
        "marker": {"color": looks.colour, "symbol": looks.marker, "size": 7},
    }


def base_layout(**more: Any) -> dict[str, Any]:
    """A layout that fits a narrow screen too."""
    return {
        "template": TEMPLATE,
        "margin": {"l": 56, "r": 12, "t": 64, "b": 48},
        "legend": {"orientation": "h", "traceorder": "normal", "yanchor": "bottom", "y": 1.0, "x": 0},
        "title": {"y": 0.98, "yanchor": "top", "font": {"size": 15}},
        "font": {"family": "system-ui, sans-serif", "size": 13},
        "hovermode": "closest",
        **more,
    }
