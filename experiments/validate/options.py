"""Options of make validate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from commands.options import Option, number, one_of, parse_into, whole

PARTS = ("all", "literature", "emulator", "drawn")


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidateOptions:
    """What is compared."""

    part: str
    trace: Path | None
    requests: int | None
    scale: float
    drawn: int
    first: int
    results: Path


_OPTIONS = (
    Option("PART", one_of(PARTS), "all", "which tables"),
    Option("TRACE", Path, None, "Mooncake's conversation trace; without it, what needs it is left out"),
    Option("REQUESTS", whole(1, 100_000), None, "requests of the star's slice of the trace"),
    Option("SCALE", number(1, 1e9), 20_000.0, "sigma of the emulator"),
    Option("DRAWN", whole(0, 10_000), 20, "scenarios drawn at random, each about a minute; 0: none"),
    Option(
        "FIRST",
        whole(0, 1 << 31),
        1,
        "number of the first one that is drawn; the same number, the same scenario",
    ),
    Option("RESULTS", Path, Path("results/validate"), "folder for the results"),
)


def parse_options(arguments: Sequence[str], program: str, description: str) -> ValidateOptions:
    """Options from the command line and the environment; raises OptionError."""
    return parse_into(ValidateOptions, _OPTIONS, arguments, program, description)
