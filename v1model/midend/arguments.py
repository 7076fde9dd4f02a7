"""Arguments of externs: values, and places to write to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from v1model import ir
from v1model.frontend import ast
from v1model.frontend import types as t

if TYPE_CHECKING:
    from v1model.midend.frame import Frame


def arguments(frame: Frame, node: ast.Call) -> list[ir.Expr]:
    """Return the arguments by parameter: values of `in` parameters, places of `out` and `inout` ones.

    They are evaluated from left to right as the call is written (spec section 6.8).
    """
    order = sorted(range(len(node.arguments)), key=lambda index: node.arguments[index].position)
    values: list[tuple[ir.Expr, bool]] = []
    for argument in (node.arguments[index] for index in order):
        before = len(frame.builder.out)
        written = argument.parameter is not None and argument.parameter.direction in ("out", "inout")
        if argument.value is None:
            assert argument.parameter is not None
            value: ir.Expr = _discarded(frame, node, argument.parameter)
        else:
            value = frame.expression(argument.value)
        if len(frame.builder.out) > before:
            values = [
                ((frame.builder.pinned_at if out else frame.builder.saved_at)(before, earlier), out)
                for earlier, out in values
            ]
        values.append((value, written))
    by_parameter = dict(zip(order, values, strict=True))
    return [by_parameter[index][0] for index in range(len(order))]


def _discarded(frame: Frame, node: ast.Call, parameter: ast.Parameter) -> ir.Var:
    """Return a variable for an `out` argument written as `_`."""
    type_ = parameter.type_ref.resolved
    if isinstance(type_, t.TypeVariable):
        assert isinstance(node.declaration, ast.FunctionDeclaration)
        position = node.declaration.type_parameters.index(type_.name)
        type_ = node.inferred[position]
    assert type_ is not None
    return frame.builder.temporary(frame.unit.shapes.of(frame.scope.closed(type_), node.span))
