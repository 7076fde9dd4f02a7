"""Calls of v1model's externs and of packet_in and packet_out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from v1model import ir
from v1model.errors import CompileError, UnsupportedError
from v1model.frontend import ast
from v1model.frontend import types as t
from v1model.midend.inline import named_object
from v1model.midend.scope import ExternObject, Packet, plane_name
from v1model.midend.values import VOID, as_path, root

if TYPE_CHECKING:
    from v1model.midend.frame import Frame

# The blocks in which a function means something, as p4c's back end has it; the rest may stand anywhere.
_PIPELINE = ("ingress", "egress")
_PLACES: dict[str, tuple[str, ...]] = {
    "digest": ("ingress",),
    "resubmit": ("ingress",),
    "resubmit_preserving_field_list": ("ingress",),
    "recirculate": ("egress",),
    "recirculate_preserving_field_list": ("egress",),
    "clone": _PIPELINE,
    "clone3": _PIPELINE,
    "clone_preserving_field_list": _PIPELINE,
    "mark_to_drop": _PIPELINE,
    "truncate": _PIPELINE,
    "hash": (),
    "random": (),
    "verify_checksum": ("verify_checksum",),
    "verify_checksum_with_payload": ("verify_checksum",),
    "update_checksum": ("compute_checksum",),
    "update_checksum_with_payload": ("compute_checksum",),
    "log_msg": (),
    "assert": (),
    "assume": (),
}
_KEEPS_DATA = ("resubmit", "recirculate", "clone3")


def function(frame: Frame, node: ast.Call) -> ir.Expr:
    """A call of an extern function."""
    assert isinstance(node.declaration, ast.FunctionDeclaration), node
    name = node.declaration.name
    if name == "static_assert":
        return _static_assert(frame, node)
    if name == "verify" and not frame.builder.is_parser:
        raise CompileError("verify is only possible in a parser", node.span)
    if name == "verify":
        condition, error = arguments(frame, node)
        frame.emit(ir.Verify(condition, error))
        return VOID
    if name not in _PLACES:
        raise UnsupportedError(f"extern function {name} is not one of v1model's", node.span)
    places = _PLACES[name]
    if places and frame.builder.name not in places:
        raise CompileError(f"{name} is only possible in {' and '.join(places)}", node.span)
    values = arguments(frame, node)
    if name == "digest":
        values[1] = as_path(frame, values[1])
        frame.emit(ir.ExternCall(_digest(frame, node), name, tuple(values), span=node.span))
        return VOID
    kept: tuple[ir.Expr, ...] = ()
    if name == "mark_to_drop" and not values:
        values = [ir.Var("standard_metadata", frame.unit.standard_metadata)]
    elif name.endswith("_preserving_field_list"):
        kept = _field_list(frame, values[-1], node)
    elif name in _KEEPS_DATA:
        kept = _listed(values.pop())
    frame.emit(ir.ExternCall("", name, tuple(values), kept, node.span))
    return VOID


def _static_assert(frame: Frame, node: ast.Call) -> ir.Expr:
    values = arguments(frame, node)
    if not isinstance(values[0], ir.Const):
        raise CompileError("static_assert: the condition must be known at compile time", node.span)
    if not values[0].value:
        message = (
            values[1].value if len(values) > 1 and isinstance(values[1], ir.Const) else "it does not hold"
        )
        raise CompileError(f"static_assert: {message}", node.span)
    return ir.Const(1, ir.Bool())


def arguments(frame: Frame, node: ast.Call) -> list[ir.Expr]:
    """The arguments left to right: values of `in` parameters, places of `out` and `inout` ones."""
    values: list[tuple[ir.Expr, bool]] = []
    for argument in node.arguments:
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
    return [value for value, _ in values]


def _discarded(frame: Frame, node: ast.Call, parameter: ast.Parameter) -> ir.Var:
    """A variable for an `out` argument written as `_`."""
    type_ = parameter.type_ref.resolved
    if isinstance(type_, t.TypeVariable):
        assert isinstance(node.declaration, ast.FunctionDeclaration)
        position = node.declaration.type_parameters.index(type_.name)
        type_ = node.inferred[position]
    assert type_ is not None
    return frame.builder.temporary(frame.unit.shapes.of(frame.scope.closed(type_), node.span))


def _digest(frame: Frame, node: ast.Call) -> str:
    """The name of the digest that a call sends: its type's, or one made up where it has none."""
    type_ = frame.scope.closed(node.inferred[0])
    shape = frame.unit.shapes.of(type_, node.span)
    if isinstance(type_, t.RecordType):
        name = plane_name(type_.declaration, "")
    else:
        name = f"digest_{sum(digest.startswith('digest_') for digest in frame.unit.digests)}"
    frame.unit.digests.setdefault(name, ir.Digest(name, shape, type_))
    return name


def _field_list(frame: Frame, index: ir.Expr, node: ast.Call) -> tuple[ir.Expr, ...]:
    """The fields of the user's metadata annotated with @field_list(index)."""
    if not isinstance(index, ir.Const):
        raise CompileError("the index of a field list must be known at compile time", node.span)
    metadata = frame.unit.metadata
    declaration = frame.unit.shapes.sources[metadata.name].declaration
    annotated = {
        field.name
        for field in declaration.fields
        for annotation in field.annotations
        if annotation.name == "field_list"
        and any(frame.expression(e) == ir.Const(index.value, frame.shape(e)) for e in annotation.expressions)
    }
    variable = ir.Var("metadata", metadata)
    return tuple(ir.Member(variable, name, type_) for name, type_ in metadata.fields if name in annotated)


def _listed(data: ir.Expr) -> tuple[ir.Expr, ...]:
    """The places in a list of fields."""
    if isinstance(data, ir.Aggregate):
        return tuple(place for value in data.values for place in _listed(value))
    return (data,) if isinstance(data, ir.Var | ir.Member | ir.Index) else ()


def method(frame: Frame, node: ast.Call) -> ir.Expr:
    """A call of a method of an extern object or of the packet."""
    assert isinstance(node.callee, ast.Member), node
    target = named_object(frame, node.callee.base)
    if isinstance(target, Packet):
        return _packet(frame, node, node.callee.member)
    if not isinstance(target, ExternObject):
        raise UnsupportedError(f"a call of {node.callee.member}", node.span)
    resource = target.resource
    if resource.kind == "direct_counter":
        return VOID  # counts with its table, whatever the action says
    values = arguments(frame, node)
    if resource.kind == "direct_meter":
        frame.unit.meter_targets[resource.name] = values[0]
        return VOID
    frame.emit(ir.ExternCall(resource.name, node.callee.member, tuple(values), span=node.span))
    return VOID


def _packet(frame: Frame, node: ast.Call, name: str) -> ir.Expr:
    match name:
        case "extract":
            _extract(frame, node)
        case "emit":
            _emit(frame, arguments(frame, node)[0], node)
        case "advance":
            frame.emit(ir.Advance(arguments(frame, node)[0]))
        case "length":
            return frame.save(ir.PacketLength())
        case "lookahead":
            type_ = frame.unit.shapes.of(frame.scope.closed(node.inferred[0]), node.span)
            return frame.save(ir.Lookahead(type_))
        case _:
            raise UnsupportedError(f"{name} of a packet", node.span)
    return VOID


def _extract(frame: Frame, node: ast.Call) -> None:
    if node.arguments[0].value is None:
        header = frame.unit.shapes.of(frame.scope.closed(node.inferred[0]), node.span)
        assert isinstance(header, ir.Header)
        frame.emit(ir.Extract(None, header))
        return
    values = arguments(frame, node)
    target = values[0]
    if not isinstance(target.type, ir.Header):
        raise UnsupportedError("extract of something that is no header", node.span)
    frame.emit(ir.Extract(target, target.type, values[1] if len(values) > 1 else None))
    if isinstance(target, ir.Member) and isinstance(target.base.type, ir.Union):
        frame.emit(ir.SetValid(target, valid=True))


def _emit(frame: Frame, value: ir.Expr, node: ast.Call) -> None:
    if isinstance(value, ir.Aggregate) and isinstance(value.type, ir.Struct):
        for part in value.values:
            _emit(frame, part, node)
        return
    if not isinstance(value.type, ir.Struct | ir.Header | ir.Union | ir.Stack):
        raise UnsupportedError(
            "emit of something that is no header, stack, union or struct of these", node.span
        )
    if isinstance(value, ir.Aggregate):
        value = frame.save(value)
    assert root(value)
    frame.emit(ir.Emit(value))
