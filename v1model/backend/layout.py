"""Layout of values in memory, on which the generated C and the Python side must agree.

bit<N> and int<N> up to 64 bits are the next larger uintN_t, up to 128 bits unsigned __int128 (both in the
machine's order, little-endian), wider ones big-endian byte arrays as on the wire.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from v1model import ir

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

NARROW_BITS = 64
INTEGER_BITS = 128  # beyond: byte arrays
LOOP_EMIT_BYTES = 4096  # the most that a deparser may have emitted when it emits in a loop
LARGE_BITS = 1024  # a value of a few cache lines
MAX_BITS = 65536  # WIDE_MAX_BITS in runtime/wide.h


def value_width(value_type: ir.Type) -> int:
    """Return the width in bits of a Bits or Bool."""
    if isinstance(value_type, ir.Bool):
        return 1
    assert isinstance(value_type, ir.Bits), value_type
    return value_type.width


def is_wide(value_type: ir.Type) -> bool:
    return isinstance(value_type, ir.Bits) and value_type.width > INTEGER_BITS


def is_large(value_type: ir.Type) -> bool:
    """Return whether a value is large enough to be aligned to cache lines and not to be copied needlessly."""
    return isinstance(value_type, ir.Bits) and value_type.width >= LARGE_BITS and value_type.width % 16 == 0


def wire_bytes(width: int) -> int:
    """Return the number of whole bytes that hold `width` bits."""
    return (width + 7) // 8


@cache
def storage_bytes(width: int) -> int:
    """Return the bytes of the C variable for a value of `width` bits."""
    if width > INTEGER_BITS:
        return wire_bytes(width)
    return next(size for size in (1, 2, 4, 8, 16) if width <= size * 8)


def to_storage(value: int, width: int) -> bytes:
    """Return a value as the bytes of its C variable."""
    return value.to_bytes(storage_bytes(width), "big" if width > INTEGER_BITS else sys.byteorder)


def from_storage(data: bytes, width: int) -> int:
    return int.from_bytes(data, "big" if width > INTEGER_BITS else sys.byteorder)


@dataclass(frozen=True, slots=True)
class Leaf:
    """A Bits, Bool or Varbit inside a header, with its path of names and its offset in bits.

    After a varbit, offsets are those with an empty varbit.
    """

    path: tuple[str, ...]
    type: ir.Type
    offset_bits: int


def leaves(
    fields: Sequence[tuple[str, ir.Type]], path: tuple[str, ...] = (), offset_bits: int = 0
) -> Iterator[Leaf]:
    """Yield the leaves of a header's fields in wire order."""
    for name, field_type in fields:
        if isinstance(field_type, ir.Struct):
            inner = list(leaves(field_type.fields, (*path, name), offset_bits))
            yield from inner
            offset_bits += sum(fixed_width(leaf.type) for leaf in inner)
        else:
            yield Leaf((*path, name), field_type, offset_bits)
            offset_bits += fixed_width(field_type)


def fixed_width(field_type: ir.Type) -> int:
    """Return the bits on the wire; a varbit counts as 0."""
    return 0 if isinstance(field_type, ir.Varbit) else value_width(field_type)


def header_bits(header: ir.Header) -> int:
    """Return the bits of a header on the wire, without its varbit."""
    return sum(fixed_width(leaf.type) for leaf in leaves(header.fields))


def varbit_of(header: ir.Header) -> ir.Varbit | None:
    return next((leaf.type for leaf in leaves(header.fields) if isinstance(leaf.type, ir.Varbit)), None)


def max_header_bytes(header: ir.Header) -> int:
    varbit = varbit_of(header)
    return wire_bytes(header_bits(header) + (varbit.max_width if varbit else 0))


def emit_bytes(value_type: ir.Type) -> int:
    """Return the bytes that packet.emit of a value of this type appends at most."""
    match value_type:
        case ir.Header():
            return max_header_bytes(value_type)
        case ir.Stack(element, size):
            return size * emit_bytes(element)
        case ir.Union(_, fields):
            return max((max_header_bytes(header) for _, header in fields), default=0)
        case ir.Struct(_, fields):
            return sum(emit_bytes(field_type) for _, field_type in fields)
    return 0


def arguments_bytes(params: Sequence[ir.ActionParam]) -> int:
    """Return the bytes of an action's packed argument structure."""
    return sum(storage_bytes(param.type.width) for param in params)


def pack_arguments(params: Sequence[ir.ActionParam], arguments: Sequence[int]) -> bytes:
    return b"".join(
        to_storage(value, param.type.width) for param, value in zip(params, arguments, strict=True)
    )


def unpack_arguments(params: Sequence[ir.ActionParam], data: bytes) -> tuple[int, ...]:
    """Return the arguments at the front of `data`."""
    arguments, at = [], 0
    for param in params:
        end = at + storage_bytes(param.type.width)
        arguments.append(from_storage(data[at:end], param.type.width))
        at = end
    return tuple(arguments)
