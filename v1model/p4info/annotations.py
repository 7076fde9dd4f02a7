"""Annotations in P4Info: copied as written, except those that have fields of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from v1model.errors import CompileError
from v1model.frontend import ast

if TYPE_CHECKING:
    from collections.abc import Iterable

_ELSEWHERE = frozenset(("name", "id", "brief", "description"))


def find(annotations: Iterable[ast.Annotation], name: str) -> ast.Annotation | None:
    return next((annotation for annotation in annotations if annotation.name == name), None)


def number(annotations: Iterable[ast.Annotation], name: str) -> int | None:
    """Return the number in an annotation such as @id(5)."""
    annotation = find(annotations, name)
    if annotation is None:
        return None
    if len(annotation.expressions) != 1 or not isinstance(annotation.expressions[0], ast.IntLiteral):
        raise CompileError(f"@{name} must hold one number", annotation.span)
    return annotation.expressions[0].value


def string(annotations: Iterable[ast.Annotation], name: str) -> str | None:
    """Return the string in an annotation such as @brief("x"); adjacent strings are joined."""
    annotation = find(annotations, name)
    if annotation is None:
        return None
    parts = [e.value for e in annotation.expressions if isinstance(e, ast.StringLiteral)]
    if not parts or len(parts) != len(annotation.expressions):
        raise CompileError(f"@{name} must hold a string", annotation.span)
    return "".join(parts)


def annotate(
    message: Any, annotations: Iterable[ast.Annotation], without: frozenset[str] = frozenset()
) -> None:
    """Add annotations to a message; structured ones as such."""
    for annotation in annotations:
        if (annotation.expressions or annotation.pairs) and not annotation.text:
            _structured(message.structured_annotations.add(), annotation)
        elif annotation.name not in _ELSEWHERE and annotation.name not in without:
            message.annotations.append(_written(annotation))


def document(message: Any, annotations: Iterable[ast.Annotation]) -> None:
    """Set `doc` from @brief and @description."""
    annotations = list(annotations)
    brief, description = string(annotations, "brief"), string(annotations, "description")
    if brief is not None:
        message.doc.brief = brief
    if description is not None:
        message.doc.description = description


def _written(annotation: ast.Annotation) -> str:
    return f"@{annotation.name}({annotation.text})" if annotation.text else f"@{annotation.name}"


def _structured(message: Any, annotation: ast.Annotation) -> None:
    message.name = annotation.name
    for expression in annotation.expressions:
        _literal(message.expression_list.expressions.add(), expression)
    for key, expression in annotation.pairs.items():
        pair = message.kv_pair_list.kv_pairs.add()
        pair.key = key
        _literal(pair.value, expression)


def _literal(message: Any, expression: ast.Expression) -> None:
    value = expression.constant
    if isinstance(value, str):
        message.string_value = value
    elif isinstance(value, bool):
        message.bool_value = value
    elif isinstance(value, int) and -(1 << 63) <= value < 1 << 63:
        message.int64_value = value
    else:
        message_text = "a structured annotation must hold strings, booleans and 64-bit integers"
        raise CompileError(message_text, expression.span)
