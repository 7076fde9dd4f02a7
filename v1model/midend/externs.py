"""Calls of v1model's extern functions and of its objects' methods."""

from __future__ import annotations

from typing import TYPE_CHECKING

from v1model import ir
from v1model.errors import CompileError, UnsupportedError
from v1model.frontend import ast
from v1model.frontend import types as t
from v1model.midend import custom_externs, packets
from v1model.midend.arguments import arguments
from v1model.midend.inline import named_object
from v1model.midend.scope import CustomExtern, ExternObject, Packet, plane_name
from v1model.midend.values import VOID, as_path

if TYPE_CHECKING:
    from collections.abc import Iterator

    from v1model.midend.frame import Frame

# Blocks in which a function has a meaning, as in p4c's back end; the others may be called anywhere.
_PIPELINE = ("ingress", "egress")
_PLACES: dict[str, tuple[str, ...]] = {
    "digest": ("ingress",),
    "resubmit": ("ingress",),
    "resubmit_preserving_field_list": ("ingress",),
    # Called in ingress it takes effect when egress has ended, as in simple_switch.
    "recirculate": _PIPELINE,
    "recirculate_preserving_field_list": _PIPELINE,
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
    """Lower a call of an extern function."""
    assert isinstance(node.declaration, ast.FunctionDeclaration), node
    name = node.declaration.name
    if name == "static_assert":
        return _static_assert(frame, node)
    if name == "verify":
        _verify(frame, node)
    elif name not in _PLACES:
        return custom_externs.function(frame, node)
    elif _PLACES[name] and frame.builder.name not in _PLACES[name]:
        raise CompileError(f"{name} is only possible in {' and '.join(_PLACES[name])}", node.span)
    else:
        _v1model_function(frame, node, name)
    return VOID


def _v1model_function(frame: Frame, node: ast.Call, name: str) -> None:
    values = arguments(frame, node)
    instance = ""
    kept: tuple[ir.Expr, ...] = ()
    if name == "digest":
        instance, values[1] = _digest(frame, node), as_path(frame, values[1])
    elif name == "mark_to_drop" and not values:
        values = [ir.Var("standard_metadata", frame.unit.standard_metadata)]
    elif name.endswith("_preserving_field_list"):
        kept = _field_list(frame, values[-1], node)
    elif name in _KEEPS_DATA:
        kept = _listed(values.pop())
    frame.emit(ir.ExternCall(instance, name, tuple(values), kept, node.span))


def _verify(frame: Frame, node: ast.Call) -> None:
    if not frame.builder.is_parser:
        raise CompileError("verify is only possible in a parser", node.span)
    condition, error = arguments(frame, node)
    frame.emit(ir.Verify(condition, error))


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


def _digest(frame: Frame, node: ast.Call) -> str:
    """Return the name of the digest that a call sends: its type's, or a made-up one."""
    type_ = frame.scope.closed(node.inferred[0])
    shape = frame.unit.shapes.of(type_, node.span)
    if isinstance(type_, t.RecordType):
        name = plane_name(type_.declaration, "")
    else:
        name = f"digest_{sum(digest.startswith('digest_') for digest in frame.unit.digests)}"
    frame.unit.digests.setdefault(name, ir.Digest(name, shape, type_))
    return name


def _field_list(frame: Frame, index: ir.Expr, node: ast.Call) -> tuple[ir.Expr, ...]:
    """Return the fields of the user's metadata, also nested ones, that have @field_list(index)."""
    if not isinstance(index, ir.Const):
        raise CompileError("the index of a field list must be known at compile time", node.span)
    return tuple(_annotated(frame, ir.Var("metadata", frame.unit.metadata), index))


def _annotated(frame: Frame, struct: ir.Expr, index: ir.Const) -> Iterator[ir.Expr]:
    """Yield the fields of a struct, and of the structs in it, that are in a field list."""
    assert isinstance(struct.type, ir.Struct)
    source = frame.unit.shapes.sources.get(struct.type.name)
    declared = {field.name: field for field in source.declaration.fields} if source else {}  # a tuple: none
    for name, type_ in struct.type.fields:
        place = ir.Member(struct, name, type_)
        if name in declared and _is_listed(frame, declared[name].annotations, index):
            yield place
        elif isinstance(type_, ir.Struct):
            yield from _annotated(frame, place, index)


def _is_listed(frame: Frame, annotations: list[ast.Annotation], index: ir.Const) -> bool:
    return any(
        frame.expression(expression) == ir.Const(index.value, frame.shape(expression))
        for annotation in annotations
        if annotation.name == "field_list"
        for expression in annotation.expressions
    )


def _listed(data: ir.Expr) -> tuple[ir.Expr, ...]:
    """Return the places in a list of fields."""
    if isinstance(data, ir.Aggregate):
        return tuple(place for value in data.values for place in _listed(value))
    return (data,) if isinstance(data, ir.Var | ir.Member | ir.Index) else ()


def method(frame: Frame, node: ast.Call) -> ir.Expr:
    """Lower a call of a method of an extern object or of the packet."""
    assert isinstance(node.callee, ast.Member), node
    target = named_object(frame, node.callee.base)
    if isinstance(target, Packet):
        return packets.call(frame, node, node.callee.member)
    if isinstance(target, CustomExtern):
        return custom_externs.method(frame, node, target)
    if not isinstance(target, ExternObject):
        raise UnsupportedError(f"a call of {node.callee.member}", node.span)
    resource = target.resource
    if resource.kind == "direct_counter":
        frame.unit.direct_uses.setdefault((resource.kind, resource.name), node.span)
        return VOID  # it counts with its table anyway
    values = arguments(frame, node)
    if resource.kind == "direct_meter":
        if frame.unit.meter_targets.setdefault(resource.name, values[0]) != values[0]:
            message = f"direct meter {resource.name} leaves its colour in two places"
            raise CompileError(message, node.span, "all calls of read take the same variable")
        frame.unit.direct_uses.setdefault((resource.kind, resource.name), node.span)
        return VOID
    frame.emit(ir.ExternCall(resource.name, node.callee.member, tuple(values), span=node.span))
    return VOID
