"""Expressions that can be assigned to (spec section 6.6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from v1model.errors import CompileError
from v1model.frontend import ast
from v1model.frontend.types import RecordType, StackType

if TYPE_CHECKING:
    from v1model.frontend.check.scope import Context


def require_lvalue(c: Context, node: ast.Expression, what: str) -> None:
    """Refuse a checked expression that can't be assigned to; `what` begins the message."""
    if reason := _obstacle(node):
        raise CompileError(f"{what} must be something that can be assigned: {reason}", node.span)


def _obstacle(node: ast.Expression) -> str:
    """Return why the expression cannot be assigned to, "" if it can."""
    match node:
        case ast.Name():
            return _name_obstacle(node)
        case ast.Member():
            if isinstance(node.base.type, StackType) and node.member != "next":
                return f"{node.member!r} of a header stack is read-only"
            if isinstance(node.base.type, RecordType | StackType):
                return _obstacle(node.base)
        case ast.Index():
            return _obstacle(node.base)
        case ast.Slice(is_moving=True):
            return "the position of the slice is not known at compile time"
        case ast.Slice():
            return _obstacle(node.base)
        case ast.Cast():
            return "a conversion yields a new value"
        case ast.Call():
            return "a call yields a value"
    return "this is a value"


def _name_obstacle(node: ast.Name) -> str:
    match node.declaration:
        case ast.VariableDeclaration():
            return ""
        case ast.Parameter(direction=direction, name=name):
            if direction in ("out", "inout"):
                return ""
            return f"parameter {name!r} is {'in' if direction == 'in' else 'without direction'}"
        case ast.ConstantDeclaration(name=name):
            return f"{name!r} is a constant"
    return f"{node.name!r} is no variable"
