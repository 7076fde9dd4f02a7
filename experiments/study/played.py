"""The designs as they were played live, each beside its simulation as the emulator carries it out.

A record is kept by design and seed ("merging 1"): `played`, `simulated`, or one of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from commands.intervals import Interval, mean_interval
from hostlib.model.gate import ANSWERS, HOMES, SWITCH

RESULTS = Path("results/designs")
RECORDS = "designs.json"
PLAYED, SIMULATED = "played", "simulated"
MEAN_S, P99_S = "mean_s", "p99_s"


@dataclass(frozen=True, slots=True)
class Design:
    """One of those that are compared."""

    label: str
    against: str
    """The design without it."""
    mode: str
    gate: str = "compare"
    hints: str = ANSWERS
    """What the gate knows of homes."""
    coded: bool = False
    push: bool = False
    requests_first: bool = False
    joining: int = 0
    """Nodes that join when half of the requests have come."""
    lends: bool = False
    """Nodes lend one another their DRAM, and there is no storage node."""


FORWARDS, CODED, JOINED, REQUESTS_FIRST, LENT = "no_pool", "coded", "joined", "requests_first", "lent"
DESIGNS = {
    FORWARDS: Design("the switch forwards", "", "no_pool"),
    "ungated": Design("nodes fetch without a gate", FORWARDS, "no_pool", gate="always"),
    "merging": Design("merging alone", FORWARDS, "merging"),
    "pool": Design("merging and pool", FORWARDS, "pool"),
    "asking": Design("homes are asked first", FORWARDS, "no_pool", hints=HOMES),
    "asking_pool": Design("homes are asked first, pool", "asking", "pool", hints=HOMES),
    "told_pool": Design("the switch says what its pool holds", "asking_pool", "pool", hints=SWITCH),
    "push": Design("pool, and hot prefixes pushed", "pool", "pool", push=True),
    JOINED: Design("pool, two of eight nodes join halfway", "", "pool", joining=2),
    "joined_push": Design("the same, and the pool pushes to them", JOINED, "pool", push=True, joining=2),
    CODED: Design("blocks compressed fourfold", FORWARDS, "no_pool", coded=True),
    "coded_pool": Design("blocks compressed fourfold, pool", CODED, "pool", coded=True),
    REQUESTS_FIRST: Design("requests before blocks", FORWARDS, "no_pool", requests_first=True),
    "requests_first_pool": Design(
        "requests before blocks, pool", REQUESTS_FIRST, "pool", requests_first=True
    ),
    "both": Design(
        "both: homes are asked first", REQUESTS_FIRST, "no_pool", hints=HOMES, requests_first=True
    ),
    "both_pool": Design("both, pool", "both", "pool", hints=HOMES, requests_first=True),
    "both_told": Design(
        "both, the switch says what its pool holds", "both_pool", "pool", hints=SWITCH, requests_first=True
    ),
    LENT: Design("nodes lend their DRAM", "", "no_pool", hints=HOMES, lends=True),
    "lent_merging": Design("nodes lend their DRAM, merging alone", LENT, "merging", hints=HOMES, lends=True),
    "lent_pool": Design("nodes lend their DRAM, merging and pool", LENT, "pool", hints=HOMES, lends=True),
}

Live = Mapping[str, Mapping[str, Any]]
"""Records by design and seed."""


def record_name(design: str, seed: int) -> str:
    """That a record is kept by."""
    return f"{design} {seed}"


def read_records(folder: Path) -> dict[str, dict[str, Any]]:
    """Return what is known so far; nothing where nothing was played."""
    path = folder / RECORDS
    found: dict[str, dict[str, Any]] = json.loads(path.read_text()) if path.exists() else {}
    return found


def values(live: Live, design: str, world: str, figure: str) -> dict[int, float]:
    """Return one figure by seed; `world` is PLAYED or SIMULATED."""
    mine = {}
    for name, record in live.items():
        key, _, seed = name.partition(" ")
        part = record.get(world)
        if key == design and part is not None:
            mine[int(seed)] = float(part[figure])
    return mine


def figure_of(live: Live, design: str, world: str, figure: str) -> Interval | None:
    """Return a figure over the seeds that were played; None where there is none."""
    mine, played = values(live, design, world, figure), values(live, design, PLAYED, figure)
    seeds = sorted(mine.keys() & played.keys())
    return mean_interval([mine[seed] for seed in seeds]) if seeds else None


@dataclass(frozen=True, slots=True)
class Gain:
    """How much sooner a design's mean first token is than without it, over the seeds of which both were
    played."""

    design: Design
    live: Interval
    tail: Interval
    """The same of p99, live."""
    simulated: Interval | None
    simulated_tail: Interval | None
    apart: Interval | None
    """Live less simulated, seed by seed. None where the simulator has no such design."""


def gains(live: Live) -> Iterator[Gain]:
    """Of each design that was played beside the one without it."""
    for key, design in DESIGNS.items():
        if not design.against:
            continue
        played, simulated = _sooner(live, key, PLAYED), _sooner(live, key, SIMULATED)
        tails, simulated_tails = (_sooner(live, key, world, P99_S) for world in (PLAYED, SIMULATED))
        both = sorted(played.keys() & simulated.keys())
        if played:
            yield Gain(
                design,
                mean_interval(list(played.values())),
                mean_interval(list(tails.values())),
                mean_interval([simulated[seed] for seed in both]) if both else None,
                mean_interval([simulated_tails[seed] for seed in both]) if both else None,
                mean_interval([played[seed] - simulated[seed] for seed in both]) if both else None,
            )


def _sooner(live: Live, design: str, world: str, figure: str = MEAN_S) -> dict[int, float]:
    """By seed, as a share of the figure without it."""
    mine = values(live, design, world, figure)
    without = values(live, DESIGNS[design].against, world, figure)
    return {seed: 1 - mine[seed] / without[seed] for seed in sorted(mine.keys() & without.keys())}


def complaints(live: Live) -> list[str]:
    """Why plays don't count, each with its name."""
    return [
        f"{name}: {complaint}"
        for name, record in live.items()
        for complaint in (record.get(PLAYED) or {}).get("complaints", ())
    ]
