"""The table at the end: cases as rows, connectors as columns."""

from __future__ import annotations

from rich.table import Table

from engines.conformance.case import CASES
from engines.conformance.outcome import FAILED, LEFT_OUT, PASSED, REFUSED
from engines.conformance.summary import Summary

_STYLES = {PASSED: "green", FAILED: "bold red", REFUSED: "yellow", LEFT_OUT: "dim"}


def outcome_table(summary: Summary) -> Table:
    """Return the outcomes of all connectors that the summary has."""
    table = Table(title="KV connectors: outcome of each case", title_justify="left")
    table.add_column("case")
    for connector in summary.connectors:
        table.add_column(connector)
    for name in CASES:
        cells = []
        for connector in summary.connectors:
            outcome = summary.of(connector).get(name)
            result = outcome.result if outcome is not None else ""
            cells.append(f"[{_STYLES[result]}]{result}[/]" if result else "")
        if any(cells):
            table.add_row(name, *cells)
    return table
