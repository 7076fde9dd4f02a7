"""Pages of results: HTML files that open offline, with charts, tables to save, and a dark mode.

Charts can be read without colour: each series has a dash, a marker and a pattern of its own (`style`).
"""

from experiments.page.charts import Chart, bar_chart, line_chart
from experiments.page.document import Menu, Page
from experiments.page.report import Section, bars, lines, write_report
from experiments.page.style import SERIES, base_layout, series_style

__all__ = [
    "SERIES", "Chart", "Menu", "Page", "Section", "bar_chart", "bars", "base_layout", "line_chart", "lines",
    "series_style", "write_report",
]  # fmt: skip
