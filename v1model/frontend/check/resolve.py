"""Resolution of written types (spec section 7)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from v1model.errors import CompileError, UnsupportedError
from v1model.frontend import ast
from v1model.frontend.check.constants import require_int
from v1model.frontend.check.rules import check
from v1model.frontend.check.scope import TYPES
from v1model.frontend.check.show import show
from v1model.frontend.check.substitute import DONT_CARE, instantiate
from v1model.frontend.types import (
    MAX_FIELDS,
    MAX_VARBIT_BITS,
    MAX_WIDTH_BITS,
    BitType,
    BoolType,
    DeclaredType,
    EnumType,
    ErrorType,
    IntegerType,
    ListType,
    MatchKindType,
    NewType,
    RecordType,
    SetType,
    StackType,
    StringType,
    TupleType,
    Type,
    TypeVariable,
    VarbitType,
    VoidType,
    direct_parts,
)

if TYPE_CHECKING:
    from v1model.frontend.check.scope import Context

MAX_STACK_SIZE = 1 << 16
_COMPILE_TIME_TYPES = (IntegerType, StringType, VoidType, MatchKindType, ListType, SetType, DeclaredType)

_PLAIN: dict[str, Type] = {
    "bool": BoolType(),
    "string": StringType(),
    "void": VoidType(),
    "error": ErrorType(),
    "match_kind": MatchKindType(),
}


def resolve(c: Context, ref: ast.TypeRef) -> Type:
    """Return the type that `ref` means here, and store it in `ref.resolved`."""
    match ref:
        case ast.BaseTypeRef():
            found = _base_type(c, ref)
        case ast.NamedTypeRef():
            found = _named_type(c, ref)
        case ast.TupleTypeRef():
            found = _tuple_type(c, ref)
        case ast.StackTypeRef():
            found = _stack_type(c, ref)
        case _:
            raise AssertionError(f"unknown type reference {type(ref).__name__}")
    if _count_fields(c, found) > MAX_FIELDS:
        raise CompileError(f"this type has more than {MAX_FIELDS} fields in all", ref.span)
    ref.resolved = found
    return found


def _count_fields(c: Context, found: Type) -> int:
    """Return how many values without fields a type consists of; shared parts are counted only once each."""
    if isinstance(found, StackType):
        return found.size * max(1, _count_fields(c, found.element))
    if not isinstance(found, TupleType | RecordType):
        return 1
    known = c.field_counts.get(id(found))
    if known is None:  # holding the type keeps its id from being reused
        known = c.field_counts[id(found)] = found, sum(_count_fields(c, part) for part in direct_parts(found))
    return known[1]


def _base_type(c: Context, ref: ast.BaseTypeRef) -> Type:
    if ref.name in _PLAIN:
        return _PLAIN[ref.name]
    if ref.width is None:
        return IntegerType() if ref.name == "int" else BitType(1)
    ref.width = check(c, ref.width)
    width = require_int(ref.width, f"the width of {ref.name}<>")
    least = 1 if ref.name == "int" else 0
    most = MAX_VARBIT_BITS if ref.name == "varbit" else MAX_WIDTH_BITS
    if not least <= width <= most:
        message = f"{ref.name}<{width}>: the width must be from {least} to {most}"
        raise CompileError(message, ref.width.span)
    return VarbitType(width) if ref.name == "varbit" else BitType(width, signed=ref.name == "int")


def _named_type(c: Context, ref: ast.NamedTypeRef) -> Type:
    if ref.name == "_":
        return DONT_CARE
    symbol = c.lookup(ref.name, ref.span, absolute=ref.absolute, kinds=TYPES)
    arguments = tuple(resolve(c, argument) for argument in ref.arguments)
    match symbol:
        case TypeVariable():
            found: Type = symbol
        case (
            ast.ParserDeclaration()
            | ast.ControlDeclaration()
            | ast.PackageDeclaration()
            | ast.ExternDeclaration()
        ):
            if arguments:
                _require_arguments(ref, symbol.type_parameters, arguments)
            return DeclaredType(symbol, arguments)
        case ast.StructDeclaration() if symbol in c.nominal:
            return _record_type(c, ref, symbol, arguments)
        case ast.EnumDeclaration() | ast.TypedefDeclaration() if symbol in c.nominal:
            found = c.nominal[symbol]
        case _:
            raise CompileError(f"{ref.name!r} is not a type", ref.span)
    _require_arguments(ref, [], arguments)
    return found


def _record_type(
    c: Context, ref: ast.NamedTypeRef, declaration: ast.StructDeclaration, arguments: tuple[Type, ...]
) -> Type:
    generic = c.nominal[declaration]
    assert isinstance(generic, RecordType)
    if not arguments and not declaration.type_parameters:
        return generic
    _require_arguments(ref, declaration.type_parameters, arguments)
    bindings = dict(zip(declaration.type_parameters, arguments, strict=True))
    found = instantiate(generic, arguments, bindings)
    for name, kind in found.fields:
        if not can_be_field(found.kind, kind):
            raise CompileError(f"field {name!r} of {show(found)} cannot be {show(kind)}", ref.span)
    return found


def can_be_field(kind: str, found: Type) -> bool:
    """Return whether a struct, header or header_union can have a field of the type."""
    if kind == "struct":
        return not isinstance(found, DeclaredType | VoidType)
    if kind == "header_union":
        return isinstance(found, TypeVariable) or (isinstance(found, RecordType) and found.kind == "header")
    match found:
        case BitType() | BoolType() | VarbitType() | TypeVariable():
            return True
        case EnumType():
            return found.underlying is not None
        case NewType():
            return can_be_field(kind, found.base)
        case RecordType(kind="struct"):
            return all(can_be_field(kind, field) for _, field in found.fields)
    return False


def _require_arguments(ref: ast.NamedTypeRef, parameters: list[str], arguments: tuple[Type, ...]) -> None:
    if len(parameters) != len(arguments):
        raise CompileError(
            f"{ref.name!r} takes {len(parameters)} type arguments, not {len(arguments)}", ref.span
        )


def _tuple_type(c: Context, ref: ast.TupleTypeRef) -> Type:
    elements = tuple(complete(c, element) for element in ref.elements)
    for kind, element in zip(elements, ref.elements, strict=True):
        if isinstance(kind, DeclaredType | VoidType):
            raise CompileError(f"{show(kind)} cannot be an element", element.span)
    if not ref.is_list:
        return TupleType(elements)
    if len(elements) != 1:
        raise CompileError(f"list takes one type argument, not {len(elements)}", ref.span)
    return ListType(elements[0])


def _stack_type(c: Context, ref: ast.StackTypeRef) -> Type:
    element = resolve(c, ref.element)
    ref.size = check(c, ref.size)
    size = require_int(ref.size, "the size of a header stack")
    if not 1 <= size <= MAX_STACK_SIZE:
        raise CompileError(f"the size of a header stack must be from 1 to {MAX_STACK_SIZE}", ref.size.span)
    if isinstance(element, RecordType) and element.kind != "struct":
        return StackType(element, size)
    if isinstance(element, BitType | BoolType | RecordType | StackType | NewType):
        raise UnsupportedError(
            f"arrays of {show(element)} are not supported, only stacks of headers", ref.span
        )
    raise CompileError(f"a stack of {show(element)} is not possible, only of headers", ref.span)


def complete(c: Context, ref: ast.TypeRef) -> Type:
    """Return the type of a reference; raises CompileError if type arguments are missing."""
    found = resolve(c, ref)
    if isinstance(found, DeclaredType):
        expected = getattr(found.declaration, "type_parameters", [])
        if len(expected) != len(found.arguments):
            raise CompileError(f"{show(found)} needs {len(expected)} type arguments", ref.span)
    return found


def runtime(c: Context, ref: ast.TypeRef, what: str) -> Type:
    """Return a type that variables, fields and run-time parameters may have; raises CompileError."""
    found = complete(c, ref)
    if isinstance(found, _COMPILE_TIME_TYPES):
        hint = "give it a width, as in bit<32>" if isinstance(found, IntegerType) else ""
        if isinstance(found, DeclaredType) and isinstance(found.declaration, ast.ExternDeclaration):
            hint = f"an instance is made with what its constructor takes: {show(found)}(...) name;"
        raise CompileError(f"{what} cannot have type {show(found)}", ref.span, hint)
    refuse_compile_time_parts(c, found, ref, what)
    return found


def refuse_compile_time_parts(c: Context, found: Type, ref: ast.TypeRef, what: str) -> None:
    """Refuse a composite type with an int or a string inside, which only constants can have."""
    if inner := compile_time_part(c, found):
        message = f"{what} cannot have type {show(found)}: inside is {show(inner)}"
        raise CompileError(message, ref.span, "only constants can be of such a type")


def compile_time_part(c: Context, found: Type) -> Type | None:
    """Return the int or string that is part of a type, or None; no type is walked twice."""
    if isinstance(found, IntegerType | StringType):
        return found
    parts = direct_parts(found)
    if not parts:
        return None
    known = c.compile_time_parts.get(id(found))
    if known is None:
        inner = (compile_time_part(c, part) for part in parts)
        known = c.compile_time_parts[id(found)] = found, next(filter(None, inner), None)
    return known[1]
