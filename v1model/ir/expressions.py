"""Expressions of the IR, which have no side effects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from v1model.ir.types import Bits, Bool

if TYPE_CHECKING:
    from v1model.ir.types import Type


_BITS_32, _BOOL = Bits(32), Bool()


@dataclass(frozen=True, slots=True)
class Const:
    value: int | str  # Bool: 0 or 1
    type: Type


@dataclass(frozen=True, slots=True)
class Var:
    """A local of the block, a parameter of the running action, or a shared variable.

    The shared ones are `headers`, `metadata` and `standard_metadata`, whatever the program calls them.
    """

    name: str
    type: Type


@dataclass(frozen=True, slots=True)
class Member:
    base: Expr
    field: str
    type: Type


@dataclass(frozen=True, slots=True)
class Index:
    """stack[index]: a read out of range yields an unspecified element, a write is ignored."""

    base: Expr
    index: Expr
    type: Type


@dataclass(frozen=True, slots=True)
class StackNext:
    """stack.next, in a parser only: out of range raises error.StackOutOfBounds."""

    base: Expr
    type: Type


@dataclass(frozen=True, slots=True)
class StackLast:
    base: Expr
    type: Type


@dataclass(frozen=True, slots=True)
class StackLastIndex:
    base: Expr
    type: Type = _BITS_32


@dataclass(frozen=True, slots=True)
class Slice:
    """base[high:low]; also a target of Assign."""

    base: Expr
    high: int
    low: int
    type: Type


@dataclass(frozen=True, slots=True)
class IsValid:
    """isValid() of a header or a header union."""

    base: Expr
    type: Type = _BOOL


@dataclass(frozen=True, slots=True)
class Unary:
    operator: str  # ! ~ -
    operand: Expr
    type: Type


@dataclass(frozen=True, slots=True)
class Binary:
    """Binary operation: + - * / % |+| |-| & | ^ && || == != < <= > >= << >> ++.

    && and || short-circuit. == and != also compare structs, headers (both invalid, or both valid with equal
    fields), stacks and varbits.
    """

    operator: str
    left: Expr
    right: Expr
    type: Type


@dataclass(frozen=True, slots=True)
class Ternary:
    condition: Expr
    then: Expr
    otherwise: Expr
    type: Type


@dataclass(frozen=True, slots=True)
class Cast:
    """Cast between Bits of any widths and signs, Bits(1) and Bool.

    It truncates, or zero- or sign-extends by the operand's sign.
    """

    operand: Expr
    type: Type


@dataclass(frozen=True, slots=True)
class Aggregate:
    """Struct, tuple or (then valid) header value from one expression per field, in order.

    For a Stack it has one expression per element (the rest are invalid). InvalidHeader is Aggregate with
    valid False.
    """

    values: tuple[Expr, ...]
    type: Type
    valid: bool = True


@dataclass(frozen=True, slots=True)
class Lookahead:
    """packet.lookahead<T>() as bits, in a parser only: too short raises error.PacketTooShort."""

    type: Bits


@dataclass(frozen=True, slots=True)
class PacketLength:
    """packet.length() in bytes, in a parser only."""

    type: Type = _BITS_32


Expr = (
    Const
    | Var
    | Member
    | Index
    | StackNext
    | StackLast
    | StackLastIndex
    | Slice
    | IsValid
    | Unary
    | Binary
    | Ternary
    | Cast
    | Aggregate
    | Lookahead
    | PacketLength
)
