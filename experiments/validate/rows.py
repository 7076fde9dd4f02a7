"""Rows of a validation table: a reference figure, the simulator's, and how far apart they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """One figure of the reference and of the simulator."""

    what: str
    figure: str
    reference: float
    simulated: float
    tolerance: float | None = None
    """Largest relative deviation that counts as agreement; None: shown without a verdict."""
    note: str = ""
    fitted: bool = False
    """Whether a parameter was chosen by this figure, so that it says nothing about the model
    and has no verdict."""

    @property
    def deviation(self) -> float:
        """Return the deviation relative to the reference, with its sign."""
        if not self.reference:
            return float(self.simulated != self.reference)
        return (self.simulated - self.reference) / self.reference

    @property
    def agrees(self) -> bool | None:
        """Return whether it is within its tolerance; None without a verdict."""
        return None if self.tolerance is None or self.fitted else abs(self.deviation) <= self.tolerance

    @property
    def verdict(self) -> str:
        """Return the verdict for a table."""
        return "fitted" if self.fitted else {True: "yes", False: "**no**", None: ""}[self.agrees]


def markdown(rows: Sequence[Row], reference: str) -> str:
    """Return a Markdown table of rows; `reference` names the column they are compared with."""
    lines = [
        f"| scenario | figure | {reference} | simulator | deviation | tolerance | agrees |",
        "|---|---|---:|---:|---:|---:|---|",
    ]
    for row in rows:
        tolerance = "" if row.tolerance is None else f"{row.tolerance:.0%}"
        lines.append(
            f"| {row.what} | {row.figure} | {figure(row.reference)} | {figure(row.simulated)} "
            f"| {row.deviation:+.1%} | {tolerance} | {row.verdict} |"
        )
    notes = dict.fromkeys(row.note for row in rows if row.note)
    return "\n".join([*lines, "", *(f"- {note}" for note in notes)]).rstrip() + "\n"


def figure(value: float) -> str:
    """Return a number in text, with as many digits as are significant."""
    if value and abs(value) < 0.01:
        return f"{value:.2e}"
    return f"{value:,.2f}" if abs(value) < 1000 else f"{value:,.0f}"
