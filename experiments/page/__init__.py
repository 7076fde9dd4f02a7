"""Pages of results: one HTML file that opens offline, with plots (plotly, embedded) and tables to save.

Plots can be told apart without colour: each series has a dash and a marker of its own (`style`).
"""

from experiments.page.document import Choice, Page
from experiments.page.report import Section, bars, lines, write_report
from experiments.page.style import SERIES, base_layout, series_style

__all__ = [
    "SERIES", "Choice", "Page", "Section", "bars", "base_layout", "lines", "series_style", "write_report",
]  # fmt: skip
