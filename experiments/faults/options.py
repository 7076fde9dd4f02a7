"""Options of the experiment on faults."""

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
    """Options of `make faults`, which kills, stops and cuts off parts of a network under load."""

    cases: tuple[Annotated[str, OneOf(CASES)], ...] = tuple(CASES)
    """Faults to cause."""
    topologies: Annotated[tuple[Annotated[str, OneOf(TOPOLOGIES)], ...], Variable("TOPOS")] = TOPOLOGIES
    """Topologies on which to run the cases."""
    seconds: Annotated[float, Within(3, 600)] = 8.0
    """Seconds of load for each fault, which happens in the second third."""
    rate_per_s: Annotated[float, Within(1, 1000), Variable("RATE")] = 25.0
    """Operations a second of each node."""
    fragments: Annotated[int, Within(1, 256)] = 16
    """Fragments of 512 bytes in a block."""
    seed: Annotated[int, Within(0, 2**31)] = 1
    """Seed of the load."""
    results: Path = Path("results/faults")
    """Folder for summary.json."""


def parse_options(arguments: Sequence[str], program: str, description: str) -> FaultsOptions:
    """Read the options from the command line and the environment; raises OptionError."""
    return read(FaultsOptions, arguments, program, description)
