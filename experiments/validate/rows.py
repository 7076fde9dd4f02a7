"""Rows of a validation table: what was expected, what the simulator says, and how far apart they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """One figure in both worlds."""

    what: str
    figure: str
    reference: float
    simulated: float
    tolerance: float | None = None
    """Largest relative deviation that counts as agreement; None: shown without a verdict."""
    scale: float | None = None
    """What the deviation is relative to; default: the reference."""
    note: str = ""

    @property
    def deviation(self) -> float:
        """Signed, relative."""
        whole = self.reference if self.scale is None else self.scale
        return (self.simulated - self.reference) / whole if whole else float(self.simulated != self.reference)

    @property
    def agrees(self) -> bool | None:
        """Whether it is within its tolerance."""
        return None if self.tolerance is None else abs(self.deviation) <= self.tolerance

    @property
    def verdict(self) -> str:
        """For a table."""
        return {True: "yes", False: "**no**", None: ""}[self.agrees]


def markdown(rows: Sequence[Row], reference: str) -> str:
    """A Markdown table of rows; `reference` names the column they are compared with."""
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
    """A number with as many digits as say something."""
    if value and abs(value) < 0.01:
        return f"{value:.2e}"
    return f"{value:,.2f}" if abs(value) < 1000 else f"{value:,.0f}"
