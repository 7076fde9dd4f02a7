"""The plots of the report, with an interval for every value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from statistics import quantiles
from textwrap import wrap

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from commands.intervals import Interval
from experiments.page import SERIES, base_layout, series_style

Plot = tuple[go.Figure, str]
"""A figure, and a description for readers who cannot see it."""
Series = Mapping[str, tuple[Sequence[float], Sequence[Interval]]]
"""Values of x, and of y with intervals, by the name of the series."""
NAME_CHARACTERS = 48
"""Largest number of characters in a line of a name beside a plot; longer names are wrapped."""
TITLE_CHARACTERS = 40
"""Largest number of characters in a line of an axis title beside a plot."""
FAR_OUT = 3.0
"""Distance beyond a quartile, in interquartile ranges, from which on a value is far out.

The rule is Tukey's (Exploratory Data Analysis, 1977). A value that is far out would leave no room for the
others; it stands at the edge of its plot as a number.
"""
LEAST_VALUES = 8
"""Number of values below which none is far out, because quartiles of so few say little."""
NEAR_MEDIAN = 0.1
"""Share of the median within which a value is never far out, however close together most values lie."""


def dots(what: str, values: Mapping[str, Mapping[str, Interval]]) -> Plot:
    """Return a plot of series -> name -> value: a line of dots for each name, the first on top."""
    names = list(dict.fromkeys(name for series in values.values() for name in series))
    figure = go.Figure(
        layout=base_layout(xaxis_title=what, height=150 + 26 * len(names), yaxis_automargin=True)
    )
    for number, (series, mine) in enumerate(values.items()):
        style = series_style(number)
        figure.add_scatter(
            x=[value.mean for value in mine.values()],
            y=[_wrapped(name) for name in mine],
            error_x={"array": halves(mine.values()), "visible": True, "thickness": 1.2},
            mode="markers",
            marker=style["marker"],
            name=series,
        )
    order = [_wrapped(name) for name in names[::-1]]
    figure.update_yaxes(categoryorder="array", categoryarray=order, tickfont_size=11)
    figure.update_layout(showlegend=len(values) > 1)
    return figure, f"{what}: {', '.join(names)}"


def columns(
    values: Mapping[str, Mapping[str, Interval]], kinds: Mapping[str, Sequence[str]] | None = None
) -> Plot:
    """Return plots of title -> name -> value side by side, each with its own axis, and the names once.

    `kinds` are names by kind: each kind has a colour and is in the legend; without it all look alike.
    """
    names = list(dict.fromkeys(name for mine in values.values() for name in mine))
    of_kind = kinds or {"": names}
    # With update_layout, plotly would merge two templates key by key, which takes a fifth of a second.
    figure = go.Figure(layout=base_layout(height=190 + 29 * len(names), showlegend=kinds is not None))
    make_subplots(rows=1, cols=len(values), shared_yaxes=True, horizontal_spacing=0.02, figure=figure)
    for number, (what, mine) in enumerate(values.items(), 1):
        low, high = near([value.mean for value in mine.values()])
        inside = {name: value for name, value in mine.items() if low <= value.mean <= high}
        for style, (kind, members) in enumerate(of_kind.items()):
            drawn = {name: inside[name] for name in members if name in inside}
            figure.add_scatter(
                x=[value.mean for value in drawn.values()],
                y=[_wrapped(name) for name in drawn],
                error_x={"array": halves(drawn.values()), "visible": True, "thickness": 1.2},
                mode="markers",
                marker=series_style(style)["marker"],
                name=kind,
                legendgroup=kind,
                showlegend=number == 1,
                row=1,
                col=number,
            )
        for name, value in mine.items():
            if name not in inside:
                _at_the_edge(figure, number, name, value, value.mean > high)
        figure.update_xaxes(title_text=what, title_font_size=12, nticks=5, row=1, col=number)
    order = [_wrapped(name) for name in names[::-1]]
    figure.update_yaxes(categoryorder="array", categoryarray=order, tickfont_size=10, automargin=True)
    figure.update_yaxes(showgrid=True, gridcolor="#eee")
    return figure, f"{'; '.join(values)}: {', '.join(names)}".replace("<br>", " ")


def near(values: Sequence[float]) -> tuple[float, float]:
    """Return the bounds beyond which a value is far out."""
    if len(values) < LEAST_VALUES:
        return min(values), max(values)
    first, middle, third = quantiles(values, n=4)
    reach, beside = FAR_OUT * (third - first), NEAR_MEDIAN * abs(middle)
    return min(first - reach, middle - beside), max(third + reach, middle + beside)


def _at_the_edge(figure: go.Figure, number: int, name: str, value: Interval, beyond: bool) -> None:
    """Write a value that is far out as a number at the edge of the plot."""
    figure.add_annotation(
        xref=f"x{number} domain" if number > 1 else "x domain",
        yref="y",
        x=1 if beyond else 0,
        xanchor="right" if beyond else "left",
        y=_wrapped(name),
        text=f"{value.mean:.3g} \u2192" if beyond else f"\u2190 {value.mean:.3g}",
        showarrow=False,
        font_size=10,
    )


def _wrapped(name: str) -> str:
    return "<br>".join(wrap(name, NAME_CHARACTERS)) or name


def lines(what: str, x_title: str, series: Series, log_x: bool = False, even: float | None = None) -> Plot:
    """Return a plot with one line for each series, with intervals.

    `even` is a value to mark, from which others differ; without it, the axis begins at 0.
    """
    figure = go.Figure(
        layout=base_layout(yaxis_title="<br>".join(wrap(what, TITLE_CHARACTERS)), xaxis_title=x_title)
    )
    figure.update_layout(showlegend=True)
    if even is None:
        figure.update_yaxes(rangemode="tozero")
    else:
        figure.add_hline(y=even, line_dash="dot")
    for number, (name, (xs, ys)) in enumerate(series.items()):
        figure.add_scatter(
            x=list(xs),
            y=[y.mean for y in ys],
            error_y={"array": halves(ys), "visible": True, "thickness": 1.2},
            name=name,
            mode="lines+markers",
            **series_style(number),
        )
    if log_x:
        ticks = sorted({x for xs, _ in series.values() for x in xs})
        figure.update_xaxes(type="log", tickvals=ticks)
    return figure, f"{what} over {x_title}"


def swings(what: str, rows: Sequence[tuple[str, Interval, Interval]], base: tuple[str, Interval]) -> Plot:
    """Return a tornado: the values with each assumption halved and doubled, the widest on
    top, below the base."""
    assumed, value = base
    names = [assumed, *(name for name, _, _ in rows)]
    figure = go.Figure(layout=base_layout(xaxis_title=what, height=190 + 26 * len(rows), barmode="group"))
    figure.add_scatter(
        x=[value.mean],
        y=[assumed],
        error_x={"array": halves([value]), "visible": True, "thickness": 1.2},
        mode="markers",
        marker={"color": "#111", "symbol": "line-ns-open", "size": 14},
        name=assumed,
    )
    for number, word in enumerate(("halved", "doubled")):
        values = [high if number else low for _, low, high in rows]
        style = SERIES[number]
        figure.add_scatter(
            x=[value.mean for value in values],
            y=names[1:],
            error_x={"array": halves(values), "visible": True, "thickness": 1.2},
            mode="markers",
            marker={"color": style.colour, "symbol": style.marker, "size": 9},
            name=word,
        )
    for name, low, high in rows:
        figure.add_shape(type="line", y0=name, y1=name, x0=low.mean, x1=high.mean, line_color="#8888")
    figure.update_yaxes(categoryorder="array", categoryarray=names[::-1], tickfont_size=11, automargin=True)
    figure.add_vline(x=0, line_dash="dot")
    return figure, f"{what}, for each of {', '.join(names)} halved and doubled"


def scatter(
    what: str, y_title: str, groups: Mapping[str, Sequence[tuple[float, Interval, str]]], zero: bool = False
) -> Plot:
    """Return a plot of group -> points (x, y with its interval, hover text); `zero` draws a line at y = 0.

    A group looks the same in all plots with the same groups, which may have no points.
    """
    figure = go.Figure(layout=base_layout(xaxis_title=what, yaxis_title=y_title))
    for number, (name, points) in enumerate(groups.items()):
        if not points:
            continue
        figure.add_scatter(
            x=[point[0] for point in points],
            y=[point[1].mean for point in points],
            error_y={"array": halves(point[1] for point in points), "visible": True, "thickness": 1.2},
            hovertext=[point[2] for point in points],
            hoverinfo="text",
            mode="markers",
            marker=series_style(number)["marker"],
            name=name,
        )
    figure.update_xaxes(type="log")
    if zero:
        figure.add_hline(y=0, line_dash="dot")
    return figure, f"{y_title} over {what}"


def halves(values: Iterable[Interval]) -> list[float]:
    """Return half intervals for error bars; one run has no finite interval and gets 0."""
    return [value.half if isfinite(value.half) else 0.0 for value in values]
