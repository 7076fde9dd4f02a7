"""C code between values and their bits on the wire: extract, emit, field lists."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from v1model import ir
from v1model.backend.layout import INTEGER_BITS, NARROW_BITS, fixed_width, header_bits, leaves, varbit_of
from v1model.backend.names import identifier

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Item:
    """Value to be packed: a C expression, an integer or (wide) a pointer to bytes, and its width in bits."""

    value: str
    width: int


def _runs(items: Sequence[Item]) -> list[list[Item]]:
    """Return the items in groups that begin and end at a byte, the last one padded with zero bits."""
    runs: list[list[Item]] = [[]]
    for item in items:
        runs[-1].append(item)
        if sum(each.width for each in runs[-1]) % 8 == 0:
            runs.append([])
    if runs[-1]:
        runs[-1].append(Item("0", -sum(each.width for each in runs[-1]) % 8))
    return [run for run in runs if run]


def is_plain(items: Sequence[Item]) -> bool:
    """Return whether `pack` writes whole bytes only, so that their previous content does not matter."""
    return all(len(run) == 1 or sum(item.width for item in run) <= NARROW_BITS for run in _runs(items))


def pack(items: Sequence[Item], to: str) -> list[str]:
    """Return statements that write items one after the other into `to`, which begins at a byte.

    Unused bits of the last byte become 0. Unless `is_plain`, the bytes must be 0 before, or all their bits
    written.
    """
    lines: list[str] = []
    at = 0
    for run in _runs(items):
        lines += _pack_run(run, to, at)
        at += sum(item.width for item in run) // 8
    return lines


def _pack_run(run: Sequence[Item], to: str, at: int) -> list[str]:
    width = sum(item.width for item in run)
    if width <= NARROW_BITS:
        terms, shift = [], width
        for item in run:
            shift -= item.width
            terms.append(f"(uint64_t)({item.value}) << {shift}" if shift else f"(uint64_t)({item.value})")
        return [f"store_be({to} + {at}, {width // 8}, {' | '.join(terms)});"] if width else []
    if len(run) == 1 and width > INTEGER_BITS:
        return [f"memcpy({to} + {at}, {run[0].value}, {width // 8});"]
    if len(run) == 1:
        return [f"store_be128({to} + {at}, {width // 8}, {run[0].value});"]
    lines, offset = [], at * 8
    for item in run:
        lines.append(store(to, str(offset), item))
        offset += item.width
    return lines


def store(to: str, offset: str, item: Item) -> str:
    """Return a statement that writes one item at a bit offset, without changing the bits around it."""
    if item.width > INTEGER_BITS:
        return f"wide_store({to}, {offset}, {item.value}, {item.width});"
    suffix = "" if item.width <= NARROW_BITS else "128"
    return f"store_bits{suffix}({to}, {offset}, {item.width}, {item.value});"


def load(packet: str, offset: int, width: int) -> str:
    """Return a C expression for up to 128 bits at a bit offset of a packet."""
    if width > NARROW_BITS:
        if offset % 8 == 0 and width % 8 == 0:
            return f"load_be128({packet} + {offset // 8}, {width // 8})"
        return f"load_bits128({packet}, {offset}, {width})"
    if offset % 8 == 0 and width % 8 == 0 and width:
        return f"load_be({packet} + {offset // 8}, {width // 8})"
    return f"load_bits({packet}, {offset}, {width})"


def bytes_value(data: str, width: int) -> str:
    """Return an Item's value for `width` bits of whole bytes in memory."""
    return data if width > INTEGER_BITS else load(data, 0, width)


def load_statement(target: str, packet: str, offset: int, width: int) -> str:
    if width > INTEGER_BITS:
        return f"wide_load({target}, {packet}, {offset}, {width});"
    return f"{target} = {load(packet, offset, width)};"


def member(path: Sequence[str]) -> str:
    return ".".join(f"f_{identifier(name)}" for name in path)


def header_functions(tag: str, header: ir.Header) -> list[str]:
    """Return unpack_<tag>(header, packet[, varbit bits]) and pack_<tag>(header, out) of a header.

    Both return the bytes on the wire. unpack makes the header valid.
    """
    return [*_unpack(tag, header), *_pack(tag, header)]


def _unpack(tag: str, header: ir.Header) -> list[str]:
    varbit = varbit_of(header)
    total = header_bits(header) // 8
    body = ["    h->valid = 1;"]
    for leaf in leaves(header.fields):
        place = f"h->{member(leaf.path)}"
        if isinstance(leaf.type, ir.Varbit):
            start = leaf.offset_bits // 8
            body += [
                f"    {place}.bits = varbit_bits;",
                f"    memcpy({place}.data, packet + {start}, varbit_bits / 8);",
                "    packet += varbit_bits / 8;",
            ]
        else:
            body.append("    " + load_statement(place, "packet", leaf.offset_bits, fixed_width(leaf.type)))
    parameter = ", uint32_t varbit_bits" if varbit else ""
    return [
        f"static inline uint32_t unpack_{tag}(struct {tag} *h, const uint8_t *packet{parameter}) {{",
        *body,
        "    (void)packet;",
        f"    return {total}{' + varbit_bits / 8' if varbit else ''};",
        "}",
    ]


def _pack(tag: str, header: ir.Header) -> list[str]:
    items: list[Item] = []
    body: list[str] = []
    tail = ""
    for leaf in leaves(header.fields):
        place = f"h->{member(leaf.path)}"
        if isinstance(leaf.type, ir.Varbit):
            before = sum(item.width for item in items) // 8
            body += pack(items, "out")
            body += [
                f"memcpy(out + {before}, {place}.data, {place}.bits / 8);",
                f"out += {before} + {place}.bits / 8;",
            ]
            items, tail = [], f" + {before} + {place}.bits / 8"
        else:
            items.append(Item(place, fixed_width(leaf.type)))
    body += pack(items, "out")
    length = sum(item.width for item in items) // 8
    return [
        f"static inline uint32_t pack_{tag}(const struct {tag} *h, uint8_t *out) {{",
        *(f"    {line}" for line in body),
        "    (void)h, (void)out;",
        f"    return {length}{tail};",
        "}",
    ]
