"""Externs that are not v1model's, written in C by the user (docs/embedded-switch.md, "Externs in C")."""

from __future__ import annotations

from typing import TYPE_CHECKING

from v1model import ir
from v1model.errors import CompileError, UnsupportedError
from v1model.frontend import ast
from v1model.frontend import types as t
from v1model.midend.arguments import arguments
from v1model.midend.scope import CustomExtern
from v1model.midend.values import VOID

if TYPE_CHECKING:
    from v1model.midend.frame import Frame

HINT = "give the C file that implements it: --externs FILE.c"
INTEGER_BITS = 128  # the widest result that a C function returns


def function(frame: Frame, node: ast.Call) -> ir.Expr:
    """Lower a call of an extern function."""
    assert isinstance(node.declaration, ast.FunctionDeclaration), node
    name = node.declaration.name
    if not frame.unit.has_custom_externs:
        raise UnsupportedError(f"extern function {name} is not one of v1model's", node.span, HINT)
    return _call(frame, node, name, "")


def method(frame: Frame, node: ast.Call, target: CustomExtern) -> ir.Expr:
    """Lower a call of a method of an extern object."""
    assert isinstance(node.callee, ast.Member), node
    return _call(frame, node, f"{target.resource.type}_{node.callee.member}", target.resource.name)


def _call(frame: Frame, node: ast.Call, name: str, instance: str) -> ir.Expr:
    values = arguments(frame, node)
    given = []
    for value, argument in zip(values, node.arguments, strict=True):
        if not isinstance(value.type, ir.Bits | ir.Bool):
            message = "an argument of an extern in C that is no bit<>, int<>, bool, enum or error"
            raise UnsupportedError(message, argument.span)
        written = argument.parameter is not None and argument.parameter.direction in ("out", "inout")
        given.append((value, written))
    result = None
    if node.type is not None and not isinstance(node.type, t.VoidType):
        shape = frame.shape(node)
        if not isinstance(shape, ir.Bits | ir.Bool) or getattr(shape, "width", 1) > INTEGER_BITS:
            message = f"an extern in C that returns anything but up to {INTEGER_BITS} bits"
            raise UnsupportedError(message, node.span, "use an `out` parameter")
        result = frame.builder.temporary(shape, "returned")
    frame.emit(ir.CustomCall(name, tuple(given), result, instance, node.span))
    return result or VOID


def instantiate(
    frame: Frame,
    declaration: ast.ExternDeclaration,
    arguments: list[ast.Argument],
    name: str,
    node: ast.Call | ast.Instantiation,
) -> CustomExtern:
    """Return an extern object's instance; the runtime makes one for each switch."""
    if not frame.unit.has_custom_externs:
        message = f"extern {declaration.name} is not one of v1model's that are supported"
        raise UnsupportedError(message, node.span, HINT)
    if any(known.name == name for known in frame.unit.custom_objects):
        raise CompileError(f"two extern instances are called {name}", node.span)
    values = []
    for argument in arguments:
        value = frame.expression(argument.value) if argument.value is not None else None
        if not isinstance(value, ir.Const) or not isinstance(value.value, int):
            raise UnsupportedError("a constructor argument that is no number", argument.span)
        if not 0 <= value.value < 1 << 64:
            raise UnsupportedError("a constructor argument of more than 64 bits", argument.span)
        values.append(value)
    resource = ir.CustomObject(declaration.name, name, tuple(values), node.span)
    frame.unit.custom_objects.append(resource)
    return CustomExtern(resource)
