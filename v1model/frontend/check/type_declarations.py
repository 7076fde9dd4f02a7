"""Declarations of types: structs, headers, unions, enums, errors, match kinds, typedefs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from v1model.errors import CompileError, UnsupportedError
from v1model.frontend import ast
from v1model.frontend.check import values
from v1model.frontend.check.convert import refuse_cut
from v1model.frontend.check.resolve import can_be_field, compile_time_part, complete, resolve, runtime
from v1model.frontend.check.rules import check_as
from v1model.frontend.check.show import show
from v1model.frontend.types import (
    BitType,
    BoolType,
    EnumType,
    IntegerType,
    NewType,
    RecordType,
    Type,
    TypeVariable,
    VarbitType,
)

if TYPE_CHECKING:
    from v1model.frontend.check.scope import Context


def check_struct(c: Context, node: ast.StructDeclaration) -> None:
    """Check a struct, header or header union; a generic one gets a type with its own type variables."""
    fields: dict[str, Type] = {}
    with c.nested():
        c.declare_type_variables(node.type_parameters, node.span)
        for field in node.fields:
            with c.diagnostics.recovering(field.name):
                if field.name in fields:
                    raise CompileError(f"field {field.name!r} is already declared", field.span)
                fields[field.name] = _field_type(c, node, field)
                values.check_annotations(c, field.annotations)
    with c.diagnostics.recovering():
        _check_varbits(node)
    arguments = tuple(TypeVariable(name) for name in node.type_parameters)
    c.declare(node)
    c.nominal[node] = RecordType(node.kind, node.name, tuple(fields.items()), node, arguments)
    values.check_annotations(c, node.annotations)


def _field_type(c: Context, node: ast.StructDeclaration, field: ast.FieldDeclaration) -> Type:
    if node.kind == "struct":
        found = complete(c, field.type_ref)
        if compile_time_part(c, found) == IntegerType():
            # Only constants can have such a type; a variable of it is refused at its declaration.
            return found
    found = runtime(c, field.type_ref, f"field {field.name!r}")
    if not can_be_field(node.kind, found):
        raise CompileError(f"a {node.kind} cannot have a field of {show(found)}", field.type_ref.span)
    return found


def _check_varbits(node: ast.StructDeclaration) -> None:
    varbits = [field for field in node.fields if isinstance(field.type_ref.resolved, VarbitType)]
    if node.kind == "header" and len(varbits) > 1:
        raise UnsupportedError(f"header {node.name!r} has more than one varbit field", varbits[1].span)


# --- enums, errors, match kinds ----------------------------------------------------------


def check_enum(c: Context, node: ast.EnumDeclaration) -> None:
    underlying: BitType | None = None
    if node.underlying is not None:
        found = resolve(c, node.underlying)
        if not isinstance(found, BitType):
            raise CompileError(f"an enum cannot be based on {show(found)}", node.underlying.span)
        underlying = found
    members = tuple(
        (name, _enum_value(c, node, name, position, underlying)) for position, name in enumerate(node.members)
    )
    c.declare(node)
    c.nominal[node] = EnumType(node.name, members, underlying, node)
    values.check_annotations(c, node.annotations)


def _enum_value(
    c: Context, node: ast.EnumDeclaration, name: str, position: int, underlying: BitType | None
) -> int:
    value = node.members[name]
    if underlying is None:
        if value is not None:
            hint = f"write enum bit<8> {node.name}"
            raise CompileError(f"{name!r} has a value but the enum no underlying type", value.span, hint)
        return position
    if value is None:
        raise CompileError(f"member {name!r} of enum {node.name!r} needs a value", node.span)
    checked = node.members[name] = check_as(c, value, underlying)
    if not isinstance(checked.constant, int):
        raise CompileError(f"the value of {name!r} must be known at compile time", value.span)
    refuse_cut(checked)
    return checked.constant


def check_error(c: Context, node: ast.ErrorDeclaration) -> None:
    _number(node, node.members, c.errors)


def check_match_kind(c: Context, node: ast.MatchKindDeclaration) -> None:
    _number(node, node.members, c.match_kinds)
    for name in node.members:
        c.scope.symbols.setdefault(name, node)


def _number(node: ast.Declaration, names: list[str], indices: dict[str, int]) -> None:
    for name in names:
        if name in indices:
            raise CompileError(f"{node.name} {name!r} is already declared", node.span)
        indices[name] = len(indices)


# --- typedefs ----------------------------------------------------------------------------


def check_typedef(c: Context, node: ast.TypedefDeclaration) -> None:
    base = complete(c, node.type_ref)
    if node.is_new and not isinstance(base, BitType | BoolType | NewType | EnumType):
        raise CompileError(f"'type' cannot be based on {show(base)}", node.type_ref.span)
    c.declare(node)
    c.nominal[node] = NewType(node.name, base, node) if node.is_new else base
    values.check_annotations(c, node.annotations)
