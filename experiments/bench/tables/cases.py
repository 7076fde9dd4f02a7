"""Cases: one program, with one exact match or as a router, with tables of several sizes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from experiments.bench.tables.entries import Content, exact, router

PROGRAM: Final = Path(__file__).with_name("routing.p4")
FRAMES: Final = 4096


@dataclass(frozen=True, slots=True)
class Case:
    """Program and tables to measure."""

    name: str
    title: str
    make: Callable[[int], Content]
    """Function that makes entries and frames from a seed."""
    defines: dict[str, int] = field(default_factory=dict)
    reference: str = ""
    """Name of the case with one exact match that this one is compared with; "" for none."""


CASES: Final = (
    Case("exact", "one exact match, 10,000 entries", lambda seed: exact(10_000, FRAMES, seed), {"EXACT": 1}),
    Case(
        "router",
        "10,000 routes, 500 ternary rules",
        lambda seed: router(10_000, 500, FRAMES, seed),
        reference="exact",
    ),
    Case(
        "exact-large",
        "one exact match, 100,000 entries",
        lambda seed: exact(100_000, FRAMES, seed),
        {"EXACT": 1, "ROUTES": 100_000},
    ),
    Case(
        "routes-large",
        "100,000 routes, 500 ternary rules",
        lambda seed: router(100_000, 500, FRAMES, seed),
        {"ROUTES": 100_000},
        "exact-large",
    ),
    Case(
        "rules-large",
        "10,000 routes, 100,000 ternary rules",
        lambda seed: router(10_000, 100_000, FRAMES, seed),
        {"RULES": 100_000},
        "exact-large",
    ),
)
ON_PORTS: Final = tuple(case.name for case in CASES)
COMPARED_WITH_BMV2: Final = ("exact", "router")
"""Cases on veth cables that BMv2 runs too; it compares a packet with each ternary entry in turn."""
INSERTS: Final = "router"
"""Name of the case whose entries are written in Writes of several sizes."""
BATCHES: Final = {1: 2000, 20: 20_000, 256: 20_000, 1000: 20_000}
"""Most entries that are written, by entries a Write."""
