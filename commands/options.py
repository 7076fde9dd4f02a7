"""Options of a command: from a TOML file, WEIR_ variables of the environment, and its command line.

Later sources override earlier ones. An undeclared name is refused, with the nearest declared one as a hint.
make passes variables of its command line on as WEIR_ variables: `make run POOL_BLOCKS=256`.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar

from pydantic import ValidationError

from commands.declarations import PREFIX, Key, Unnamed, keys_of, sentence
from commands.errors import OptionError
from commands.table import known_variables
from commands.verbosity import add_verbosity

Options = TypeVar("Options")
Values = dict[tuple[str, ...], Any]
"""Values by the path of their key."""


@dataclass(frozen=True, slots=True)
class Source:
    """Functions with which a command reads files and completes values."""

    read_file: Callable[[Path], Values]
    """Reads the values of the file that the key SCENARIO names."""
    completed: Callable[[Values], Values] = dict
    """Adds values that follow from others."""
    takes: Callable[[Key], bool] = lambda key: True
    """Whether variables and the command line may give a key; files may give all."""


FILE: Final = "SCENARIO"
"""Variable of the key that names a TOML file."""
YES: Final = "yes"


def read(
    kind: type[Options],
    arguments: Sequence[str],
    program: str,
    description: str,
    source: Source | None = None,
    environment: Mapping[str, str] = os.environ,
) -> Options:
    """Return the options of a command, a declared dataclass.

    `source` says how files are read. Raises OptionError for undeclared names and values out of bounds; ends
    the program after --help.
    """
    keys = tuple(key for key in keys_of(kind) if source is None or source.takes(key))
    layers = [_of_environment(keys, environment), _of_command_line(keys, arguments, program, description)]
    if source is None:
        return build(kind, merged(kind, layers))
    file = next(key for key in keys if key.variable == FILE)
    path = merged(kind, layers).get(file.path, file.default)
    of_file = {} if path is None else source.read_file(path)
    return build(kind, source.completed(merged(kind, [of_file, *layers])))


def merged(kind: type, layers: Sequence[Values]) -> Values:
    """Return the values of all layers; later layers override earlier ones.

    Raises OptionError if one layer gives the same value in two units.
    """
    pairs = [(key, key.instead) for key in keys_of(kind) if key.instead is not None]
    values: Values = {}
    for layer in layers:
        for key, other in pairs:
            if key.path in layer and other in layer:
                raise OptionError(f"{key.name} and {'.'.join(other)} say the same: leave out one of them")
            if key.path in layer:
                values.pop(other, None)
            elif other in layer:
                values.pop(key.path, None)
        values |= layer
    return values


def build(kind: type[Options], values: Values, defaults: Options | None = None) -> Options:
    """Return the dataclass with these values; others are as declared, or as in `defaults`.

    Raises OptionError.
    """
    given: dict[str, Any] = {path[0]: value for path, value in values.items() if len(path) == 1}
    fields = kind.__pydantic_fields__  # type: ignore[attr-defined]  # of every pydantic dataclass
    for entry in dataclasses.fields(kind):  # type: ignore[arg-type]  # a dataclass
        inner = {path[1:]: value for path, value in values.items() if path[0] == entry.name and path[1:]}
        if inner:
            table = fields[entry.name].get_default(call_default_factory=True)
            given[entry.name] = build(type(table), inner, table)
    try:
        if defaults is None:
            return kind(**given)
        return dataclasses.replace(defaults, **given)  # type: ignore[type-var]
    except ValidationError as invalid:
        error = invalid.errors(include_url=False)[0]
        key = {key.path[-1]: key for key in keys_of(kind)}[str(error["loc"][0])]
        raise OptionError(f"{key.variable}: {sentence(key.kind, invalid)}") from None


def _of_environment(keys: Sequence[Key], environment: Mapping[str, str]) -> Values:
    """Return the values of WEIR_ variables; empty ones are ignored."""
    known = {key.variable: key for key in keys}
    values: Values = {}
    for name, text in environment.items():
        if not name.startswith(PREFIX):
            continue
        key = known.get(name.removeprefix(PREFIX))
        if key is not None and text.strip():
            values[key.path] = _parsed(key, text)
        elif key is None and name.removeprefix(PREFIX) not in known_variables():
            near = nearest(name.removeprefix(PREFIX), (*known, *known_variables()))
            raise OptionError(f"{name} in the environment: there is no such variable{_meant(PREFIX, near)}")
    return values


def _of_command_line(keys: Sequence[Key], arguments: Sequence[str], program: str, description: str) -> Values:
    usage = f"{program} [OPTION...]" + "".join(f" [{key.variable}]" for key in keys if key.marked(Unnamed))
    parser = _Parser(usage=usage, description=description, allow_abbrev=False, epilog=EPILOG)
    groups = {key.path[:-1]: parser.add_argument_group(key.path[0]) for key in keys if key.path[1:]}
    for key in keys:
        _add(groups.get(key.path[:-1], parser), key)
    add_verbosity(parser)
    given, unknown = parser.parse_known_args(arguments)
    for text in unknown:
        name = text.partition("=")[0]
        near = nearest(name, [key.variable for key in keys])
        flag = None if near is None else near.lower().replace("_", "-")
        raise OptionError(f"{text}: there is no such option{_meant('--', flag)}")
    texts = {key: getattr(given, key.variable) for key in keys}
    return {key.path: _parsed(key, text) for key, text in texts.items() if text is not None and text.strip()}


EPILOG: Final = (
    "Each option is a variable, too: --pool-blocks is POOL_BLOCKS of make, WEIR_POOL_BLOCKS elsewhere."
)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Refuse the command line as other bad input is refused, without the usage."""
        raise OptionError(f"{message} (--help lists all options)")


def _add(parser: argparse._ActionsContainer, key: Key) -> None:
    text = help_of(key).replace("%", "%%")
    if key.marked(Unnamed):
        parser.add_argument(
            key.variable, metavar=key.variable, nargs="?", default=argparse.SUPPRESS, help=text
        )
        parser.add_argument(key.flag, dest=key.variable, help=argparse.SUPPRESS)
    elif key.kind.name == "yes_or_no":
        parser.add_argument(key.flag, dest=key.variable, metavar="yes|no", nargs="?", const=YES, help=text)
    else:
        parser.add_argument(key.flag, dest=key.variable, metavar=key.unit or "X", help=text)


def help_of(key: Key) -> str:
    """Return a key's help for the command line: its meaning, what it takes and its default."""
    range_ = f" [{key.kind.range}]" if key.kind.range else ""
    default = "" if key.default in (None, "", ()) else f" (default: {shown(key.default)})"
    return f"{key.help}{range_}{default}"


def shown(value: Any) -> str:
    """Return a value as text for a variable."""
    if isinstance(value, bool):
        return YES if value else "no"
    if isinstance(value, tuple):
        return ",".join(map(shown, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def nearest(name: str, names: Iterable[str]) -> str | None:
    """Return the name that is most similar to `name`, or None if none is near."""
    plain = name.strip().lstrip("-").upper().replace("-", "_")
    return next(iter(get_close_matches(plain.removeprefix(PREFIX), list(names), 1)), None)


def _meant(before: str, name: str | None) -> str:
    return "" if name is None else f"; did you mean {before}{name}?"


def _parsed(key: Key, text: str) -> Any:
    try:
        return key.from_text(text)
    except ValueError as error:
        raise OptionError(f"{key.variable}: {error}") from None
