"""Options of experiments: command line, environment (as make sets it), defaults; in that order."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from commands.errors import ExperimentError

Options = TypeVar("Options")

QUIET, VERBOSE = -1, 1
"""How much a command says: -q only results, -v what its processes log too, -vv all of it."""

VALUE, FLAG, PLACE = "value", "flag", "place"
"""How an option stands on the command line."""

LIVE_HELP = "1: in a terminal, show links, tiers, pool and decisions while it runs"


class OptionError(ExperimentError):
    """A value that an option does not take; the message says which and what it takes."""


@dataclass(frozen=True, slots=True)
class Option:
    """One option: its environment variable is also its name on the command line, in lower case."""

    variable: str
    parse: Callable[[str], Any]
    default: Any
    help: str
    form: str = VALUE
    """VALUE: with a value behind its name; FLAG: its name alone says yes; PLACE: a value without a name,
    which has to be on the command line."""


def whole(least: int, most: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise OptionError(f"must be a whole number, not {text!r}") from None
        if not least <= value <= most:
            raise OptionError(f"must be from {least} to {most}, not {value}")
        return value

    return parse


def number(least: float, most: float) -> Callable[[str], float]:
    def parse(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            raise OptionError(f"must be a number, not {text!r}") from None
        if not least <= value <= most:
            raise OptionError(f"must be from {least:g} to {most:g}, not {text}")
        return value

    return parse


def one_of(choices: Sequence[str]) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in choices:
            raise OptionError(f"there is no {text!r}: choose one of {', '.join(choices)}")
        return text

    return parse


_YES, _NO = ("1", "yes", "true", "on"), ("0", "no", "false", "off")


def yes_or_no(text: str) -> bool:
    """1, yes, true and on, or 0, no, false and off; OptionError for anything else."""
    said = text.lower()
    if said not in (*_YES, *_NO):
        raise OptionError(f"must be yes or no (1 or 0), not {text!r}")
    return said in _YES


def list_of(parse: Callable[[str], Any]) -> Callable[[str], tuple[Any, ...]]:
    """Values separated by commas, each once."""
    parse_all = each_of(parse)
    return lambda text: tuple(dict.fromkeys(parse_all(text)))


def each_of(parse: Callable[[str], Any], count: int | None = None) -> Callable[[str], tuple[Any, ...]]:
    """So many values separated by commas, one for each of something; None: as many as are given."""

    def parse_all(text: str) -> tuple[Any, ...]:
        parts = text.split(",")
        if count is not None and len(parts) != count:
            raise OptionError(f"must be {count} values, by commas, not {text!r}")
        return tuple(parse(part.strip()) for part in parts)

    return parse_all


METRICS = Option(
    "METRICS", whole(0, 65535), 0, "port on 127.0.0.1 where Prometheus finds metrics of all processes"
)


def parse_into(
    kind: type[Options], options: Sequence[Option], arguments: Sequence[str], program: str, description: str
) -> Options:
    """A dataclass whose fields are `options` in their order; raises OptionError."""
    parser = argparse.ArgumentParser(
        prog=program,
        description=description,
        epilog="Each option is also a variable of make and of the environment: --pool-blocks is POOL_BLOCKS.",
    )
    for option in options:
        _add(parser, option)
    add_verbosity(parser)
    given = vars(parser.parse_args(arguments))
    values = [_value(option, given[option.variable]) for option in options]
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type]  # a dataclass
    return kind(**dict(zip(names, values, strict=True)))


def _add(parser: argparse.ArgumentParser, option: Option) -> None:
    name = "--" + option.variable.lower().replace("_", "-")
    if option.form == PLACE:
        parser.add_argument(option.variable, metavar=option.variable, help=option.help)
    elif option.form == FLAG:
        parser.add_argument(name, dest=option.variable, action="store_const", const=_YES[0], help=option.help)
    else:
        shown = "" if option.default is None else f" (default: {option.default})"
        parser.add_argument(name, dest=option.variable, metavar="X", help=f"{option.help}{shown}")


def add_verbosity(parser: argparse.ArgumentParser) -> None:
    """-v and -q, which every command takes; `verbosity` reads them."""
    parser.add_argument(
        "-v", "--verbose", action="count", default=0, help="also what the processes log; -vv: all of it"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="results, warnings and errors only")


def verbosity(arguments: Sequence[str]) -> int:
    """QUIET, 0, VERBOSE or 2: from the command line, else from the variables QUIET and VERBOSE."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    add_verbosity(parser)
    given, _ = parser.parse_known_args(arguments)
    if given.quiet or given.verbose:
        return QUIET if given.quiet else min(2, given.verbose)
    options = (
        Option("QUIET", yes_or_no, False, ""),
        Option("VERBOSE", lambda text: whole(0, 2)(text) if text.isdigit() else int(yes_or_no(text)), 0, ""),
    )
    quiet, verbose = (_value(option, None) for option in options)
    return QUIET if quiet else int(verbose)


def _value(option: Option, given: str | None) -> Any:
    text = given if given is not None else os.environ.get(option.variable, "")
    if not text:
        return option.default
    try:
        return option.parse(text)
    except OptionError as error:
        raise OptionError(f"{option.variable}: {error}") from None
