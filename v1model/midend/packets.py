"""Methods of packet_in and packet_out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from v1model import ir
from v1model.errors import UnsupportedError
from v1model.frontend.types import MAX_WIDTH_BITS
from v1model.midend import fold
from v1model.midend.arguments import arguments
from v1model.midend.values import VOID, root

if TYPE_CHECKING:
    from v1model.frontend import ast
    from v1model.midend.frame import Frame


def call(frame: Frame, node: ast.Call, name: str) -> ir.Expr:
    """Lower a method of packet_in or packet_out; return its value."""
    match name:
        case "extract":
            _extract(frame, node)
        case "emit":
            _emit(frame, arguments(frame, node)[0], node)
        case "advance":
            frame.emit(ir.Advance(arguments(frame, node)[0]))
        case "length":
            return frame.save(ir.PacketLength())
        case "lookahead":
            return _lookahead(frame, node)
        case _:
            raise UnsupportedError(f"{name} of a packet", node.span)
    return VOID


def _extract(frame: Frame, node: ast.Call) -> None:
    if node.arguments[0].value is None:
        header = frame.unit.shapes.of(frame.scope.closed(node.inferred[0]), node.span)
        assert isinstance(header, ir.Header)
        frame.emit(ir.Extract(None, header))
        return
    values = arguments(frame, node)
    target = values[0]
    if not isinstance(target.type, ir.Header):
        raise UnsupportedError("extract of something that is no header", node.span)
    frame.emit(ir.Extract(target, target.type, values[1] if len(values) > 1 else None))


def _emit(frame: Frame, value: ir.Expr, node: ast.Call) -> None:
    if isinstance(value, ir.Aggregate) and isinstance(value.type, ir.Struct):
        for part in value.values:
            _emit(frame, part, node)
        return
    if not isinstance(value.type, ir.Struct | ir.Header | ir.Union | ir.Stack):
        raise UnsupportedError(
            "emit of something that is no header, stack, union or struct of these", node.span
        )
    if isinstance(value, ir.Aggregate):
        value = frame.save(value)
    assert root(value)
    frame.emit(ir.Emit(value))


def _lookahead(frame: Frame, node: ast.Call) -> ir.Expr:
    """Lower a lookahead: its bits, split into the value's parts. A header in it is valid, as in p4c."""
    type_ = frame.unit.shapes.of(frame.scope.closed(node.inferred[0]), node.span)
    width = _width(type_, node)
    if width > MAX_WIDTH_BITS:
        raise UnsupportedError(f"lookahead of more than {MAX_WIDTH_BITS} bits", node.span)
    word = frame.save(ir.Lookahead(ir.Bits(width)))
    return word if word.type == type_ else _apart(word, type_, width, node)


def _width(type_: ir.Type, node: ast.Call) -> int:
    """Return the bits of a value in a packet."""
    match type_:
        case ir.Bits(width=width):
            return width
        case ir.Bool():
            return 1
        case ir.Struct(fields=fields) | ir.Header(fields=fields):
            return sum(_width(field, node) for _, field in fields)
        case ir.Stack(element=element, size=size):
            return size * _width(element, node)
        case _:
            raise UnsupportedError("lookahead of a varbit or a header union", node.span)


def _apart(word: ir.Expr, type_: ir.Type, high: int, node: ast.Call) -> ir.Expr:
    """Return the value of `type_` in the bits of `word` below `high`."""
    parts = []
    match type_:
        case ir.Struct(fields=fields) | ir.Header(fields=fields):
            types = [field for _, field in fields]
        case ir.Stack(element=element, size=size):
            types = [element] * size
        case _:
            return fold.cast(fold.slice_(word, high - 1, high - _width(type_, node)), type_)
    for part in types:
        parts.append(_apart(word, part, high, node))
        high -= _width(part, node)
    return ir.Aggregate(tuple(parts), type_)
