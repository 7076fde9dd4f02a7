"""The designs as they were played on the packet-level emulator, each beside its simulation."""

from __future__ import annotations

from typing import Any

from commands.intervals import Interval
from experiments.study import figures
from experiments.study.panels.panel import TAIL, TTFT, Panel
from experiments.study.played import (
    DESIGNS,
    MEAN_S,
    P99_S,
    PLAYED,
    SIMULATED,
    Live,
    complaints,
    figure_of,
    gains,
    values,
)
from experiments.study.table import Table

TIMES = tuple(f"{world}_{figure}_s" for figure in ("mean", "p99") for world in ("live", "simulated"))


def live(found: Live) -> Panel:
    """Means and p99 live and simulated, and what each design gains in both."""
    means, tails = _by_world(found, MEAN_S), _by_world(found, P99_S)
    kept_up = complaints(found)
    return Panel(
        "The designs live",
        [figures.dots(what, mine) for what, mine in ((TTFT, means), (TAIL, tails))],
        live_table(found),
        f"The machine did not keep up in {len(kept_up)} plays: {'; '.join(kept_up)}." if kept_up else "",
    )


def live_table(found: Live) -> Table:
    """Return each design that was played; of one play no interval."""
    columns = (
        "design", "seeds", *TIMES, "against", "live_sooner", "live_p99_sooner", "simulated_sooner",
        "simulated_p99_sooner",
    )  # fmt: skip
    gained = {gain.design.label: gain for gain in gains(found)}
    rows: list[tuple[Any, ...]] = []
    for key, design in DESIGNS.items():
        seeds = values(found, key, PLAYED, MEAN_S)
        if not seeds:
            continue
        gain = gained.get(design.label)
        rows.append(
            (
                design.label,
                len(seeds),
                *(
                    figure_of(found, key, world, figure)
                    for figure in (MEAN_S, P99_S)
                    for world in (PLAYED, SIMULATED)
                ),
                DESIGNS[design.against].label if design.against else "",
                *((gain.live, gain.tail, gain.simulated, gain.simulated_tail) if gain else 4 * (None,)),
            )
        )
    return Table("live", columns, tuple(rows))


def _by_world(found: Live, figure: str) -> dict[str, dict[str, Interval]]:
    """Live and simulated -> design -> figure."""
    made: dict[str, dict[str, Interval]] = {}
    for world in (PLAYED, SIMULATED):
        mine = {design.label: figure_of(found, key, world, figure) for key, design in DESIGNS.items()}
        made[world] = {label: value for label, value in mine.items() if value is not None}
    return made
