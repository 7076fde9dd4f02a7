"""Pages of results: one HTML file that opens offline, with charts, tables to save, and a dark side.

Charts can be told apart without colour: each series has a dash, a marker and a pattern of its own (`style`).
"""

from experiments.page.charts import Chart, bar_chart, line_chart
from experiments.page.document import Choice, Page
from experiments.page.report import Section, bars, lines, write_report
from experiments.page.style import SERIES, base_layout, series_style

__all__ = [
    "SERIES", "Chart", "Choice", "Page", "Section", "bar_chart", "bars", "base_layout", "line_chart", "lines",
    "series_style", "write_report",
]  # fmt: skip
