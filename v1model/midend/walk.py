"""Traversal of the AST."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

from v1model.frontend import ast

if TYPE_CHECKING:
    from collections.abc import Iterator

_CHECKED = frozenset(
    ("span", "type", "constant", "resolved", "declaration", "inferred", "parameter", "annotations")
)


_below: dict[type[ast.Node], tuple[str, ...]] = {}


def _children(node: type[ast.Node]) -> tuple[str, ...]:
    """Return the names of a node's fields with child nodes; not of those that refer to other nodes."""
    if node not in _below:
        own = {"declaration"} if node is ast.DeclarationStatement else set()
        _below[node] = tuple(f.name for f in fields(node) if f.name not in _CHECKED or f.name in own)
    return _below[node]


def walk(node: object) -> Iterator[ast.Node]:
    """Yield `node` and all nodes below it, as written."""
    if isinstance(node, ast.Node):
        yield node
        for name in _children(type(node)):
            yield from walk(getattr(node, name))
    elif isinstance(node, list):
        for item in node:
            yield from walk(item)
    elif isinstance(node, dict):
        for item in node.values():
            yield from walk(item)
