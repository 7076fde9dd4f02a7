"""JSON schemas of all summaries, and the reference page about them."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from textwrap import dedent
from typing import Any, Final, get_args, get_type_hints

from pydantic import TypeAdapter
from pydantic.dataclasses import is_pydantic_dataclass

from emulator.result import ROOT
from experiments.summaries import CRASHED, SUMMARIES

FOLDER: Final = ROOT / "docs" / "schemas"
PAGE: Final = ROOT / "docs" / "summaries.md"
DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
HEAD: Final = """\
# What summary.json holds

Generated from the dataclasses in `experiments/summaries/` by `make reference`; do not edit.

Each experiment writes `results/NAME/summary.json`, and `weir.results.load` reads the folder. Each section
below links to the JSON schema of one experiment. Within a major version, keys are added, and none changes
its meaning ([what is stable](stability.md)). Names end in their unit. A type in `code` is one of the
[shared tables](#shared-tables).

If a process of an emulation ends that should not have, the file holds what the command was given and the key
`crashed` ([schema](schemas/crashed.schema.json)).
"""


def files() -> dict[Path, str]:
    """Return the text of each schema, and of the page."""
    kinds = SUMMARIES | {"crashed": CRASHED}
    schemas = {
        FOLDER / _file(name): json.dumps(schema(kind), indent=1) + "\n" for name, kind in kinds.items()
    }
    return schemas | {PAGE: page()}


def schema(kind: type) -> dict[str, Any]:
    """Return the JSON schema of a dataclass, with the text below each field as its description."""
    json_schema = TypeAdapter(kind).json_schema()
    kinds = {one.__name__: one for one in _dataclasses(kind)}
    for name, entry in [(kind.__name__, json_schema), *json_schema.get("$defs", {}).items()]:
        entry.pop("title", None)
        entry["description"] = _about(kinds[name])
        if not is_pydantic_dataclass(kinds[name]):
            entry["required"] = list(entry["properties"])  # written with asdict, which writes defaults too
        for key, value in entry.get("properties", {}).items():
            value.pop("title", None)
            value.pop("default", None)
            if text := texts(kinds[name]).get(key):
                value["description"] = text
    return {"$schema": DIALECT, "title": kind.__name__, **json_schema}


@cache
def texts(kind: type) -> dict[str, str]:
    """Return the text below each field of a dataclass, with those of inherited fields."""
    found: dict[str, str] = {}
    for one in reversed(kind.__mro__):
        if dataclasses.is_dataclass(one):
            body = ast.parse(dedent(inspect.getsource(one))).body[0]
            assert isinstance(body, ast.ClassDef)
            for field, below in zip(body.body, body.body[1:], strict=False):
                if isinstance(field, ast.AnnAssign) and isinstance(below, ast.Expr):
                    assert isinstance(field.target, ast.Name)
                    found[field.target.id] = " ".join(ast.literal_eval(below.value).split())
    return found


def _dataclasses(kind: Any) -> Iterator[type]:
    """Yield all dataclasses that a type is made of, itself first; one may come more than once."""
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        yield kind
        for hint in get_type_hints(kind).values():
            yield from _dataclasses(hint)
    for argument in get_args(kind):
        yield from _dataclasses(argument)


def _file(name: str) -> str:
    return f"{name.replace(' ', '-')}.schema.json"


def _about(kind: type) -> str:
    return " ".join((kind.__doc__ or "").split())


def page() -> str:
    """Return the page: a table of keys for each experiment, then the tables that several of them use."""
    parts = [HEAD]
    for name, kind in SUMMARIES.items():
        link = f"[schema](schemas/{_file(name)})"
        parts.append(f"## {name}\n\n{_about(kind)} ({link})\n\n{_rows(kind)}")
    inner = {one.__name__: one for kind in SUMMARIES.values() for one in _dataclasses(kind)}
    shared = sorted(set(inner) - {kind.__name__ for kind in SUMMARIES.values()})
    parts.append("## Shared tables\n")
    parts += [f"### {name}\n\n{_about(inner[name])}\n\n{_rows(inner[name])}" for name in shared]
    return "\n".join(parts)


def _rows(kind: type) -> str:
    json_schema = schema(kind)
    lines = ["| key | type | meaning |", "|---|---|---|"]
    for name, value in json_schema["properties"].items():
        needed = "" if name in json_schema.get("required", []) else ", not always"
        text = value.get("description", "").replace("|", "\\|")
        lines.append(f"| `{name}` | {_type(value)}{needed} | {text} |")
    return "\n".join(lines) + "\n"


def _type(value: dict[str, Any]) -> str:
    """Return a type of a schema in a few words."""
    if "$ref" in value:
        return f"`{value['$ref'].rpartition('/')[2]}`"
    if "anyOf" in value:
        return " or ".join(dict.fromkeys(map(_type, value["anyOf"])))
    if "prefixItems" in value:
        return f"{len(value['prefixItems'])} of {_type(value['prefixItems'][0])}"
    if value.get("type") == "array":
        return f"list of {_type(value.get('items', {}))}"
    if isinstance(value.get("additionalProperties"), dict):
        return f"by name {_type(value['additionalProperties'])}"
    return {"object": "any object", None: "anything"}.get(value.get("type"), str(value.get("type")))
