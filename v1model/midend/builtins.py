"""Methods of headers, unions and stacks (spec sections 8.17 to 8.20)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from v1model import ir
from v1model.errors import UnsupportedError
from v1model.frontend import ast
from v1model.midend.shapes import INTEGER
from v1model.midend.values import VOID, as_path, set_invalid

if TYPE_CHECKING:
    from v1model.midend.frame import Frame


def call(frame: Frame, node: ast.Call) -> ir.Expr:
    """Lower isValid, setValid, setInvalid, push_front, pop_front or a size such as minSizeInBits."""
    if isinstance(node.constant, int):
        return ir.Const(int(node.constant), INTEGER)
    assert isinstance(node.callee, ast.Member), node
    base = as_path(frame, frame.expression(node.callee.base))
    match node.callee.member:
        case "isValid":
            return ir.IsValid(base)
        case "setValid":
            frame.emit(ir.SetValid(base, valid=True))
        case "setInvalid":
            frame.emit(*set_invalid(base))
        case "push_front" | "pop_front" as name:
            value = node.arguments[0].value
            assert value is not None
            count = frame.constant(value, f"the argument of {name}")
            frame.emit(ir.Shift(base, count if name == "push_front" else -count))
        case name:
            raise UnsupportedError(f"{name} is not supported", node.span)
    return VOID
