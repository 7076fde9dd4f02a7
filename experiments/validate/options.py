"""Options of make validate."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from pydantic.dataclasses import dataclass

from commands.declarations import DECLARED, Existing, OneOf, Within
from commands.options import read

PARTS = ("all", "literature", "emulator", "drawn")


@dataclass(frozen=True, slots=True, kw_only=True, config=DECLARED)
class ValidateOptions:
    """What is compared."""

    part: Annotated[str, OneOf(PARTS)] = "all"
    """Which tables."""
    trace: Annotated[Path | None, Existing()] = None
    """Mooncake's conversation trace; without it, what needs it is left out."""
    requests: Annotated[int | None, Within(1, 100_000)] = None
    """Requests of the star's slice of the trace."""
    scale: Annotated[float, Within(1, 1e9)] = 20_000.0
    """Sigma of the emulator."""
    drawn: Annotated[int, Within(0, 10_000)] = 20
    """Scenarios drawn at random, each about a minute; 0: none."""
    first: Annotated[int, Within(0, 1 << 31)] = 1
    """Number of the first one that is drawn; the same number, the same scenario."""
    results: Path = Path("results/validate")
    """Folder for the results."""


def parse_options(arguments: Sequence[str], program: str, description: str) -> ValidateOptions:
    """Options from the command line and the environment; raises OptionError."""
    return read(ValidateOptions, arguments, program, description)
