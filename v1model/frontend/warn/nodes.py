"""Traversal of syntax trees."""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import TYPE_CHECKING, Any

from v1model.frontend import ast

if TYPE_CHECKING:
    from collections.abc import Iterator

# Fields that the checker filled in: types, values and declarations elsewhere, no parts.
_CHECKED = frozenset({"span", "type", "constant", "declaration", "inferred", "resolved", "parameter"})


def walk(node: ast.Node) -> Iterator[ast.Node]:
    """Yield the node and all nodes inside in program order, without annotations."""
    waiting = [node]
    while waiting:
        current = waiting.pop()
        yield current
        waiting.extend(reversed(list(parts(current))))


def parts(node: ast.Node) -> Iterator[ast.Node]:
    """Yield the child nodes of a node, without annotations."""
    kind: Any = type(node)
    for name in _part_names(kind):
        yield from _nodes(getattr(node, name))


@cache
def _part_names(kind: type[Any]) -> tuple[str, ...]:
    names = [field.name for field in dataclasses.fields(kind)]
    if kind is ast.DeclarationStatement:
        return ("declaration",)
    return tuple(name for name in names if name not in _CHECKED and name != "annotations")


def _nodes(value: Any) -> Iterator[ast.Node]:
    if isinstance(value, ast.Node):
        yield value
    elif isinstance(value, list):
        yield from (element for element in value if isinstance(element, ast.Node))
    elif isinstance(value, dict):
        yield from (element for element in value.values() if isinstance(element, ast.Node))
