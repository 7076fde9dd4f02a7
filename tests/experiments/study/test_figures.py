"""What the plots of the report show: nothing that would leave no room for the rest, and nothing unsaid."""

import pytest

from commands.intervals import Interval
from experiments.study.figures import columns, lines, near, scatter


def one(value: float) -> Interval:
    return Interval(value, value - 0.01, value + 0.01)


def test_what_is_far_out_stands_at_the_edge_with_its_figure() -> None:
    values = {f"system {number}": one(0.9 + number / 100) for number in range(10)} | {"far": one(22.4)}
    figure, _ = columns({"seconds": values})
    drawn = [name for trace in figure.data for name in trace.y]
    assert "far" not in drawn
    assert len(drawn) == 10
    (note,) = figure.layout.annotations
    assert (note.y, note.text) == ("far", "22.4 →")
    assert "far" in figure.layout.yaxis.categoryarray


def test_of_few_values_and_of_close_ones_none_is_far_out() -> None:
    assert near([1.0, 2.0, 40.0]) == (1.0, 40.0)
    low, high = near([1.0] * 9 + [0.93, 1.05])
    assert low <= 0.93
    assert high >= 1.05
    assert near([1.0] * 9 + [5.0])[1] == pytest.approx(1.1)


def test_each_kind_has_its_colour_in_every_column() -> None:
    values = {"a": one(1.0), "b": one(2.0), "c": one(3.0)}
    figure, _ = columns({"mean": values, "p99": values}, {"first": ["a", "c"], "second": ["b"]})
    colours = {(trace.name, name): trace.marker.color for trace in figure.data for name in trace.y if trace.y}
    assert colours["first", "a"] == colours["first", "c"] != colours["second", "b"]
    assert [trace.name for trace in figure.data if trace.showlegend] == ["first", "second"]


def test_a_group_looks_the_same_whoever_else_has_points() -> None:
    point = (10.0, one(1.0), "somewhere")
    both, _ = scatter("nodes", "lead", {"sure": [point], "open": [point]})
    alone, _ = scatter("nodes", "lead", {"sure": [], "open": [point]})
    assert [trace.name for trace in alone.data] == ["open"]
    assert alone.data[0].marker == both.data[1].marker


def test_a_long_title_beside_a_plot_is_broken_into_lines_and_one_series_is_named() -> None:
    what = "$ an hour in the second half: waiting saved, less what the pool costs more"
    figure, text = lines(what, "nodes", {"pool": ([1.0, 2.0], [one(1.0), one(2.0)])}, even=0.0)
    assert max(map(len, figure.layout.yaxis.title.text.split("<br>"))) <= 40
    assert figure.layout.yaxis.title.text.replace("<br>", " ") == what
    assert text == f"{what} over nodes"
    assert figure.layout.showlegend
    assert [shape.y0 for shape in figure.layout.shapes] == [0.0]
