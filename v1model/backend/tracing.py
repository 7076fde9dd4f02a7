"""C that reports what a packet does, in programs that are compiled to be traced."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from v1model import ir
from v1model.backend import wire
from v1model.backend.layout import leaves, value_width, wire_bytes
from v1model.backend.names import identifier

if TYPE_CHECKING:
    from v1model.backend.writer import Writer

SHARED = ("headers", "metadata", "standard_metadata")


class Tracing(StrEnum):
    """Amount of a packet's processing that a program is compiled to report."""

    OFF = "off"
    FRAMES = "frames"  # frames that came in and left
    STEPS = "steps"  # parser states, headers, tables, externs, copies, and frames that left
    ASSIGNMENTS = "assignments"  # those, and every assignment to headers and metadata

    def has_steps(self) -> bool:
        return self in (Tracing.STEPS, Tracing.ASSIGNMENTS)


@dataclass(frozen=True, slots=True)
class TraceSite:
    """A place in a program that reports passing packets.

    `values` are names and widths in bits, each in whole bytes in the event. `table` is the number of the
    table, whose key, entry and action follow.
    """

    kind: str  # state, extract, parsed, control, table, call, assign
    name: str
    values: tuple[tuple[str, int], ...] = ()
    table: int = -1


def _emit(writer: Writer, site: TraceSite, items: list[wire.Item]) -> None:
    function = writer.function
    number = len(writer.unit.trace_sites)
    writer.unit.trace_sites.append(site)
    size = sum(wire_bytes(width) for _, width in site.values)
    with function.block("if (traced(job))"):
        function.emit(f"uint8_t values[{max(1, size)}];", "values[0] = 0;", *wire.pack(items, "values"))
        function.emit(f"emit_trace(sw, job, {number}, values, {size}, NULL, 0);")


def step(writer: Writer, kind: str, name: str) -> None:
    """Trace a state or control that a packet enters, or an extern that is called."""
    if writer.unit.tracing.has_steps():
        _emit(writer, TraceSite(kind, name), [])


def parsed(writer: Writer) -> None:
    """Trace the end of the parser, with its error."""
    if writer.unit.tracing.has_steps():
        _emit(writer, TraceSite("parsed", "", (("error", 32),)), [wire.Item("error", 32)])


def extracted(writer: Writer, header: ir.Header, place: str, name: str) -> None:
    """Trace a header's fields after its extract; of a varbit its length in bits."""
    if not writer.unit.tracing.has_steps():
        return
    values, items = [], []
    for leaf in leaves(header.fields):
        code = place + "".join(f".f_{identifier(part)}" for part in leaf.path)
        if isinstance(leaf.type, ir.Varbit):
            values.append((".".join(leaf.path) + " (bits)", 32))
            items.append(wire.Item(f"{code}.bits", 32))
        else:
            width = value_width(leaf.type)
            values.append((".".join(leaf.path), width))
            items.append(wire.Item(code, wire_bytes(width) * 8))
    _emit(writer, TraceSite("extract", name, tuple(values)), items)


def assigned(writer: Writer, target: ir.Expr, value_type: ir.Type) -> None:
    """Trace the new value of a header or metadata field."""
    if writer.unit.tracing is not Tracing.ASSIGNMENTS or not isinstance(value_type, ir.Bits | ir.Bool):
        return
    name = path(target)
    if name.split(".")[0] not in SHARED or isinstance(target, ir.StackNext | ir.StackLast):
        return
    width = value_width(value_type)
    code = writer.expressions.value(target)
    item = wire.Item(code, wire_bytes(width) * 8)
    _emit(writer, TraceSite("assign", name, (("value", width),)), [item])


def path(place: ir.Expr) -> str:
    """Return an l-value in P4's syntax."""
    match place:
        case ir.Var(name=name):
            return name
        case ir.Member(base=base, field=field):
            return f"{path(base)}.{field}"
        case ir.Index(base=base, index=ir.Const(value=index)):
            return f"{path(base)}[{index}]"
        case ir.Index(base=base):
            return f"{path(base)}[...]"
        case ir.StackNext(base=base):
            return f"{path(base)}.next"
        case ir.StackLast(base=base):
            return f"{path(base)}.last"
        case ir.Slice(base=base, high=high, low=low):
            return f"{path(base)}[{high}:{low}]"
    return "..."


def looked_up(writer: Writer, table: ir.Table, number: int, key_bytes: int, data_bytes: int) -> None:
    """Trace a lookup: the key, the entry, the action and its arguments."""
    unit, function = writer.unit, writer.function
    if not unit.tracing.has_steps():
        return
    site = len(unit.trace_sites)
    unit.trace_sites.append(TraceSite("table", table.name, table=number))
    with function.block("if (traced(job))"):
        function.emit(f"uint8_t values[{key_bytes + 6 + data_bytes}];")
        if key_bytes:
            function.emit(f"memcpy(values, key, {key_bytes});")
        function.emit(f"store_be(values + {key_bytes}, 4, trace_handle(table, entry));")
        function.emit(f"store_be(values + {key_bytes + 4}, 2, action);")
        if data_bytes:
            function.emit(f"memcpy(values + {key_bytes + 6}, data, {data_bytes});")
        function.emit(f"emit_trace(sw, job, {site}, values, sizeof values, NULL, 0);")
