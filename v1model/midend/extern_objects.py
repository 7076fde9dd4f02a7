"""v1model's extern objects: the control plane's view of their instances."""

from __future__ import annotations

from typing import TYPE_CHECKING

from v1model import ir
from v1model.errors import CompileError, UnsupportedError
from v1model.frontend import ast
from v1model.frontend.check.show import show
from v1model.midend.scope import ExternObject

if TYPE_CHECKING:
    from v1model.frontend import types as t
    from v1model.midend.frame import Frame

KINDS = frozenset(
    (
        "register",
        "counter",
        "direct_counter",
        "meter",
        "direct_meter",
        "action_profile",
        "action_selector",
    )
)
MAX_INSTANCE_SIZE = 1 << 28  # cells
MAX_ARRAYS_BYTES = 1 << 31  # all arrays of a program; packets may write to each cell
_CELL_BYTES = {"counter": 16, "meter": 128}


def instantiate(
    frame: Frame,
    declaration: ast.ExternDeclaration,
    types: tuple[t.Type, ...],
    arguments: list[ast.Argument],
    name: str,
    node: ast.Call | ast.Instantiation,
) -> ExternObject:
    """Return an extern's instance, and add it to the program."""
    for argument in arguments:
        _refuse_cut(argument.value)
    given = {
        a.parameter.name: frame.expression(a.value)
        for a in arguments
        if a.parameter is not None and a.value is not None
    }
    resource = ir.ExternInstance(
        kind=declaration.name,
        name=name,
        size=_size(given.get("size"), node),
        unit=_unit(frame, declaration.name, given.get("type")),
        value_type=_value_type(frame, types, node) if declaration.name == "register" else None,
        algorithm=frame.unit.enum_member("HashAlgorithm", given["algorithm"]) if "algorithm" in given else "",
        output_width=_size(given.get("outputWidth"), node),
        annotations=tuple(node.annotations) if isinstance(node, ast.Instantiation) else (),
        span=node.span,
        p4_types=types,
        has_typedef=_has_typedef(node, declaration),
    )
    if any(known.name == name for known in frame.unit.externs):
        raise CompileError(f"two extern instances are called {name}", node.span)
    frame.unit.array_bytes += resource.size * _cell_bytes(resource)
    if frame.unit.array_bytes > MAX_ARRAYS_BYTES:
        raise CompileError(f"registers, counters and meters of more than {MAX_ARRAYS_BYTES} bytes", node.span)
    frame.unit.externs.append(resource)
    return ExternObject(resource)


def _has_typedef(node: ast.Call | ast.Instantiation, declaration: ast.ExternDeclaration) -> bool:
    ref = node.type_ref if isinstance(node, ast.Instantiation) else None
    return isinstance(ref, ast.NamedTypeRef) and ref.name != declaration.name


def _refuse_cut(node: ast.Expression | None) -> None:
    """Refuse a number that the parameter's type cuts: a register of 2**40 cells would have none."""
    given = node.operand.constant if isinstance(node, ast.Cast) else None
    if node is not None and isinstance(given, int) and given != node.constant:
        raise CompileError(f"{given} does not fit {show(node.type)}", node.span)


def _cell_bytes(resource: ir.ExternInstance) -> int:
    if isinstance(resource.value_type, ir.Bits):
        return (resource.value_type.width + 7) // 8
    return _CELL_BYTES.get(resource.kind, 1)


def _size(value: ir.Expr | None, node: ast.Node) -> int:
    if value is None:
        return 0
    if not isinstance(value, ir.Const) or not isinstance(value.value, int):
        raise CompileError("the size of an extern must be known at compile time", node.span)
    if not 0 <= value.value <= MAX_INSTANCE_SIZE:
        raise CompileError(f"a size of {value.value}: not in 0..{MAX_INSTANCE_SIZE}", node.span)
    return value.value


def _unit(frame: Frame, kind: str, value: ir.Expr | None) -> str:
    if value is None:
        return ""
    return frame.unit.enum_member("CounterType" if "counter" in kind else "MeterType", value)


def _value_type(frame: Frame, types: tuple[t.Type, ...], node: ast.Node) -> ir.Type:
    type_ = frame.unit.shapes.of(types[0], node.span)
    if not isinstance(type_, ir.Bits | ir.Bool):
        raise UnsupportedError("a register of anything but bit<>, int<> and bool", node.span)
    return type_
