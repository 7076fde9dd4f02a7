"""P4_16's types after resolution (spec section 7). Structural where P4 is, nominal where P4 is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from v1model.frontend import ast

# p4c refuses wider types, so a program that uses them runs nowhere else.
MAX_WIDTH_BITS = 2048
MAX_VARBIT_BITS = 65536
# A compile-time `int` is unbounded in the language. No program can use a larger one, but squaring a constant
# twenty times would take all memory.
MAX_INT_BITS = 4 * MAX_WIDTH_BITS
MAX_STRING_CHARACTERS = 1 << 16  # of a string that `++` makes
# Values without fields that a type may consist of, elements of stacks included: structs of structs grow by
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
    """Arbitrary-precision `int`: compile time only."""


@dataclass(frozen=True, slots=True)
class BitType(Type):
    """bit<width>, or int<width> when signed."""

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
    """What `&&&` and `..` yield: a set of elements."""

    element: Type


@dataclass(frozen=True, slots=True)
class RecordType(Type):
    """A struct, header or header_union (kind); nominal: name plus the instantiated fields.

    The name is "" for an untyped `{f = a}` that nothing gave a type. `arguments` are the type
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
    """members: name -> value (its index where the enum is not serializable)."""

    name: str
    members: tuple[tuple[str, int], ...]
    underlying: BitType | None
    declaration: ast.EnumDeclaration = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class NewType(Type):
    """`type T N`: distinct from its `base`."""

    name: str
    base: Type
    declaration: ast.TypedefDeclaration = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class TypeVariable(Type):
    """A type parameter inside a generic declaration."""

    name: str


@dataclass(frozen=True, slots=True)
class DeclaredType(Type):
    """A parser, control, package, extern object, table or action: its declaration and type arguments."""

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
    """Yield a type and all types that its values are made of, each once: a struct of two of the next, and so
    on, would have no end."""
    seen: set[int] = set()
    waiting = [found]
    while waiting:
        part = waiting.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        yield part
        waiting += reversed(direct_parts(part))
