"""Whether what an experiment wrote is as its JSON schema says, with no key that is not described."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter


def assert_described(command: str, path: Path) -> None:
    """Fail unless the summary of a command has all keys of its schema and no other, of the types there."""
    check(command, json.loads(path.read_text(encoding="utf-8")))


def schema_of(command: str) -> dict[str, Any]:
    """Return the JSON schema of a command's summary, or of "crashed"."""
    from experiments.summaries.schema import schema

    return schema(_kind_of(command))


def _kind_of(command: str) -> type:
    """The dataclass of a summary. All these classes take a second to make: only what asks for one does."""
    from experiments.summaries import CRASHED, SUMMARIES

    return CRASHED if command == "crashed" else SUMMARIES[command]


def check(command: str, summary: Any) -> None:
    """Raise pydantic's ValidationError for a key that is missing, of another type, or not described.

    Keys besides are those of dataclasses that say so: tables, figures and counts by name.
    """
    known = json.dumps(_without_open_keys(summary, schema_of(command)))
    TypeAdapter(_kind_of(command)).validate_json(known, extra="forbid")


def _without_open_keys(value: Any, told: dict[str, Any], defs: dict[str, Any] | None = None) -> Any:
    """The same without the keys that a schema leaves open."""
    defs = told.get("$defs", {}) if defs is None else defs
    if "$ref" in told:
        return _without_open_keys(value, defs[told["$ref"].rpartition("/")[2]], defs)
    if isinstance(value, list) and isinstance(told.get("items"), dict):
        return [_without_open_keys(one, told["items"], defs) for one in value]
    if isinstance(value, dict) and "properties" in told:
        is_open = told.get("additionalProperties") is True
        return {
            name: _without_open_keys(one, told["properties"].get(name, {}), defs)
            for name, one in value.items()
            if name in told["properties"] or not is_open
        }
    return value
