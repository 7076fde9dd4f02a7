"""Translation of P4 types to IR types: one IR struct per distinct P4 type, type parameters replaced."""

from __future__ import annotations

from typing import TYPE_CHECKING

from v1model import ir
from v1model.errors import UnsupportedError
from v1model.frontend import types as t

if TYPE_CHECKING:
    from collections.abc import Mapping

    from v1model.frontend.ast import Span

# A compile-time `int` of any size. Casts fold it away; a finished program has none.
INTEGER = ir.Bits(-1, signed=True)
INDEX = ir.Bits(32)


def substitute(type_: t.Type, bindings: Mapping[str, t.Type]) -> t.Type:
    """Return `type_` with its type variables replaced."""
    if not bindings:
        return type_
    match type_:
        case t.TypeVariable(name=name):
            return bindings.get(name, type_)
        case t.TupleType(elements=elements):
            return t.TupleType(tuple(substitute(e, bindings) for e in elements))
        case t.ListType(element=element):
            return t.ListType(substitute(element, bindings))
        case t.SetType(element=element):
            return t.SetType(substitute(element, bindings))
        case t.StackType(element=element, size=size):
            return t.StackType(substitute(element, bindings), size)
        case t.RecordType(kind=kind, name=name, fields=fields, declaration=declaration):
            closed = tuple((field, substitute(inner, bindings)) for field, inner in fields)
            return type_ if closed == fields else t.RecordType(kind, name, closed, declaration)
        case t.NewType(name=name, base=base, declaration=new):
            return t.NewType(name, substitute(base, bindings), new)
        case t.DeclaredType(declaration=declared, arguments=arguments):
            return t.DeclaredType(declared, tuple(substitute(a, bindings) for a in arguments))
        case _:
            return type_


class Shapes:
    """IR types of the P4 types of a program; equal types share one, names are unique."""

    def __init__(self) -> None:
        self._known: dict[t.Type, ir.Type] = {}
        self._names: set[str] = set()
        self.sources: dict[str, t.RecordType] = {}  # IR struct name -> the P4 type it came from

    def of(self, type_: t.Type, span: Span | None = None) -> ir.Type:
        """Return the IR type of a closed P4 type."""
        known = self._known.get(type_)
        if known is None:
            known = self._known[type_] = self._build(type_, span)
        return known

    def has(self, type_: t.Type) -> bool:
        """Return whether a value of this type was lowered so far."""
        return type_ in self._known

    def struct(self, type_: t.Type, span: Span | None = None) -> ir.Struct:
        shape = self.of(type_, span)
        if not isinstance(shape, ir.Struct):
            raise UnsupportedError("v1model needs a struct type here", span)
        return shape

    def _build(self, type_: t.Type, span: Span | None) -> ir.Type:
        match type_:
            case t.BitType(width=width, signed=signed):
                return ir.Bits(width, signed)
            case t.BoolType():
                return ir.Bool()
            case t.IntegerType():
                return INTEGER
            case t.StringType():
                return ir.String()
            case t.ErrorType() | t.EnumType(underlying=None):
                return INDEX
            case t.EnumType(underlying=t.BitType() as underlying):
                return self.of(underlying, span)
            case t.NewType(base=base):
                return self.of(base, span)
            case t.VarbitType(max_width=max_width):
                return ir.Varbit(max_width)
            case t.TupleType(elements=elements):
                members = tuple((f"f{i}", self.of(e, span)) for i, e in enumerate(elements))
                return ir.Struct(self._unique("tuple"), members)
            case t.StackType(element=element, size=size):
                return self._stack(self.of(element, span), size, span)
            case t.RecordType():
                return self._record(type_, span)
            case _:
                raise UnsupportedError(f"a value of type {_describe(type_)} has no run-time form", span)

    def _record(self, type_: t.RecordType, span: Span | None) -> ir.Type:
        fields = tuple((name, self.of(field, span)) for name, field in type_.fields)
        name = self._unique(type_.name)
        self.sources[name] = type_
        if type_.kind == "struct":
            return ir.Struct(name, fields)
        if type_.kind == "header":
            return ir.Header(name, fields)
        headers = tuple((member, header) for member, header in fields if isinstance(header, ir.Header))
        if len(headers) != len(fields):
            raise UnsupportedError(f"header union {type_.name} has a member that is not a header", span)
        return ir.Union(name, headers)

    @staticmethod
    def _stack(element: ir.Type, size: int, span: Span | None) -> ir.Stack:
        if not isinstance(element, ir.Header | ir.Union):
            raise UnsupportedError("arrays of anything but headers and header unions", span)
        return ir.Stack(element, size)

    def _unique(self, name: str) -> str:
        candidate, suffix = name, 0
        while candidate in self._names:
            candidate, suffix = f"{name}_{suffix}", suffix + 1
        self._names.add(candidate)
        return candidate


def _describe(type_: t.Type) -> str:
    return type(type_).__name__.removesuffix("Type").lower()
