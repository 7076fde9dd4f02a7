"""Messages of log_msg: the layout of their values in an event, and how a reader shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from v1model import ir
from v1model.backend import wire
from v1model.backend.layout import value_width, wire_bytes
from v1model.backend.unit import Logged, LoggedNumber, LoggedRecord, LoggedVarbit, LogMessage
from v1model.errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from v1model.backend.writer import Writer


def log_msg(writer: Writer, statement: ir.ExternCall) -> None:
    """Emit a message with the values of its list; headers and structs with all their fields."""
    text, *rest = statement.arguments
    if not isinstance(text, ir.Const):
        raise UnsupportedError("log_msg of a string that is not known at compile time", statement.span)
    items: list[wire.Item] = []
    values = tuple(_logged(writer, value, items) for argument in rest for value in _listed(argument))
    emit(writer, LogMessage(str(text.value), values), items)


def emit(writer: Writer, message: LogMessage, items: Sequence[wire.Item] = ()) -> None:
    """Emit a message whose numbers are `items`, each of whole bytes."""
    function = writer.function
    number = writer.unit.message(message)
    size = sum(item.width for item in items) // 8
    with function.block("if (sw->log_enabled)"):
        function.emit(f"uint8_t values[{max(1, size)}];", "values[0] = 0;")
        function.emit(*wire.pack(list(items), "values"), f"emit_log(sw, {number}, values, {size});")


def _listed(argument: ir.Expr) -> Iterator[ir.Expr]:
    """Yield the values for the places {}: the elements of a list or struct, or the one value."""
    if isinstance(argument.type, ir.Struct):
        yield from (part for _, part in _parts(argument))
    else:
        yield argument


def _logged(writer: Writer, value: ir.Expr, items: list[wire.Item]) -> Logged:
    """Return how to show a value, and append its numbers to `items` in the same order."""
    match value.type:
        case ir.String() if isinstance(value, ir.Const):
            return str(value.value)
        case ir.Bits() | ir.Bool():
            width = value_width(value.type)
            items.append(wire.Item(writer.expressions.value(value), wire_bytes(width) * 8))
            return LoggedNumber(width, isinstance(value.type, ir.Bits) and value.type.signed)
        case ir.Varbit(max_width):
            place, width = writer.expressions.value(value), wire_bytes(max_width) * 8
            items.append(wire.Item(f"{place}.bits", 32))
            items.append(wire.Item(wire.bytes_value(f"{place}.data", width), width))
            return LoggedVarbit(max_width)
        case ir.Header():
            items.append(wire.Item(f"(uint8_t)({writer.expressions.condition(ir.IsValid(value))})", 8))
            return LoggedRecord(_all(writer, value, items), is_header=True)
        case ir.Struct() | ir.Union() | ir.Stack():
            return LoggedRecord(_all(writer, value, items))
        case _:
            name = type(value.type).__name__.lower()
            raise UnsupportedError(f"log_msg of a {name} that is not known at compile time")


def _all(writer: Writer, value: ir.Expr, items: list[wire.Item]) -> tuple[tuple[str, Logged], ...]:
    return tuple((name, _logged(writer, part, items)) for name, part in _parts(value))


def _parts(value: ir.Expr) -> Iterator[tuple[str, ir.Expr]]:
    """Yield the fields, members or elements of a composite value with their names."""
    type_ = value.type
    if isinstance(type_, ir.Stack):
        for index in range(type_.size):
            yield str(index), ir.Index(value, ir.Const(index, ir.Bits(32)), type_.element)
        return
    assert isinstance(type_, ir.Struct | ir.Header | ir.Union), value
    for position, (name, part) in enumerate(type_.fields):
        if isinstance(value, ir.Aggregate) and value.valid:
            yield name, value.values[position]
        else:
            yield name, ir.Member(value, name, part)
