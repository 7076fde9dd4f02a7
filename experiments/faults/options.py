"""FaultsOptions of make faults."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from pydantic.dataclasses import dataclass

from commands.declarations import DECLARED, OneOf, Variable, Within
from commands.options import read
from experiments.faults.cases import CASES

TOPOLOGIES = ("star", "leafspine")


@dataclass(frozen=True, slots=True, kw_only=True, config=DECLARED)
class FaultsOptions:
    """What one `make faults` plays."""

    cases: tuple[Annotated[str, OneOf(CASES)], ...] = tuple(CASES)
    """Faults, separated by commas."""
    topologies: Annotated[tuple[Annotated[str, OneOf(TOPOLOGIES)], ...], Variable("TOPOS")] = TOPOLOGIES
    """Topologies, separated by commas."""
    seconds: Annotated[float, Within(3, 600)] = 8.0
    """Of load a case; the fault is in the second third."""
    rate_per_s: Annotated[float, Within(1, 1000), Variable("RATE")] = 25.0
    """Operations a second and node."""
    fragments: Annotated[int, Within(1, 256)] = 16
    """Of 512 bytes, in a block."""
    seed: Annotated[int, Within(0, 2**31)] = 1
    """Of the load."""
    results: Path = Path("results/faults")
    """Folder for summary.json."""


def parse_options(arguments: Sequence[str], program: str, description: str) -> FaultsOptions:
    """Read the options; raises OptionError."""
    return read(FaultsOptions, arguments, program, description)
