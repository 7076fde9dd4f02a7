"""What CROSS found, in tables: what the policy saved of the best baseline, and what there was to be saved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from commands.intervals import mean_interval
from experiments.policies.cross import CANDIDATES, Held
from experiments.policies.replay_cache import EARLY
from experiments.policies.written import write_json
from workload.adversarial import ADVERSARIAL
from workload.services import SERVICES
from workload.shapes import SHAPES

ENOUGH = 1.1
"""Of the best baseline: as much as is wanted of a policy on average."""


def print_cross(console: Console, held: Sequence[Held]) -> None:
    """The tables, then what decides."""
    _print_saved(console, held)
    _print_beyond(console, held)
    for number, candidate in enumerate(CANDIDATES):
        console.print(f"constants {number}: {candidate}", highlight=False)
    for name, rows in (
        ("usual shapes", [row for row in held if row.family in SHAPES]),
        ("mixes of drawn services", [row for row in held if row.family == SERVICES.name]),
        ("adversarial shapes", [row for row in held if row.family in ADVERSARIAL]),
        ("trace", [row for row in held if row.family == "trace"]),
    ):
        if rows:
            console.print(f"{name}: {_in_words(rows)}", highlight=False)


def _print_saved(console: Console, held: Sequence[Held]) -> None:
    table = Table(title="reuse / best baseline of each trace: constants chosen on all other families")
    for name in (
        "family",
        "blocks",
        "saved s",
        "95 %",
        "worst",
        "to one baseline",
        "block hits",
        "as shipped",
        *(f"first {accesses:,}" for accesses in EARLY),
        "best baselines",
        "constants",
    ):
        table.add_column(name, justify="left" if name in ("family", "best baselines") else "right")
    for row in held:
        table.add_row(
            row.family,
            f"{row.blocks:,}",
            f"{row.saved:.3f}",
            f"±{row.saved_interval:.3f}",
            f"{row.worst:.3f}",
            f"{row.in_sum:.3f} ±{row.in_sum_interval:.3f} {row.against}",
            f"{row.hits:.3f}",
            f"{row.shipped:.3f}",
            *(f"{early:.3f} ±{half:.3f}" for early, half in zip(row.early, row.early_interval, strict=True)),
            row.best,
            str(row.candidate),
        )
    console.print(table)


def _print_beyond(console: Console, held: Sequence[Held]) -> None:
    table = Table(title="saved s / best baseline of each trace: what there was to be saved")
    for name in ("family", "blocks", "reuse", "Belady"):
        table.add_column(name, justify="left" if name == "family" else "right")
    for row in held:
        beyond = (row.shipped, row.belady)
        table.add_row(row.family, f"{row.blocks:,}", *(f"{saved:.3f}" for saved in beyond))
    console.print(table)


def _in_words(rows: Sequence[Held]) -> str:
    mean = mean_interval([row.saved for row in rows])
    to_one = mean_interval([row.in_sum for row in rows])
    least = min(rows, key=lambda row: row.saved)
    full = sum(row.belady < ENOUGH for row in rows)
    least_where = f"{least.family}, {least.blocks:,} blocks"
    return (
        f"{mean.mean:.3f} ±{mean.half:.3f} on average, at worst {least.saved:.3f} "
        f"±{least.saved_interval:.3f} ({least_where}), {min(row.worst for row in rows):.3f} on a single "
        f"trace; to the baseline that is best in a row {to_one.mean:.3f} ±{to_one.half:.3f}, at worst "
        f"{min(row.in_sum for row in rows):.3f}; block hits {min(row.hits for row in rows):.3f} at worst; "
        f"in {full} of "
        f"{len(rows)} rows Belady saves less than {ENOUGH:g} of the best baseline"
    )


def write_cross(path: Path, held: Sequence[Held], about: Mapping[str, object]) -> None:
    """All rows as JSON, and `about` them; an interval that is unknown is null."""
    candidates = [asdict(candidate) for candidate in CANDIDATES]
    write_json(path, {**about, "candidates": candidates, "held_out": [asdict(row) for row in held]})
