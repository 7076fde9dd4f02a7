"""TOML files that know on which line each key stands, for errors that name file, line and key."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from commands.errors import ExperimentError

_TABLE = re.compile(r"^\s*\[\s*([A-Za-z0-9_.\- ]+?)\s*\]")
_KEY = re.compile(r"^\s*([A-Za-z0-9_\-]+)\s*=")
_TOML_PLACE = re.compile(r" \(at line (\d+), column \d+\)$")


class ScenarioError(ExperimentError, ValueError):
    """An unusable scenario; the message says file, line, reason and what to do."""


class Document:
    """A parsed TOML file."""

    def __init__(self, text: str, name: str) -> None:
        """Parse `text`; `name` stands in errors. Raises ScenarioError if it is not TOML."""
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
        """Return an error at a key, or at its table where the key itself is missing."""
        line = self._lines.get(path) or self._lines.get(path.rpartition(".")[0])
        where = f"{self.name}:{line}" if line else self.name
        return ScenarioError(f"{where}: {path}: {reason}" if path else f"{where}: {reason}")


def read_document(path: str | Path) -> Document:
    """Return a TOML file; raises ScenarioError if it can't be read or parsed."""
    try:
        return Document(Path(path).read_text(encoding="utf-8-sig"), str(path))
    except OSError as error:
        raise ScenarioError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ScenarioError(f"{path}: not a text file in UTF-8") from None


def _key_lines(text: str) -> Iterable[tuple[str, int]]:
    """Yield the dotted path and the line of every table and key; only plain ones, as scenarios use them."""
    table = ""
    for number, line in enumerate(text.splitlines(), 1):
        if found := _TABLE.match(line):
            table = found[1]
            yield table, number
        elif found := _KEY.match(line):
            yield (f"{table}.{found[1]}" if table else found[1]), number
