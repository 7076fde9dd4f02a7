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
    """Comparisons of the simulator with the emulator and with published figures."""

    part: Annotated[str, OneOf(PARTS)] = "all"
    """Tables to make."""
    trace: Annotated[Path | None, Existing()] = None
    """Mooncake's conversation trace; without it, comparisons that need it are left out."""
    requests: Annotated[int | None, Within(1, 100_000)] = None
    """Number of requests of the star's slice of the trace."""
    scale: Annotated[float, Within(1, 1e9)] = 20_000.0
    """Sigma of the emulator."""
    drawn: Annotated[int, Within(0, 10_000)] = 20
    """Number of scenarios drawn at random, which take about a minute each; 0: none."""
    first: Annotated[int, Within(0, 1 << 31)] = 1
    """Number of the first drawn scenario; the same number gives the same scenario."""
    results: Path = Path("results/validate")
    """Folder for the results."""


def parse_options(arguments: Sequence[str], program: str, description: str) -> ValidateOptions:
    """Return the options from the command line and the environment; raises OptionError."""
    return read(ValidateOptions, arguments, program, description)
