"""Declarations that nothing uses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from v1model.frontend import ast
from v1model.frontend.warn.nodes import walk

if TYPE_CHECKING:
    from v1model.diagnostics import Diagnostics

_NAMED = {
    ast.ControlDeclaration: "control ",
    ast.ParserDeclaration: "parser ",
    ast.TableDeclaration: "table ",
}
_WATCHED = (
    ast.ActionDeclaration,
    ast.ConstantDeclaration,
    ast.ControlDeclaration,
    ast.FunctionDeclaration,
    ast.Instantiation,
    ast.ParserDeclaration,
    ast.TableDeclaration,
    ast.ValueSetDeclaration,
    ast.VariableDeclaration,
)


def warn_unused(declaration: ast.Declaration, used: set[ast.Declaration], diagnostics: Diagnostics) -> None:
    """Warn about the declaration and those inside that are unused; `used` has all whose names are used."""
    for node in walk(declaration):
        match node:
            case (
                ast.Instantiation(name="main")
                | ast.ControlDeclaration(body=None)
                | ast.ParserDeclaration(states=None)
            ):
                continue
            case ast.FunctionDeclaration(body=None) | ast.ConstantDeclaration(value=ast.Call()):
                continue  # a call for a constant is static_assert
            case ast.ActionDeclaration():
                watched: list[ast.Declaration] = [*node.parameters]
            case _:
                watched = []
        if isinstance(node, _WATCHED):
            watched.insert(0, node)
        for found in watched:
            if found not in used and not found.name.startswith("__"):
                kind = _NAMED.get(type(found), "")
                diagnostics.warn("unused", f"{kind}{found.name!r} is unused", found.span)
