"""Style of pages, light and dark.

Colours are distinct for colour-blind readers; dashes, markers and patterns for readers who see no colours.
"""

from __future__ import annotations

from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple


class Series(NamedTuple):
    """Looks of one series."""

    colour: str
    dash: str
    marker: str
    pattern: str
    """Pattern of a filled bar."""
    dark: str
    """Colour on a dark page."""


# Colours: Okabe and Ito, "Color Universal Design" (2008).
SERIES = (
    Series("#0072b2", "solid", "circle", "", "#58b0f0"),
    Series("#d55e00", "dash", "square", "/", "#ff8a3c"),
    Series("#009e73", "dot", "diamond", "x", "#2fcf9f"),
    Series("#cc79a7", "dashdot", "cross", ".", "#e79ac6"),
    Series("#e69f00", "longdash", "triangle-up", "\\", "#f2b632"),
    Series("#56b4e9", "longdashdot", "star", "-", "#8fd0f7"),
    Series("#000000", "solid", "x", "|", "#f0f0f0"),
)


_DASHES = {
    "solid": "", "dash": "7 4", "dot": "2 3", "dashdot": "7 3 2 3", "longdash": "11 5",
    "longdashdot": "11 4 2 4",
}  # fmt: skip
_PATTERN_NAMES = {
    "": "plain",
    "/": "slash",
    "x": "cross",
    ".": "dots",
    "\\": "back",
    "-": "level",
    "|": "upright",
}
_PATTERN_PATHS = {
    "plain": "", "slash": "M-1 7 7-1M-1 1 1-1M5 7 7 5", "cross": "M0 0 6 6M6 0 0 6",
    "dots": "M2 2h1.6v1.6h-1.6z",
    "back": "M-1-1 7 7M-1 5 1 7M5-1 7 1", "level": "M0 3H6", "upright": "M3 0V6",
}  # fmt: skip
SERIES_STYLES = [
    {"dash": _DASHES[one.dash], "marker": one.marker, "pattern": _PATTERN_NAMES[one.pattern]}
    for one in SERIES
]
"""Looks of each series, as charts.js takes them."""
PATTERNS = (
    '<svg width="0" height="0" aria-hidden="true" style="position:absolute"><defs>'
    + "".join(
        f'<pattern id="weir-{name}" width="6" height="6" patternUnits="userSpaceOnUse">'
        f'<path d="{path}" class="hatch"/></pattern>'
        for name, path in _PATTERN_PATHS.items()
    )
    + "</defs></svg>"
)
"""Definitions in SVG of the patterns that are drawn over the colours of bars."""


def _colours(dark: bool) -> str:
    return "".join(f"--s{n}:{one.dark if dark else one.colour};" for n, one in enumerate(SERIES))


_SERIES_RULES = "".join(
    f".s{n}{{fill:var(--s{n});stroke:none}}.line.s{n},.mark.s{n}{{stroke:var(--s{n})}}"
    for n in range(len(SERIES))
)

_CSS = (Path(__file__).parent / "style.css").read_text(encoding="utf-8")
_DARK = "@media (prefers-color-scheme: dark)"
STYLE = f":root{{{_colours(False)}}}{_DARK}{{:root{{{_colours(True)}}}}}{_CSS}{_SERIES_RULES}"


@cache
def _template() -> dict[str, Any]:
    """Return plotly's template simple_white with visible lines across a plot, as an object of JSON.

    Those lines have no width in the original. It is JSON because a page's own scripts are given it too.
    """
    import plotly.io as pio

    template: dict[str, Any] = deepcopy(pio.templates["simple_white"].to_plotly_json())
    template["layout"]["shapedefaults"] = {"line": {"width": 1, "color": "#555"}, "opacity": 1}
    return template


def series_style(number: int) -> dict[str, Any]:
    """Return line and marker of the series with that number, as plotly's scatter takes them."""
    style = SERIES[number % len(SERIES)]
    return {
        "line": {"color": style.colour, "dash": style.dash, "width": 2},
        "marker": {"color": style.colour, "symbol": style.marker, "size": 7},
    }


def base_layout(**more: Any) -> dict[str, Any]:
    """Return a layout of plotly that also fits a narrow screen; `more` has further fields of it."""
    return {
        "template": _template(),
        "margin": {"l": 56, "r": 12, "t": 64, "b": 48},
        "legend": {"orientation": "h", "traceorder": "normal", "yanchor": "bottom", "y": 1.0, "x": 0},
        "title": {"y": 0.98, "yanchor": "top", "font": {"size": 15}},
        "font": {"family": "system-ui, sans-serif", "size": 13},
        "hovermode": "closest",
        **more,
    }
