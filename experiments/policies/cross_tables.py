"""Tables of CROSS: seconds saved by the policy and by Belady, over those of the best baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import fmean

from rich.console import Console
from rich.table import Table

from experiments.policies.compare import TOLERANCE
from experiments.policies.cross import CANDIDATES, HeldOut
from experiments.policies.results_json import write_json


def print_cross(console: Console, held_out: Sequence[HeldOut]) -> None:
    """Print the table, the candidate constants, and a sentence for each source."""
    console.print(_table(held_out))
    for number, candidate in enumerate(CANDIDATES):
        console.print(f"constants {number}: {candidate}", highlight=False)
    for source in dict.fromkeys(row.source for row in held_out):
        rows = [row for row in held_out if row.source == source]
        console.print(f"{source}: {_in_words(rows)}", highlight=False)


def _table(held_out: Sequence[HeldOut]) -> Table:
    table = Table(title="saved s, reuse / best baseline: constants chosen on all other sources")
    columns = (
        *("source", "family", "blocks", "saved", "95 %", "against", "worst trace", "as shipped"),
        *("block hits", "Belady", "constants"),
    )
    for name in columns:
        table.add_column(name, justify="left" if name in ("source", "family", "against") else "right")
    for row in held_out:
        table.add_row(
            row.source,
            row.family,
            f"{row.blocks:,}",
            f"{row.saved:.3f}",
            f"{row.low:.3f} to {row.high:.3f}",
            row.against,
            *(f"{value:.3f}" for value in (row.worst, row.shipped, row.hits, row.belady)),
            str(row.candidate),
        )
    return table


def _in_words(rows: Sequence[HeldOut]) -> str:
    least = min(rows, key=lambda row: row.saved)
    behind = sum(row.saved < 1.0 - TOLERANCE for row in rows)
    return (
        f"{fmean(row.saved for row in rows):.3f} on average, at worst {least.saved:.3f} "
        f"({least.family}, {least.blocks:,} blocks); {behind} of {len(rows)} rows are more than "
        f"{100 * TOLERANCE:g} % below the best baseline"
    )


def write_cross(path: Path, held_out: Sequence[HeldOut], about: Mapping[str, object]) -> None:
    """Write `about` and all rows as JSON; an unknown interval is null."""
    candidates = [asdict(candidate) for candidate in CANDIDATES]
    write_json(path, {**about, "candidates": candidates, "held_out": [asdict(row) for row in held_out]})
