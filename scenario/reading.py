"""Reader of a scenario's TOML file: bases, paths, and errors that name file, line and key."""

from __future__ import annotations

import dataclasses
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from commands.declarations import Existing, keys_of
from commands.options import Values, build
from commands.toml_file import Document, ScenarioError, read_document
from scenario.tables import SWITCHES
from scenario.whole import Scenario
from topologies.registry import TOPOLOGIES

BASES: Final = 4
"""Largest number of files in a chain of bases."""
DEMO: Final = Path(__file__).with_name("demo.toml")
"""File that is emulated and simulated if none is given."""
TABLES: Final = tuple(
    entry.name for entry in dataclasses.fields(Scenario) if entry.name not in ("name", "source")
)


def load_scenario(path: str | Path) -> tuple[Scenario, Document]:
    """Return a scenario and its file; raises ScenarioError. Paths in a file are relative to it.

    A file may name another one as its `base` and then has only what differs.
    """
    document = _read(Path(path))
    values = _with_bases(Path(path), document, BASES)
    return build(Scenario, completed(values)), document


def read_values(path: Path) -> Values:
    """Return the values of a file with those of its bases; raises ScenarioError."""
    return _with_bases(path, _read(path), BASES)


def _read(path: Path) -> Document:
    """Read a file that a user named; raises ScenarioError, also if it is a trace."""
    if path.suffix in (".json", ".jsonl"):
        raise ScenarioError(f"{path}: a scenario is a TOML file; a trace is what TRACE names")
    return read_document(path)


def decode_scenario(document: Document) -> Scenario:
    """Return the scenario of a parsed file without a base; raises ScenarioError."""
    return build(Scenario, completed(_values(document)))


def completed(values: Values) -> Values:
    """Return the values with those that follow from them.

    A topology implies its sizes. Without storage nodes, nodes lend each other their memory.
    """
    completed_values = dict(values)
    topology = TOPOLOGIES[completed_values.get(("network", "topology"), "star")]
    completed_values.setdefault(("nodes", "count"), topology.nodes)
    completed_values.setdefault(("storage", "count"), topology.stores)
    if completed_values["storage", "count"] == 0:
        completed_values.setdefault(("storage", "kind"), "peers")
        completed_values.setdefault(("direct", "front"), SWITCHES)
    return completed_values


def _with_bases(path: Path, document: Document, deepest: int) -> Values:
    """Return a document's values on top of those of its base, which must be valid by itself."""
    name = document.values.pop("base", None)
    own = _values(document, path.parent)
    if name is None:
        return own
    if not isinstance(name, str) or not deepest:
        raise document.error("base", f"must be the name of a file, {BASES} deep at most, not {name!r}")
    base = path.parent / name
    return _with_bases(base, read_document(base), deepest - 1) | own


def _values(document: Document, folder: Path = Path()) -> Values:
    """Return the checked values of a parsed file, by path; raises ScenarioError."""
    keys = {key.path: key for key in keys_of(Scenario)}
    values: Values = {}
    for name, given in document.values.items():
        if name in TABLES and not isinstance(given, dict):
            raise document.error(name, "must be a table")
        if name not in TABLES and (name,) not in keys:
            there_are = ", ".join(("name", "source", *TABLES))
            raise document.error(name, f"there is no such table; there are {there_are}")
        entries: dict[tuple[str, ...], Any] = (
            {(name, inner): value for inner, value in given.items()} if name in TABLES else {(name,): given}
        )
        for path, value in entries.items():
            values[path] = _value(document, path, value, folder)
    return values


def _value(document: Document, path: tuple[str, ...], value: Any, folder: Path) -> Any:
    keys = {key.path: key for key in keys_of(Scenario)}
    key = keys.get(path)
    if key is None:
        known = [other[-1] for other in keys if other[:-1] == path[:-1]]
        near = get_close_matches(path[-1], known, 1)
        meant = f" (did you mean {near[0]}?)" if near else ""
        raise document.error(".".join(path), f"there is no such field{meant}; there are {', '.join(known)}")
    try:
        checked = key.from_toml(value)
    except ValueError as error:
        raise document.error(key.name, str(error)) from None
    return folder / checked if key.marked(Existing) else checked


__all__ = ["DEMO", "ScenarioError", "completed", "decode_scenario", "load_scenario", "read_values"]
