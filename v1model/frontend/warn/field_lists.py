"""Field lists without a field."""

from __future__ import annotations

from typing import TYPE_CHECKING

from v1model.frontend import ast
from v1model.frontend.warn.nodes import walk

if TYPE_CHECKING:
    from collections.abc import Iterable

    from v1model.diagnostics import Diagnostics


def warn_field_lists(declarations: Iterable[ast.Declaration], diagnostics: Diagnostics) -> None:
    """Warn about clones, resubmitted and recirculated packets that keep the fields of an empty list."""
    known = _annotated(declarations)
    for declaration in declarations:
        for node in walk(declaration):
            if not isinstance(node, ast.Call) or not isinstance(node.declaration, ast.FunctionDeclaration):
                continue
            if not node.declaration.name.endswith("_preserving_field_list") or not node.arguments:
                continue
            index = node.arguments[-1].value
            if index is not None and isinstance(index.constant, int) and index.constant not in known:
                message = f"no field has @field_list({index.constant}): no metadata is kept"
                diagnostics.warn("invalid", message, index.span)


def _annotated(declarations: Iterable[ast.Declaration]) -> set[object]:
    """Return the numbers of all field lists that have a field of a struct."""
    return {
        expression.constant
        for declaration in declarations
        if isinstance(declaration, ast.StructDeclaration)
        for field in declaration.fields
        for annotation in field.annotations
        if annotation.name == "field_list"
        for expression in annotation.expressions
    }
