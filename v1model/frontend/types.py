"""P4_16's types after resolution (spec section 7), structural or nominal as in P4."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from v1model.frontend import ast

# p4c refuses wider types, so a program with wider ones would run nowhere else.
MAX_WIDTH_BITS = 2048
MAX_VARBIT_BITS = 65536
# A compile-time `int` is unbounded in the language. No program can use a larger one, but squaring a constant
# twenty times would take all memory.
MAX_INT_BITS = 4 * MAX_WIDTH_BITS
MAX_STRING_CHARACTERS = 1 << 16  # in a string made by `++`
# Values without fields that a type may consist of, with the elements of stacks. Structs of structs grow by
# doubling.
MAX_FIELDS = 1 << 16


@dataclass(frozen=True, slots=True)
class Type:
    pass


@dataclass(frozen=True, slots=True)
class BoolType(Type):
    pass


@dataclass(frozen=True, slots=True)
class StringType(Type):
    pass


@dataclass(frozen=True, slots=True)
class VoidType(Type):
    pass


@dataclass(frozen=True, slots=True)
class ErrorType(Type):
    pass


@dataclass(frozen=True, slots=True)
class MatchKindType(Type):
    pass


@dataclass(frozen=True, slots=True)
class IntegerType(Type):
    """Arbitrary-precision `int`, known at compile time only."""


@dataclass(frozen=True, slots=True)
class BitType(Type):
    """bit<width>, or int<width> if `signed`."""

    width: int
    signed: bool = False


@dataclass(frozen=True, slots=True)
class VarbitType(Type):
    max_width: int


@dataclass(frozen=True, slots=True)
class TupleType(Type):
    elements: tuple[Type, ...]


@dataclass(frozen=True, slots=True)
class ListType(Type):
    element: Type


@dataclass(frozen=True, slots=True)
class SetType(Type):
    """Set of elements, the result of `&&&` and `..`."""

    element: Type


@dataclass(frozen=True, slots=True)
class RecordType(Type):
    """Struct, header or header_union (`kind`); nominal: the name and the instantiated fields.

    The name is "" for an untyped `{f = a}` that got no type from its place. `arguments` are the type
    arguments of a generic one.
    """

    kind: str
    name: str
    fields: tuple[tuple[str, Type], ...]
    declaration: ast.StructDeclaration = field(compare=False, repr=False)
    arguments: tuple[Type, ...] = ()


@dataclass(frozen=True, slots=True)
class StackType(Type):
    element: Type
    size: int


@dataclass(frozen=True, slots=True)
class EnumType(Type):
    """Enum; `members` maps names to values (the index if the enum is not serializable)."""

    name: str
    members: tuple[tuple[str, int], ...]
    underlying: BitType | None
    declaration: ast.EnumDeclaration = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class NewType(Type):
    """`type T N`, distinct from its `base`."""

    name: str
    base: Type
    declaration: ast.TypedefDeclaration = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class TypeVariable(Type):
    """Type parameter inside a generic declaration."""

    name: str


@dataclass(frozen=True, slots=True)
class DeclaredType(Type):
    """Parser, control, package, extern object, table or action: its declaration and type arguments."""

    declaration: ast.Declaration
    arguments: tuple[Type, ...] = ()


def direct_parts(found: Type) -> tuple[Type, ...]:
    """Return the types of a type's elements or fields, in order."""
    match found:
        case TupleType(elements):
            return elements
        case RecordType(fields=fields):
            return tuple(kind for _, kind in fields)
        case ListType(element) | SetType(element) | StackType(element, _):
            return (element,)
        case _:
            return ()


def parts_of(found: Type) -> Iterator[Type]:
    """Yield a type and all types that its values consist of, each once.

    Without that, a struct of two structs of two structs and so on would take exponential time.
    """
    seen: set[int] = set()
    waiting = [found]
    while waiting:
        part = waiting.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        yield part
        waiting += reversed(direct_parts(part))
