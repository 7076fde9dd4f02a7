"""Base of the syntax tree's nodes, and types as the user wrote them; see ast.py."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from v1model.frontend.ast import Expression
    from v1model.frontend.types import Type


@dataclass(frozen=True, slots=True)
class Span:
    """Place of a node in the user's source (after `#line` mapping); 1-based."""

    file: str
    line: int
    column: int
    length: int = 1


@dataclass(eq=False, slots=True)
class Node:
    span: Span


@dataclass(eq=False, slots=True)
class TypeRef(Node):
    """Type as the user wrote it; the checker fills in `resolved`."""

    resolved: Type | None = field(default=None, kw_only=True)  # checked


@dataclass(eq=False, slots=True)
class BaseTypeRef(TypeRef):
    """Built-in type: bool, error, string, match_kind, void, bit, int or varbit; width None for plain
    `bit`/`int`.
    """

    name: str
    width: Expression | None = None


@dataclass(eq=False, slots=True)
class NamedTypeRef(TypeRef):
    """Type name, absolute (`.T`) or not, specialised with `arguments` or not; `_` is don't-care."""

    name: str
    arguments: list[TypeRef] = field(default_factory=list)
    absolute: bool = False


@dataclass(eq=False, slots=True)
class TupleTypeRef(TypeRef):
    """`tuple<...>`, or `list<T>` if `is_list`."""

    elements: list[TypeRef]
    is_list: bool = False


@dataclass(eq=False, slots=True)
class StackTypeRef(TypeRef):
    element: TypeRef
    size: Expression
