"""Dataclasses from TOML, each value checked against its field's bounds; errors say file, line and field."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, Field, field, fields
from pathlib import Path
from types import UnionType
from typing import Any, TypeVar, get_args, get_type_hints

from commands.errors import ExperimentError

Section = TypeVar("Section")

_TABLE = re.compile(r"^\s*\[\s*([A-Za-z0-9_.\- ]+?)\s*\]")
_KEY = re.compile(r"^\s*([A-Za-z0-9_\-]+)\s*=")
_TOML_PLACE = re.compile(r" \(at line (\d+), column \d+\)$")


class ScenarioError(ExperimentError, ValueError):
    """A scenario that cannot be used; the message says file, line, reason and what to do."""


def number(default: float | None = None, least: float = 0.0, most: float = 1e18) -> Any:
    """A field that is a number within bounds."""
    return field(default=default, metadata={"least": least, "most": most})


def whole(default: int | None = None, least: int = 0, most: int = 1 << 40) -> Any:
    """A field that is a whole number within bounds."""
    return field(default=default, metadata={"least": least, "most": most})


def whole_or(word: str, default: int | None = None, least: int = 0, most: int = 1 << 40) -> Any:
    """A field that is a whole number within bounds, or one word."""
    return field(default=default, metadata={"least": least, "most": most, "choices": (word,)})


def choice(default: str, choices: Iterable[str]) -> Any:
    """A field that is one of some names."""
    return field(default=default, metadata={"choices": tuple(choices)})


def checked(default: str, check: Callable[[str], object]) -> Any:
    """A field that is a text which `check` takes; it raises ValueError for others."""
    return field(default=default, metadata={"check": check})


class Document:
    """A parsed TOML file that still knows on which line each key stands."""

    def __init__(self, text: str, name: str) -> None:
        self.name = name
        try:
            self.values: dict[str, Any] = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            reason = str(error)
            place = _TOML_PLACE.search(reason)
            where = f"{name}:{place[1]}" if place else f"{name}:{text.count(chr(10)) + 1}"
            raise ScenarioError(f"{where}: not TOML: {_TOML_PLACE.sub('', reason)}") from None
        self._lines = dict(_key_lines(text))

    def error(self, path: str, reason: str) -> ScenarioError:
        """An error at a key (or at its table, where the key itself is missing)."""
        line = self._lines.get(path) or self._lines.get(path.rpartition(".")[0])
        where = f"{self.name}:{line}" if line else self.name
        return ScenarioError(f"{where}: {path}: {reason}" if path else f"{where}: {reason}")


def read_document(path: str | Path) -> Document:
    """A TOML file; ScenarioError where it can't be read or parsed."""
    try:
        return Document(Path(path).read_text(encoding="utf-8"), str(path))
    except OSError as error:
        raise ScenarioError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ScenarioError(f"{path}: not a text file in UTF-8") from None


def decode(kind: type[Section], values: Mapping[str, Any], document: Document, table: str) -> Section:
    """One table as a dataclass whose fields carry their bounds."""
    known = {entry.name: entry for entry in fields(kind)}  # type: ignore[arg-type]
    hints = get_type_hints(kind)
    prefix = f"{table}." if table else ""
    for name in values:
        if name not in known:
            raise document.error(prefix + name, f"there is no such field; there are {', '.join(known)}")
    for name, entry in known.items():
        if name not in values and entry.default is MISSING and entry.default_factory is MISSING:
            raise document.error(prefix + name, "is missing")
    return kind(
        **{name: _value(known[name], hints[name], given, document, prefix + name)
           for name, given in values.items()}
    )  # fmt: skip


def _value(entry: Field[Any], hint: Any, given: Any, document: Document, path: str) -> Any:
    kinds = get_args(hint) if isinstance(hint, UnionType) else (hint,)
    if bool in kinds:
        if not isinstance(given, bool):
            raise document.error(path, f"must be true or false, not {given!r}")
        return given
    if str in kinds and (int not in kinds or isinstance(given, str)):
        return _name(entry, given, document, path)
    if isinstance(given, bool) or not isinstance(given, int if float not in kinds else (int, float)):
        wanted = "a number" if float in kinds else "a whole number"
        raise document.error(path, f"must be {wanted}, not {given!r}")
    least, most = entry.metadata["least"], entry.metadata["most"]
    if not least <= given <= most:
        raise document.error(path, f"must be from {least:g} to {most:g}, not {given:g}")
    return float(given) if float in kinds else given


def _name(entry: Field[Any], given: Any, document: Document, path: str) -> str:
    if not isinstance(given, str):
        raise document.error(path, f"must be text, not {given!r}")
    choices = entry.metadata.get("choices")
    if choices and given not in choices:
        raise document.error(path, f"there is no {given!r}: choose one of {', '.join(choices)}")
    if check := entry.metadata.get("check"):
        try:
            check(given)
        except ValueError as error:
            raise document.error(path, str(error)) from None
    return given


def _key_lines(text: str) -> Iterable[tuple[str, int]]:
    """Dotted path and line of every table and key (plain ones, which is all that scenarios use)."""
    table = ""
    for number_, line in enumerate(text.splitlines(), 1):
        if found := _TABLE.match(line):
            table = found[1]
            yield table, number_
        elif found := _KEY.match(line):
            yield (f"{table}.{found[1]}" if table else found[1]), number_
