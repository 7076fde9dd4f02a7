"""Values of composite types: conversions, defaults, places and whether they overlap."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeGuard

from v1model import ir
from v1model.errors import UnsupportedError
from v1model.midend import fold

if TYPE_CHECKING:
    from collections.abc import Iterator

    from v1model.frontend.ast import Span
    from v1model.midend.frame import Frame

VOID = ir.Aggregate((), ir.Struct("void", ()))  # result of a call that returns nothing; never read
Composite = ir.Struct | ir.Header | ir.Union | ir.Stack


def is_composite(type_: ir.Type) -> bool:
    return isinstance(type_, Composite)


def invalid(type_: ir.Type) -> ir.Aggregate:
    """Return an invalid header or union, or a stack of such."""
    return ir.Aggregate((), type_, valid=isinstance(type_, ir.Stack))


def default_value(type_: ir.Type) -> ir.Expr:
    """Return P4's default: zero, false, the first member, invalid (spec section 7.3)."""
    match type_:
        case ir.Struct(fields=fields):
            return ir.Aggregate(tuple(default_value(field) for _, field in fields), type_)
        case ir.Header() | ir.Union() | ir.Stack():
            return invalid(type_)
        case ir.Bool():
            return fold.FALSE
        case _:
            return ir.Const(0, type_)


def convert(frame: Frame, value: ir.Expr, type_: ir.Type, span: Span) -> ir.Expr:
    """Return `value` as a `type_`: scalars are cast, lists and structs field by field."""
    if value.type == type_:
        return value
    if not is_composite(type_) and not is_composite(value.type):
        return fold.cast(value, type_)
    if isinstance(value, ir.Aggregate) and not value.valid:
        return invalid(type_)
    if isinstance(type_, ir.Stack) and isinstance(value, ir.Aggregate):
        return ir.Aggregate(tuple(convert(frame, v, type_.element, span) for v in value.values), type_)
    if not isinstance(type_, ir.Struct | ir.Header):
        raise UnsupportedError("a conversion between types of different kinds", span)
    parts = _parts(value, span)
    fields = [field for _, field in type_.fields]
    converted = [convert(frame, part, field, span) for part, field in zip(parts, fields, strict=True)]
    return ir.Aggregate(tuple(converted), type_)


def _parts(value: ir.Expr, span: Span) -> list[ir.Expr]:
    """Return the fields of a struct or header."""
    if isinstance(value, ir.Aggregate):
        return list(value.values)
    if not isinstance(value.type, ir.Struct | ir.Header):
        raise UnsupportedError("a conversion between types of different kinds", span)
    return [fold.member(value, name) for name, _ in value.type.fields]


def reset(target: ir.Expr) -> Iterator[ir.Stmt]:
    """Yield statements that make the headers in a fresh variable or an `out` parameter invalid."""
    match target.type:
        case ir.Header() | ir.Union() | ir.Stack():
            yield ir.Assign(target, invalid(target.type))
        case ir.Struct(fields=fields):
            for name, _ in fields:
                yield from reset(fold.member(target, name))
        case _:
            pass


def assign(frame: Frame, target: ir.Expr, value: ir.Expr) -> None:
    """Emit target = value, by value even if an aggregate reads what it overwrites.

    A member of a header union invalidates the others, valid or not (spec section 8.20: u.h = e is
    u.h.setInvalid() if e is invalid).
    """
    made_valid = list(_made_valid(target, value))
    if isinstance(value, ir.Aggregate) and value.values and _reads(value, root(target)):
        value = frame.save(value)
    frame.emit(*made_valid, ir.Assign(target, value))
    if is_union_member(target):
        frame.emit(ir.If(ir.IsValid(target), (ir.SetValid(target, valid=True),), tuple(set_invalid(target))))


def _made_valid(target: ir.Expr, value: ir.Expr) -> Iterator[ir.Stmt]:
    """Yield setValid() of each header that gets its fields from a list.

    p4c assigns lists so, and a switch that counts `packet_length` then sees one header more. Copies of
    headers change no length.
    """
    if not isinstance(value, ir.Aggregate) or not value.valid:
        return
    match target.type:
        case ir.Header():
            yield ir.SetValid(target, valid=True)
        case ir.Struct(fields=fields):
            for (name, _), part in zip(fields, value.values, strict=False):
                yield from _made_valid(fold.member(target, name), part)
        case ir.Stack(element=element):
            for position, part in enumerate(value.values):
                yield from _made_valid(ir.Index(target, fold.bits(position, ir.Bits(32)), element), part)
        case _:
            pass


def is_union_member(place: ir.Expr) -> TypeGuard[ir.Member]:
    """Return whether an l-value is a header in a header union."""
    return isinstance(place, ir.Member) and isinstance(place.base.type, ir.Union)


def set_invalid(header: ir.Expr) -> Iterator[ir.Stmt]:
    """Yield the statements of header.setInvalid(); of a header union no member stays valid.

    This is spec section 8.20; BMv2 with p4c leaves the others as they are (p4c issue 4448).
    """
    if is_union_member(header):
        assert isinstance(header.base.type, ir.Union)
        for name, type_ in header.base.type.fields:
            yield ir.SetValid(ir.Member(header.base, name, type_), valid=False)
    else:
        yield ir.SetValid(header, valid=False)


def root(place: ir.Expr) -> str:
    """Return the name of the variable that an l-value is part of."""
    while not isinstance(place, ir.Var):
        assert isinstance(place, ir.Member | ir.Index | ir.Slice | ir.StackNext | ir.StackLast), place
        place = place.base
    return place.name


def _reads(value: ir.Expr, name: str) -> bool:
    if isinstance(value, ir.Var):
        return value.name == name
    return any(_reads(operand, name) for operand in operands(value))


def operands(value: ir.Expr) -> tuple[ir.Expr, ...]:
    """Return the operands of an expression."""
    match value:
        case ir.Member(base=base) | ir.Slice(base=base) | ir.IsValid(base=base):
            return (base,)
        case ir.StackNext(base=base) | ir.StackLast(base=base) | ir.StackLastIndex(base=base):
            return (base,)
        case ir.Index(base=base, index=index):
            return (base, index)
        case ir.Unary(operand=operand) | ir.Cast(operand=operand):
            return (operand,)
        case ir.Binary(left=left, right=right):
            return (left, right)
        case ir.Ternary(condition=condition, then=then, otherwise=otherwise):
            return (condition, then, otherwise)
        case ir.Aggregate(values=values):
            return values
        case _:
            return ()


Place = tuple[str | int, ...]


def fixed_place(value: ir.Expr) -> Place | None:
    """Return the path of an l-value without run-time indices; members of a union share one place."""
    match value:
        case ir.Var(name=name):
            return (name,)
        case ir.Member(base=base, field=field):
            inner = fixed_place(base)
            if inner is None or isinstance(base.type, ir.Union):
                return inner
            return (*inner, field)
        case ir.Index(base=base, index=ir.Const(value=int(index))):
            inner = fixed_place(base)
            return None if inner is None else (*inner, index)
        case _:
            return None


def overlap(a: Place, b: Place) -> bool:
    """Return whether one place contains the other."""
    return all(x == y for x, y in zip(a, b, strict=False))


def as_path(frame: Frame, value: ir.Expr) -> ir.Expr:
    """Return a composite value as one that has a place to be read from; lists for structs stay."""
    if not isinstance(value, ir.Aggregate | ir.Ternary) or not is_composite(value.type):
        return value
    if isinstance(value, ir.Aggregate) and isinstance(value.type, ir.Struct):
        return value
    return frame.save(value)
