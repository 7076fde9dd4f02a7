"""What `make validate` leaves: the tables as Markdown, and every row in `summary.json`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.run.machine import ADVICE
from experiments.run.result import revision
from experiments.validate.emulator import Comparison
from experiments.validate.rows import Row, markdown


@dataclass(frozen=True, slots=True)
class Section:
    """One table."""

    title: str
    source: str | None
    """Where published figures are from; None: they are the emulator's."""
    rows: tuple[Row, ...]
    text: str
    complaints: tuple[str, ...] = ()
    """Why the emulator's figures don't count."""


def emulated_section(comparison: Comparison) -> Section:
    """One scenario in both worlds."""
    text = markdown(comparison.rows, "emulator")
    if comparison.emulated.overloaded:
        complaints = "; ".join(comparison.emulated.complaints)
        verdict = "**The machine did not keep up, so the emulator's figures don't count**"
        text = f"{text}\n{verdict} ({complaints}). {ADVICE}\n"
    reasons = tuple(f"{comparison.name}: {said}" for said in comparison.emulated.complaints)
    return Section(f"Against the emulator: {comparison.name}", None, comparison.rows, text, reasons)


def drawn_table(comparisons: Sequence[Comparison]) -> str:
    """How many drawn scenarios agree, figure by figure; those that the machine did not keep up with apart."""
    counted = [comparison for comparison in comparisons if not comparison.emulated.overloaded]
    lines = ["| figure | agree | of |", "|---|---:|---:|"]
    for figure in dict.fromkeys(row.figure for comparison in counted for row in comparison.rows):
        verdicts = [
            row.agrees
            for comparison in counted
            for row in comparison.rows
            if row.figure == figure and row.agrees is not None and (row.reference or row.simulated)
        ]
        if verdicts:
            lines.append(f"| {figure} | {sum(verdicts)} | {len(verdicts)} |")
    whole = sum(all(row.agrees is not False for row in comparison.rows) for comparison in counted)
    lines += [
        "",
        f"All figures agree in {whole} of {len(counted)} runs; in {len(comparisons) - len(counted)} more the "
        "machine did not keep up, and they don't count. A tier in which both found nothing is not counted.",
    ]
    return "\n".join(lines) + "\n"


def write(folder: Path, sections: Sequence[Section]) -> None:
    """validation.md and summary.json."""
    folder.mkdir(parents=True, exist_ok=True)
    text = "\n".join(f"### {section.title}\n\n{section.text}" for section in sections)
    (folder / "validation.md").write_text(f"Revision {revision()}\n\n{text}")
    record = {
        "revision": revision(),
        "literature": [
            _literature(section.source, row) for section in sections if section.source for row in section.rows
        ],
        "emulator": [_emulator(row) for section in sections if not section.source for row in section.rows],
    }
    (folder / "summary.json").write_text(json.dumps(record, indent=1) + "\n")


def _literature(source: str, row: Row) -> dict[str, Any]:
    return {
        "source": source,
        "row": row.what,
        "figure": row.figure,
        "published": row.reference,
        "simulated": row.simulated,
        "deviation": row.deviation,
        "fitted": row.fitted,
    }


def _emulator(row: Row) -> dict[str, Any]:
    return {
        "scenario": row.what,
        "figure": row.figure,
        "emulator": row.reference,
        "simulator": row.simulated,
        "deviation": row.deviation,
        "tolerance": row.tolerance,
        "agrees": row.agrees,
    }
