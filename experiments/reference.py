"""Write the files that are generated from declarations.

They are the table that make checks, reference pages, schemas and files with the version.

    python -m experiments.reference

A test compares the files with what this generates.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter

from commands.declarations import PREFIX, Key, bound, keys_of
from commands.options import shown
from commands.table import TABLE
from emulator.result import ROOT
from experiments import traffic, versions
from experiments.commands import GROUPS, PROGRAMS
from experiments.keys import ANY, declared, keys_by_command
from scenario import Scenario

SCHEMA: Final = ROOT / "docs" / "scenario.schema.json"
PAGE: Final = ROOT / "docs" / "reference.md"
COLUMNS: Final = ("command", "variable", "kind", "many", "least", "most", "words")
HEAD: Final = f"""\
# Variables and keys

Generated from the declarations by `make reference`; do not edit.

After `pip install`, `weir COMMAND` runs each command; in a checkout, `make COMMAND` calls the same program.
`make COMMAND NAME=value` sets a variable. In the environment its name has the prefix `{PREFIX}`, and each
program takes it as an option: `POOL_BLOCKS` is `{PREFIX}POOL_BLOCKS` and `--pool-blocks`. The command line
counts more than the environment, and both count more than a file. A name that a command does not have is
refused.
"""
SCENARIOS: Final = """\
## Scenarios

`make run SCENARIO=file.toml` plays a file and `make simulate SCENARIO=file.toml` simulates it. Its JSON
schema is [`scenario.schema.json`](scenario.schema.json). The defaults are those of a file that says nothing.
Without a file, both commands take [`scenario/demo.toml`](../scenario/demo.toml). Only the simulator has
variables with a star.
"""


def main() -> int:
    """Write the files whose text differs from what it should be, and print their names; the
    exit code is 0."""
    for path, text in generated_files().items():
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        print(f"written: {path.relative_to(ROOT)}")
    return 0


def generated_files() -> dict[Path, str]:
    """Return the text of each generated file."""
    from experiments.summaries import schema as summaries  # takes a second: hundreds of classes

    return (
        {TABLE: table(), PAGE: page(), SCHEMA: schema()}
        | versions.generated_files()
        | summaries.files()
        | traffic.files()
    )


def table() -> str:
    """Return the table that make checks: one line for each variable of each command, tabs between columns."""
    rows: list[tuple[str, ...]] = [COLUMNS]
    for command, keys in keys_by_command().items():
        rows += [_row(command, key) for key in keys]
    return "".join("\t".join(row) + "\n" for row in rows)


def _row(command: str, key: Key) -> tuple[str, ...]:
    kind = key.kind
    many = "many" if kind.many else ""
    return (command, key.variable, kind.name, many, bound(kind.least), bound(kind.most), ",".join(kind.words))


def schema() -> str:
    """Return the JSON schema of scenario files, with each key's help, unit and variable."""
    generated_files: dict[str, Any] = TypeAdapter(Scenario).json_schema()
    generated_files = {
        "title": "A scenario of Weir",
        **generated_files,
        "$schema": "https://json-schema.org/draft/2020-12/schema",
    }
    generated_files["properties"]["base"] = {
        "type": "string",
        "description": "Another file, of which this one differs.",
    }
    for key in keys_of(Scenario):
        entry = generated_files["properties"][key.path[0]]
        if len(key.path) > 1:
            table = str(entry.get("$ref", "")).rpartition("/")[2]
            entry = generated_files["$defs"][table]["properties"][key.path[1]]
        entry["description"] = key.help
        entry |= {name: value for name, value in (("unit", key.unit), ("variable", key.variable)) if value}
    return json.dumps(_plain(generated_files), indent=1, default=str) + "\n"


def _plain(value: Any) -> Any:
    """Return the value with whole floats as integers.

    Otherwise Python may take 1 and 1.0 for one value, and the text depends on which came first.
    """
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def page() -> str:
    """Return the reference page: the keys of scenarios, then each command's other variables."""
    every = keys_by_command()
    parts = [HEAD, f"## weir\n\n{_commands()}", f"## Every command\n\n{_rows(every[ANY])}", SCENARIOS]
    parts += [
        f"### [{table}]\n\n{_about(table)}\n\n{_rows(keys, of_file=True)}"
        for table, keys in _tables().items()
    ]
    shared = {key.path for key in keys_of(Scenario)}
    for command, keys in every.items():
        if command == ANY:
            continue
        title = f"make {command.replace(' ', ' WHAT=')}"
        own = [key for key in keys if key.path not in shared] if _plays(command) else keys
        about = (declared(command).__doc__ or "").strip()
        if _plays(command):
            about += " It takes the scenario's keys, and:"
        parts.append(f"## {title}\n\n{about}\n\n{_rows(own)}")
    return "\n".join(parts)


def _commands() -> str:
    """Return a table of the commands of `weir`, by group."""
    lines = ["| command | what it does |", "|---|---|"]
    for group in GROUPS:
        lines.append(f"| **{group}** | |")
        lines += [f"| `{name}` | {one.text} |" for name, one in PROGRAMS.items() if one.group == group]
    return "\n".join(lines) + "\n\n`weir COMMAND --help` lists the options of each.\n"


def _plays(command: str) -> bool:
    """Return whether a command takes a scenario."""
    return issubclass(declared(command), Scenario)


def _tables() -> dict[str, list[Key]]:
    tables: dict[str, list[Key]] = {}
    for key in keys_of(Scenario):
        if key.path[1:]:
            tables.setdefault(key.path[0], []).append(key)
    return tables


def _about(table: str) -> str:
    kind = {entry.name: type(getattr(Scenario(), entry.name)) for entry in fields(Scenario)}[table]
    return " ".join((kind.__doc__ or "").split())


def _rows(keys: Iterable[Key], of_file: bool = False) -> str:
    lines = ["| key | variable | meaning | values | default |", "|---|---|---|---|---|"]
    if not of_file:
        lines = ["| variable | meaning | values | default |", "|---|---|---|---|"]
    for key in keys:
        default = "" if key.default in (None, "", ()) else f"`{_default(key.default)}`"
        values = "; ".join(part for part in (key.kind.range, key.unit) if part)
        values = ", ".join(part for part in (values, "by commas" if key.kind.many else "") if part)
        name = f"`{key.path[-1]}` | `{key.variable}`" if of_file else f"`{key.variable}`"
        played = "" if not of_file or key.own_variable else " *"
        lines.append(f"| {name}{played} | {_cell(key.help)} | {_cell(values)} | {_cell(default)} |")
    return "\n".join(lines) + "\n"


def _default(value: object) -> str:
    """Return a default as users write it; paths in the checkout are relative to it."""
    return shown(value).removeprefix(f"{ROOT}/")


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    sys.exit(main())
