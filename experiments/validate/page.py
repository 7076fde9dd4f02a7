"""The page results/validate/report.html."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from emulator.result import revision
from experiments.page import Section, bars, write_report
from experiments.validate.rows import Row, figure
from scenario import Scenario
from simulator.compiled import engine

SEED = Scenario().workload.seed
_TITLES = ("scenario", "figure", "reference", "simulator", "deviation, %", "tolerance, %", "agrees")


def write_page(
    folder: Path,
    tables: Sequence[tuple[str, Sequence[Row]]],
    seed: object = SEED,
    complaints: Sequence[str] | None = None,
) -> Path:
    """Write the page with one section for each table, and return its path.

    `tables` have their titles. `complaints` are those of the emulator, or None if it was not used.
    """
    sections = [_section(number, title, rows) for number, (title, rows) in enumerate(tables, 1)]
    played = engine() if complaints is None else f"{engine()}, and the emulator with the embedded switch"
    about = {"seed": seed, "revision": revision(), "engine": played}
    return write_report(folder, "make validate: the simulator against others", about, sections, complaints)


def _section(number: int, title: str, rows: Sequence[Row]) -> Section:
    judged = [row for row in rows if row.agrees is not None]
    deviations = {"deviation": [100 * row.deviation for row in judged]}
    labels = [f"{row.what}, {row.figure}" for row in judged]
    plots = [bars("deviation, %", labels, deviations)] if judged else []
    text = f"{sum(bool(row.agrees) for row in judged)} of {len(judged)} figures within tolerance."
    return Section(title, f"table{number}", _TITLES, [_cells(row) for row in rows], plots, text)


def _cells(row: Row) -> list[object]:
    tolerance = "" if row.tolerance is None else 100 * row.tolerance
    compared = (figure(row.reference), figure(row.simulated), 100 * row.deviation)
    return [row.what, row.figure, *compared, tolerance, row.verdict.strip("*")]
