"""Conversions: implicit ones of P4 (spec section 8.11.2) and explicit casts (8.11.1)."""

from __future__ import annotations

from v1model.errors import CompileError, UnsupportedError
from v1model.frontend import ast
from v1model.frontend.check.block_mismatch import block_mismatch
from v1model.frontend.check.constants import fold_cast
from v1model.frontend.check.show import show
from v1model.frontend.check.substitute import DONT_CARE, unify
from v1model.frontend.types import (
    BitType,
    BoolType,
    DeclaredType,
    EnumType,
    IntegerType,
    ListType,
    NewType,
    RecordType,
    SetType,
    StackType,
    TupleType,
    Type,
)


def convert(node: ast.Expression, target: Type) -> ast.Expression:
    """Return a checked expression as a value of `target`, in a Cast where P4 converts implicitly."""
    if node.type == target or target == DONT_CARE:
        return node
    match node:
        case ast.ListExpression() if converted := _convert_list(node, target):
            return converted
        case ast.StructExpression() if converted := _convert_struct(node, target):
            return converted
        case ast.InvalidExpression() if is_header(target):
            node.type = target
            return node
        case ast.DefaultExpression():
            node.type = target
            return node
        case ast.Ternary() if isinstance(target, RecordType):
            node.then, node.otherwise = convert(node.then, target), convert(node.otherwise, target)
            node.type = target
            return node
    if isinstance(node.type, SetType) and isinstance(target, SetType):
        return _convert_set(node, target)
    if isinstance(target, DeclaredType) and node.type is not None and unify(target, node.type, {}):
        return node
    if not _converts(node, target):
        if error := block_mismatch(target, node.type, node.span):
            raise error
        message = f"expected {show(target)}, found {show(node.type)}"
        raise CompileError(message, node.span, _hint(node, target))
    return make_cast(node, target)


def make_cast(node: ast.Expression, target: Type) -> ast.Cast:
    ref = ast.TypeRef(node.span, resolved=target)
    return ast.Cast(node.span, ref, node, type=target, constant=fold_cast(node.constant, target))


def refuse_cut(node: ast.Expression) -> None:
    """Refuse an implicit conversion of a known `int` to a bit<W> or int<W> that is too narrow.

    A negative number may stand for its bit pattern.
    """
    given = node.operand.constant if isinstance(node, ast.Cast) else None
    if not isinstance(given, int) or not isinstance(node.type, BitType) or not isinstance(node, ast.Cast):
        return
    limit = 1 << (node.type.width - 1 if node.type.signed and node.type.width else node.type.width)
    if isinstance(node.operand.type, IntegerType) and not -limit <= given < limit:
        raise CompileError(f"{given} does not fit {show(node.type)}", node.span)


def refuse_cut_key(key: ast.Expression) -> None:
    """Refuse a key of an entry, select case or switch that is too wide ever to equal its subject.

    Each part of a list, mask or range is checked.
    """
    if isinstance(key, ast.ListExpression):
        for element in key.elements:
            refuse_cut_key(element)
    elif isinstance(key, ast.Binary) and isinstance(key.type, SetType):
        refuse_cut(key.left)
        refuse_cut(key.right)
    else:
        refuse_cut(key)


def is_header(found: Type | None) -> bool:
    """Return whether the type is a header or a header union."""
    return isinstance(found, RecordType) and found.kind != "struct"


def _converts(node: ast.Expression, target: Type) -> bool:
    """Return whether P4 converts an expression to `target` implicitly.

    An int converts to bit<W>, int<W> or a new type of those, and a known value also back to int. A
    serializable enum converts to its underlying type.
    """
    if isinstance(node.type, IntegerType):
        while isinstance(target, NewType):
            target = target.base
        return isinstance(target, BitType)
    if isinstance(node.type, BitType) and isinstance(target, IntegerType):
        return node.constant is not None
    return isinstance(node.type, EnumType) and node.type.underlying == target


def _hint(node: ast.Expression, target: Type) -> str:
    if isinstance(node.type, BitType | IntegerType) and isinstance(target, BoolType):
        return "compare it, as in ... != 0"
    castable = isinstance(node.type, BitType | NewType | EnumType | BoolType | IntegerType)
    if castable and isinstance(target, BitType | NewType | EnumType | BoolType):
        return f"cast it: ({show(target)})(...)" if can_cast(node.type, target) else ""
    return ""


# --- lists and structs -------------------------------------------------------------------


def _convert_list(node: ast.ListExpression, target: Type) -> ast.Expression | None:
    """Return a list expression as tuple, list, struct, header or stack; None if `target` is none of them."""
    if isinstance(target, ListType):
        types = [target.element] * len(node.elements)
    elif isinstance(target, StackType):
        types = [target.element] * target.size
    elif isinstance(target, TupleType):
        types = list(target.elements)
    elif isinstance(target, RecordType) and target.kind != "header_union":
        types = [kind for _, kind in target.fields]
    elif isinstance(target, SetType) and isinstance(target.element, TupleType | RecordType):
        return _convert_list(node, target.element)
    else:
        return None
    if len(node.elements) > len(types) or (len(node.elements) < len(types) and not node.has_rest):
        raise CompileError(
            f"{len(node.elements)} elements where {show(target)} has {len(types)}",
            node.span,
            "" if len(node.elements) > len(types) else "end it with ', ...' to default the rest",
        )
    node.elements = [convert(element, kind) for element, kind in zip(node.elements, types, strict=False)]
    node.type, node.constant = target, list_constant(node)
    return node


def list_constant(node: ast.ListExpression) -> tuple[object, ...] | None:
    """Return the elements' values if all are known, else None."""
    values = tuple(element.constant for element in node.elements)
    return None if node.has_rest or None in values else values


def _convert_struct(node: ast.StructExpression, target: Type) -> ast.Expression | None:
    """Return an untyped `{f = a}` as a struct or header; None if it can't be `target`."""
    if not isinstance(target, RecordType) or target.kind == "header_union":
        return None
    if isinstance(node.type, RecordType) and node.type.name:
        return None
    types = dict(target.fields)
    for name, value in node.fields.items():
        if name not in types:
            raise CompileError(f"{show(target)} has no field {name!r}", value.span)
        node.fields[name] = convert(value, types[name])
    missing = [name for name in types if name not in node.fields]
    if missing and not node.has_rest:
        hint = "end it with ', ...' to default the rest"
        raise CompileError(f"field {missing[0]!r} of {show(target)} is missing", node.span, hint)
    node.type = target
    values = tuple(node.fields[name].constant if name in node.fields else None for name in types)
    node.constant = None if None in values else values
    return node


def _convert_set(node: ast.Expression, target: SetType) -> ast.Expression:
    """Convert the operands of `&&&` or `..` to the element type."""
    if not isinstance(node, ast.Binary):
        raise CompileError(f"expected {show(target)}, found {show(node.type)}", node.span)
    node.left, node.right = convert(node.left, target.element), convert(node.right, target.element)
    node.type = target
    return node


# --- explicit casts ----------------------------------------------------------------------


def cast(node: ast.Cast, target: Type) -> ast.Expression:
    """Check an explicit cast to `target`, whose operand is already checked."""
    operand = node.operand
    if isinstance(operand, ast.ListExpression | ast.StructExpression | ast.InvalidExpression):
        node.operand = operand = convert(operand, target)
    elif not can_cast(operand.type, target) and not _is_bool_constant(operand, target):
        raise CompileError(f"cannot cast {show(operand.type)} to {show(target)}", node.span)
    if isinstance(target, IntegerType) and operand.constant is None:
        hint = "cast it to a width that holds the result, as in int<64>"
        raise UnsupportedError("an int that is not known at compile time", node.span, hint)
    node.type, node.constant = target, fold_cast(operand.constant, target)
    return node


def _is_bool_constant(operand: ast.Expression, target: Type) -> bool:
    """Return whether the cast is one of an `int` 0 or 1 to bool."""
    return isinstance(operand.type, IntegerType) and target == BoolType() and operand.constant in (0, 1)


def can_cast(source: Type | None, target: Type) -> bool:
    """Return whether a cast from `source` to `target` may be written."""
    if source == target:
        return True
    match source, target:
        case BitType(), BitType():
            return source.width == target.width or source.signed == target.signed
        case (BitType(1, False), BoolType()) | (BoolType(), BitType(1, False)):
            return True
        case (IntegerType(), BitType()) | (BitType(), IntegerType()):
            return True
        case NewType(), NewType():
            return can_cast(source.base, target) or can_cast(source, target.base)
        case NewType(), _:
            return can_cast(source.base, target)
        case _, NewType():
            return can_cast(source, target.base)
        case EnumType(), _ if source.underlying:
            return can_cast(source.underlying, target)
        case _, EnumType() if target.underlying:
            return source == target.underlying or isinstance(source, IntegerType)
        case TupleType(elements), RecordType() if target.kind == "struct":
            return elements == tuple(kind for _, kind in target.fields)
    return False
