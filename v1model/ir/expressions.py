"""Expressions of the IR: free of side effects."""

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
    """A local of the block, a parameter of the running action, or one of the shared variables
    `headers`, `metadata`, `standard_metadata` (as the IR names them, whatever the user did)."""

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
    """stack.next in a parser: out of range raises error.StackOutOfBounds (parser only)."""

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
    """Of a header or a header union."""

    base: Expr
    type: Type = _BOOL


@dataclass(frozen=True, slots=True)
class Unary:
    operator: str  # ! ~ -
    operand: Expr
    type: Type


@dataclass(frozen=True, slots=True)
class Binary:
    """+ - * / % |+| |-| & | ^ && || == != < <= > >= << >> ++; && and || short-circuit.

    == and != also compare structs, headers (both invalid, or both valid with equal fields),
    stacks and varbits."""

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
    """Between Bits of any widths and signs (truncate, zero- or sign-extend by the operand's sign),
    Bits(1) and Bool."""

    operand: Expr
    type: Type


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A struct, tuple or (then valid) header value from one expression per field, in order;
    for a Stack one per element (the rest invalid). InvalidHeader is Aggregate with valid False."""

    values: tuple[Expr, ...]
    type: Type
    valid: bool = True


@dataclass(frozen=True, slots=True)
class Lookahead:
    """packet.lookahead<T>() as bits: parser only; too short raises error.PacketTooShort."""

    type: Bits


@dataclass(frozen=True, slots=True)
class PacketLength:
    """packet.length(), in bytes: parser only."""

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
