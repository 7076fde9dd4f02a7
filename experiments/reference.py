"""Write what is made of the declared keys: the table that make checks, the reference page, the JSON schema.

    python -m experiments.reference

A test compares the files with what this makes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from commands.declarations import PREFIX, Key, bound
from commands.options import shown
from commands.table import TABLE
from emulator.result import ROOT
from experiments.commands import ANY, declared, keys_by_command

PAGE: Final = ROOT / "docs" / "reference.md"
COLUMNS: Final = ("command", "variable", "kind", "many", "least", "most", "words")
HEAD: Final = f"""\
# Variables and keys

Generated from the declarations by `make reference`; do not edit.

`make COMMAND NAME=value` sets a variable. In the environment its name has the prefix `{PREFIX}`, and each
program takes it as an option: `POOL_BLOCKS` is `{PREFIX}POOL_BLOCKS` and `--pool-blocks`. The command line
counts more than the environment, and both count more than a file. A name that a command does not have is
refused.
"""


def main() -> int:
    """Write all files; the exit code is 0."""
    for path, text in made().items():
        path.write_text(text, encoding="utf-8")
    return 0


def made() -> dict[Path, str]:
    """Return the text of each generated file."""
    return {TABLE: table(), PAGE: page()}


def table() -> str:
    """Return one line for each variable of each command, tabs between columns."""
    rows: list[tuple[str, ...]] = [COLUMNS]
    for command, keys in keys_by_command().items():
        rows += [_row(command, key) for key in keys]
    return "".join("\t".join(row) + "\n" for row in rows)


def _row(command: str, key: Key) -> tuple[str, ...]:
    kind = key.kind
    many = "many" if kind.many else ""
    return (command, key.variable, kind.name, many, bound(kind.least), bound(kind.most), ",".join(kind.words))


def page() -> str:
    """Return the reference page."""
    parts = [HEAD]
    for command, keys in keys_by_command().items():
        title = "Every command" if command == ANY else f"make {command.replace(' ', ' WHAT=')}"
        about = "" if command == ANY else f"{(declared(command).__doc__ or '').strip()}\n\n"
        parts.append(f"## {title}\n\n{about}{_rows(keys)}")
    return "\n".join(parts)


def _rows(keys: Iterable[Key]) -> str:
    lines = ["| variable | meaning | values | default |", "|---|---|---|---|"]
    for key in keys:
        default = "" if key.default in (None, "", ()) else f"`{_default(key.default)}`"
        values = "; ".join(part for part in (key.kind.range, key.unit) if part)
        several = ", by commas" if key.kind.many else ""
        lines.append(f"| `{key.variable}` | {_cell(key.help)} | {_cell(values)}{several} | {default} |")
    return "\n".join(lines) + "\n"


def _default(value: object) -> str:
    """A default as users write it: a folder of the checkout is named from there."""
    return shown(value).removeprefix(f"{ROOT}/")


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    sys.exit(main())
