"""Field lists: values laid out as consecutive bits, for hashes, checksums and digests."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

from v1model import ir
from v1model.backend import wire
from v1model.backend.layout import is_large, value_width, wire_bytes
from v1model.errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from v1model.backend.expressions import Expressions
    from v1model.backend.function import Function


def fields(expression: ir.Expr) -> Iterator[ir.Expr]:
    """Yield the Bits, Bool and Varbit expressions that a value consists of, in order."""
    match expression.type:
        case ir.Bits() | ir.Bool() | ir.Varbit():
            yield expression
        case ir.Struct(_, members) | ir.Header(_, members):
            if isinstance(expression, ir.Aggregate):
                for value in expression.values:
                    yield from fields(value)
            else:
                for name, member_type in members:
                    yield from fields(ir.Member(expression, name, member_type))
        case _:
            raise UnsupportedError(
                f"a {type(expression.type).__name__.lower()} can't be part of a field list"
            )


def owner(expression: ir.Expr) -> ir.Expr | None:
    """Return the header that a field lies in, or None. An invalid header has no fields to hash."""
    while isinstance(expression, ir.Member):
        expression = expression.base
        if isinstance(expression.type, ir.Header):
            return expression
    return None


@dataclass(frozen=True, slots=True)
class FieldList:
    """Byte buffer in a generated function; `length` is a C expression for its bytes."""

    data: str
    length: str


def serialize(
    function: Function, expressions: Expressions, value: ir.Expr, name: str, summed: str | None = None
) -> FieldList:
    """Emit code that lays out `value`.

    As in simple_switch, fields of invalid headers are left out and the last byte is padded with zero bits.
    For a checksum, `summed` names a C variable to which the sums of large fields are added. These fields are
    not laid out: the order does not matter to a sum of 16-bit words.
    """
    items = list(fields(value))
    owners = [owner(item) for item in items]
    max_bits = sum(
        item.type.max_width if isinstance(item.type, ir.Varbit) else value_width(item.type) for item in items
    )
    buffer = function.name(name)
    function.emit(f"uint8_t {buffer}[{max(1, wire_bytes(max_bits))}];")
    groups = [
        (header, [item for _, item in group])
        for header, group in groupby(zip(owners, items, strict=True), itemgetter(0))
    ]
    if any(isinstance(item.type, ir.Varbit) for item in items) or any(
        _bits(group) % 8 for _, group in groups[:-1]
    ):
        return _by_bits(function, expressions, list(zip(items, owners, strict=True)), buffer)
    return _by_bytes(function, expressions, groups, buffer, summed)


def _bits(items: list[ir.Expr]) -> int:
    return sum(value_width(item.type) for item in items)


def _sum(item: wire.Item, summed: str, length: str) -> str:
    return f"{summed} += hash_sum_at({length}, {item.value}, {item.width // 8});"


def _by_bytes(
    function: Function,
    expressions: Expressions,
    groups: list[tuple[ir.Expr | None, list[ir.Expr]]],
    buffer: str,
    summed: str | None,
) -> FieldList:
    """Emit one packing for each header, if every header's fields begin at a byte."""
    length = function.name("length")
    function.emit(f"uint32_t {length} = 0;")
    for header, group in groups:
        packed = [wire.Item(expressions.value(item), value_width(item.type)) for item in group]
        with function.block(f"if ({expressions.value(header)}.valid)" if header is not None else ""):
            if summed is not None and all(is_large(item.type) for item in group):
                function.emit(*(_sum(item, summed, length) for item in packed))
                continue
            size = wire_bytes(_bits(group))
            if not wire.is_plain(packed):
                function.emit(f"memset({buffer} + {length}, 0, {size});")
            function.emit(*wire.pack(packed, f"{buffer} + {length}"), f"{length} += {size};")
    return FieldList(buffer, length)


def _by_bits(
    function: Function, expressions: Expressions, items: list[tuple[ir.Expr, ir.Expr | None]], buffer: str
) -> FieldList:
    bits = function.name("bits")
    function.emit(f"uint32_t {bits} = 0;", f"memset({buffer}, 0, sizeof {buffer});")
    for item, header in items:
        condition = f"{expressions.value(header)}.valid" if header is not None else ""
        value = expressions.value(item)
        with function.block(f"if ({condition})" if condition else ""):
            if isinstance(item.type, ir.Varbit):
                copy = f"store_bits({buffer}, {bits} + i * 8, 8, {value}.data[i])"
                function.emit(f"for (uint32_t i = 0; i < {value}.bits / 8; i++) {copy};")
                function.emit(f"{bits} += {value}.bits;")
            else:
                width = value_width(item.type)
                function.emit(wire.store(buffer, bits, wire.Item(value, width)), f"{bits} += {width};")
    return FieldList(buffer, f"({bits} + 7) / 8")
