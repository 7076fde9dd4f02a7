"""Verbosity of a command: -q prints only results, -v also what its processes log, -vv all of it."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from os import environ
from typing import Annotated, Final

from pydantic.dataclasses import dataclass

from commands.declarations import DECLARED, PREFIX, Within, keys_of
from commands.errors import OptionError

QUIET: Final = -1
VERBOSE: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True, config=DECLARED)
class Verbosity:
    """Options that every command takes besides its own."""

    quiet: bool = False
    """Print results, warnings and errors only."""
    verbose: Annotated[int, Within(0, 2)] = 0
    """1: also print what the processes log; 2: all of it."""


def add_verbosity(parser: argparse.ArgumentParser) -> None:
    """Add the options -v and -q of every command; `verbosity` reads them."""
    parser.add_argument(
        "-v", "--verbose", action="count", default=0, help="also what the processes log; -vv: all of it"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="results, warnings and errors only")


def verbosity(arguments: Sequence[str]) -> int:
    """Return QUIET, 0, VERBOSE or 2, from the command line, else from WEIR_QUIET and WEIR_VERBOSE."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    add_verbosity(parser)
    given, _ = parser.parse_known_args(arguments)
    if given.quiet or given.verbose:
        return QUIET if given.quiet else min(2, given.verbose)
    levels = dict.fromkeys(("QUIET", "VERBOSE"), 0)
    for key in keys_of(Verbosity):
        text = environ.get(PREFIX + key.variable, "").strip()
        if text:
            try:
                levels[key.variable] = int(key.from_text(text))
            except ValueError as error:
                raise OptionError(f"{key.variable}: {error}") from None
    return QUIET if levels["QUIET"] else levels["VERBOSE"]
