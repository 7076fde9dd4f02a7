"""Calls of count() without effect: a direct counter counts only with its own table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from v1model.frontend import ast
from v1model.frontend.types import DeclaredType
from v1model.frontend.warn.nodes import walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from v1model.diagnostics import Diagnostics


def warn_counts(control: ast.ControlDeclaration, diagnostics: Diagnostics) -> None:
    """Warn about calls outside the actions of the table that a direct counter belongs to."""
    tables = [node for node in control.locals if isinstance(node, ast.TableDeclaration)]
    for table in tables:
        counter = _counter_of(table)
        if counter is None:
            continue
        for place in _elsewhere(control, table, tables):
            for call in _counts(place, counter):
                message = f"{counter.name!r} belongs to table {table.name!r}: this counts nothing"
                hint = f"only count() in an action of {table.name!r}, run by the table, counts"
                diagnostics.warn("ignore", message, call.span, hint)


def _counter_of(table: ast.TableDeclaration) -> ast.Declaration | None:
    found = table.properties.get("counters")
    return found.value.declaration if found is not None and isinstance(found.value, ast.Name) else None


def _elsewhere(
    control: ast.ControlDeclaration, table: ast.TableDeclaration, tables: list[ast.TableDeclaration]
) -> Iterator[ast.Node]:
    """Yield the bodies that run without the table: apply, and the actions that it does not have."""
    if control.body is not None:
        yield control.body
    own = {reference.name.declaration for reference in table.actions}
    others = {reference.name.declaration for other in tables for reference in other.actions} - own
    for action in control.locals:
        if isinstance(action, ast.ActionDeclaration) and action in others:
            yield action.body


def _counts(place: ast.Node, counter: ast.Declaration) -> Iterator[ast.Call]:
    for node in walk(place):
        if not isinstance(node, ast.Call) or not isinstance(node.callee, ast.Member):
            continue
        base = node.callee.base
        if isinstance(base, ast.Name) and base.declaration is counter and isinstance(base.type, DeclaredType):
            yield node
