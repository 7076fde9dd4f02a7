"""Charts of a page as plain data, which `charts.js` draws in the browser, to its width, light or dark.

The study and the experiment on blocks use plotly for axes and marks that these charts lack. A page may have
both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SCRIPT = (Path(__file__).parent / "charts.js").read_text(encoding="utf-8")
MOST_POINTS = 300
"""Most points of a line: more would not be visible and only make the page larger."""


@dataclass(frozen=True, slots=True)
class Chart:
    """Chart of a kind, "lines" or "bars", with the data that charts.js takes for it."""

    kind: str
    data: Mapping[str, Any] = field(default_factory=dict)


def line_chart(
    title: str,
    x_title: str,
    series: Mapping[str, Sequence[tuple[float, float]]],
    *,
    y_title: str = "",
    log_x: bool = False,
    marks: bool = False,
    hollow: Mapping[str, Sequence[bool]] | None = None,
    marked: Mapping[str, Sequence[tuple[float, float]]] | None = None,
    ticks: Sequence[float] | None = None,
    y_max: float | None = None,
) -> Chart:
    """Return a chart of lines, each with points (x, y) in the order given; the vertical axis begins at 0.

    With `marks`, each point is drawn. `hollow` tells which of them don't count. `marked` has further points.
    The vertical axis ends at `y_max` if it is given.
    """
    drawn = []
    for name, points in series.items():
        thin = list(points) if marks else _thinned(points)
        one: dict[str, Any] = {
            "name": name,
            "x": [_short(x) for x, _ in thin],
            "y": [_short(y) for _, y in thin],
        }
        if hollow and any(hollow.get(name, ())):
            one["hollow"] = list(hollow[name])
        if marked and marked.get(name):
            one["marked"] = [[_short(x), _short(y)] for x, y in marked[name]]
        drawn.append(one)
    return Chart(
        "lines",
        {
            "title": title, "x": x_title, "y": y_title, "log": log_x, "marks": marks, "series": drawn,
            "ticks": None if ticks is None else list(ticks), "most": y_max,
        },
    )  # fmt: skip


def bar_chart(
    title: str, labels: Sequence[str], series: Mapping[str, Sequence[float]], *, stacked: bool = False
) -> Chart:
    """Return a chart of horizontal bars with their values, from top to bottom in the order of the labels."""
    drawn = [{"name": name, "values": [_short(value) for value in values]} for name, values in series.items()]
    return Chart("bars", {"title": title, "labels": list(labels), "series": drawn, "stacked": stacked})


def _thinned(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return at most MOST_POINTS of the points, evenly spaced, with the last one."""
    if len(points) <= MOST_POINTS:
        return list(points)
    last = len(points) - 1
    return [points[round(last * number / (MOST_POINTS - 1))] for number in range(MOST_POINTS)]


def _short(value: float) -> float:
    """Return a value with four digits, which is finer than a pixel."""
    return float(f"{value:.4g}")
