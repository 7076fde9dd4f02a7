"""Options of make faults."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from commands.options import Option, list_of, number, one_of, parse_into, whole
from emulator.result import ROOT
from experiments.faults.cases import CASES

TOPOLOGIES = ("star", "leafspine")


@dataclass(frozen=True, slots=True)
class Options:
    """What one `make faults` plays."""

    cases: tuple[str, ...]
    topologies: tuple[str, ...]
    seconds: float
    rate_per_s: float
    fragments: int
    seed: int
    results: Path


_OPTIONS = (
    Option("CASES", list_of(one_of(tuple(CASES))), tuple(CASES), "faults, separated by commas"),
    Option("TOPOS", list_of(one_of(TOPOLOGIES)), TOPOLOGIES, "topologies, separated by commas"),
    Option("SECONDS", number(3, 600), 8.0, "of load a case; the fault is in the second third"),
    Option("RATE", number(1, 1000), 25.0, "operations a second and node"),
    Option("FRAGMENTS", whole(1, 256), 16, "of 512 bytes, in a block"),
    Option("SEED", whole(0, 2**31), 1, "of the load"),
    Option("RESULTS", Path, ROOT / "results" / "faults", "folder for summary.json"),
)


def parse_options(arguments: Sequence[str], program: str, description: str) -> Options:
    """Raises OptionError."""
    return parse_into(Options, _OPTIONS, arguments, program, description)
