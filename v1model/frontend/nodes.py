"""What every node of the syntax tree has, and types as the user wrote them; see ast.py."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from v1model.frontend.ast import Expression
    from v1model.frontend.types import Type


@dataclass(frozen=True, slots=True)
class Span:
    """Where a node stands in the user's source (after `#line` mapping); 1-based."""

    file: str
    line: int
    column: int
    length: int = 1


@dataclass(eq=False, slots=True)
class Node:
    span: Span


@dataclass(eq=False, slots=True)
class TypeRef(Node):
    """A type as the user wrote it; `resolved` is filled in by the checker."""

    resolved: Type | None = field(default=None, kw_only=True)  # checked


@dataclass(eq=False, slots=True)
class BaseTypeRef(TypeRef):
    """bool, error, string, match_kind, void, bit, int, varbit; width None for plain `bit`/`int`."""

    name: str
    width: Expression | None = None


@dataclass(eq=False, slots=True)
class NamedTypeRef(TypeRef):
    """A type name, absolute (`.T`) or not, specialised with `arguments` or not; `_` is don't-care."""

    name: str
    arguments: list[TypeRef] = field(default_factory=list)
    absolute: bool = False


@dataclass(eq=False, slots=True)
class TupleTypeRef(TypeRef):
    """`tuple<...>`, or `list<T>` when is_list."""

    elements: list[TypeRef]
    is_list: bool = False


@dataclass(eq=False, slots=True)
class StackTypeRef(TypeRef):
    element: TypeRef
    size: Expression
