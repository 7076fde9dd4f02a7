"""Rows: deviations, verdicts, the table."""

import pytest

from experiments.validate.rows import Row, figure, markdown


def test_a_deviation_is_relative_to_the_reference() -> None:
    assert Row("a", "b", 2.0, 2.2, 0.10).deviation == pytest.approx(0.1)
    assert Row("a", "b", 10, 8, 0.02).deviation == pytest.approx(-0.2)
    assert Row("a", "b", 0, 0, 0.1).agrees is True
    assert Row("a", "b", 0, 1, 0.1).agrees is False
    assert Row("a", "b", 1, 9).agrees is None


def test_a_figure_that_a_parameter_was_fitted_to_has_no_verdict() -> None:
    row = Row("a", "b", 2.0, 2.0, 0.1, fitted=True)
    assert row.agrees is None
    assert "| fitted |" in markdown([row], "published")


def test_the_table_shows_what_does_not_agree_and_why() -> None:
    rows = [
        Row("one", "TTFT", 10.0, 20.0, 0.1, note="because"),
        Row("two", "TTFT", 10.0, 10.5, 0.1, note="because"),
    ]
    text = markdown(rows, "published")
    assert "| one | TTFT | 10.00 | 20.00 | +100.0% | 10% | **no** |" in text
    assert "| two | TTFT | 10.00 | 10.50 | +5.0% | 10% | yes |" in text
    assert text.count("- because") == 1


def test_figures_have_useful_digits() -> None:
    assert [figure(value) for value in (0.0, 0.00123, 1.5, 12345.6)] == ["0.00", "1.23e-03", "1.50", "12,346"]
