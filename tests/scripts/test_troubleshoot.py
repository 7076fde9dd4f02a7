"""docs/troubleshoot.md has every refusal of set-up and machine check, in the words that are said."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = (
    "scripts/environment.py", "scripts/setup.sh", "scripts/debian-packages.sh", "topologies/machine_check.py",
    "topologies/network.py", "topologies/fabric.py", "topologies/star.py",
    "emulator/machine.py", "hostlib/client/fetches.py", "hostlib/protocol/value_size.py",
)  # fmt: skip
COMPLETE = {
    "scripts/environment.py": ("SetupError", "explained"),
    "topologies/machine_check.py": ("TopologyError", ""),
}
"""Files of which every refusal has a row: the exception, and a function that makes its words."""
LEFT_OUT = "no command "
"""What nobody who uses make can meet."""


def quoted() -> list[str]:
    """The messages of the page's tables."""
    page = (ROOT / "docs" / "troubleshoot.md").read_text()
    return re.findall(r"^\| `([^`]+)` \|", page, re.MULTILINE)


def said_in(path: str) -> str:
    """A source with the pieces of its strings joined, as they are said."""
    return re.sub(r'"\s*\n\s*f?"', "", (ROOT / path).read_text())


def refusals(path: str, error: str, function: str) -> Iterator[str]:
    """The words of each refusal in a file, without what they are filled with."""
    for node in ast.walk(ast.parse((ROOT / path).read_text())):
        raised = (
            isinstance(node, ast.Raise)
            and isinstance(node.exc, ast.Call)
            and ast.unparse(node.exc.func) == error
        )
        if raised:
            words = "".join(strings(node))
            if words and not words.startswith(LEFT_OUT):
                yield words
        elif isinstance(node, ast.FunctionDef) and node.name == function:
            yield from ("".join(strings(one)) for one in ast.walk(node) if isinstance(one, ast.Return))


def strings(node: ast.AST) -> Iterator[str]:
    return (
        one.value for one in ast.walk(node) if isinstance(one, ast.Constant) and isinstance(one.value, str)
    )


@pytest.mark.parametrize("message", quoted())
def test_what_the_page_quotes_is_said(message: str) -> None:
    assert any(message in said_in(path) for path in SOURCES)


@pytest.mark.parametrize("path", COMPLETE)
def test_every_refusal_is_on_the_page(path: str) -> None:
    messages = quoted()
    missing = [
        words for words in refusals(path, *COMPLETE[path]) if not any(one in words for one in messages)
    ]
    assert not missing
