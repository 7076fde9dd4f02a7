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


def markdown_table(summary: Summary) -> str:
    """Return the same for a page: a row a case, what has to hold in it, and the outcomes."""
    connectors = summary.connectors
    lines = [
        f"| case | what has to hold | {' | '.join(connectors)} |",
        "|---|---|" + "---|" * len(connectors),
    ]
    for case in CASES.values():
        outcomes = [summary.of(connector).get(case.name) for connector in connectors]
        results = [outcome.result if outcome is not None else "" for outcome in outcomes]
        cells = " | ".join(f"**{result}**" if result == FAILED else result for result in results)
        lines.append(f"| `{case.name}` | {case.about} | {cells} |")
    return "\n".join(lines)
