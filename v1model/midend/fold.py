"""Constant folding of IR expressions as they are built, with P4's arithmetic."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

from v1model import ir
from v1model.errors import CompileError, UnsupportedError
from v1model.frontend.types import MAX_INT_BITS, MAX_STRING_CHARACTERS
from v1model.midend.shapes import INTEGER

if TYPE_CHECKING:
    from collections.abc import Callable

    from v1model.frontend.ast import Span

TRUE, FALSE = ir.Const(1, ir.Bool()), ir.Const(0, ir.Bool())


def boolean(value: bool) -> ir.Const:
    return TRUE if value else FALSE


def wrap(value: int, type_: ir.Type) -> int:
    """Return `value` as `type_` holds it: modulo 2**width, two's complement if signed."""
    if not isinstance(type_, ir.Bits) or type_ == INTEGER:
        return value
    value &= (1 << type_.width) - 1
    if type_.signed and type_.width and value >> (type_.width - 1):
        value -= 1 << type_.width
    return value


def bits(value: int, type_: ir.Type) -> ir.Const:
    return ir.Const(wrap(value, type_), type_)


def _saturate(value: int, type_: ir.Type) -> int:
    assert isinstance(type_, ir.Bits)
    if type_.signed:
        return max(-(1 << (type_.width - 1)), min((1 << (type_.width - 1)) - 1, value))
    return max(0, min((1 << type_.width) - 1, value))


_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "|+|": operator.add,
    "|-|": operator.sub,
}
_COMPARISON: dict[str, Callable[[int, int], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def _known(expression: ir.Expr) -> int | None:
    if isinstance(expression, ir.Const) and isinstance(expression.value, int):
        return expression.value
    return None


def binary(op: str, left: ir.Expr, right: ir.Expr, type_: ir.Type, span: Span | None = None) -> ir.Expr:
    """Return left op right, a constant if both are; && and || also if the left decides."""
    if isinstance(type_, ir.String):
        return _joined(left, right, span)
    a, b = _known(left), _known(right)
    if op in ("&&", "||"):
        if a is not None:
            return right if bool(a) == (op == "&&") else left
        if b is not None and bool(b) == (op == "&&"):
            return left
    elif op in ("/", "%") and b == 0:
        raise CompileError("division by zero", span)
    elif op in ("<<", ">>") and b is not None and b < 0:
        raise CompileError("a shift amount must not be negative", span)
    if a is None or b is None or op in ("&&", "||"):
        return ir.Binary(op, left, right, type_)
    return _fold(op, a, b, left.type, right.type, type_, span)


def _joined(left: ir.Expr, right: ir.Expr, span: Span | None) -> ir.Const:
    """Return left ++ right of strings, which exist only at compile time."""
    if not isinstance(left, ir.Const) or not isinstance(right, ir.Const):
        raise UnsupportedError("a string that is not known at compile time", span)
    text = f"{left.value}{right.value}"
    if len(text) > MAX_STRING_CHARACTERS:
        raise CompileError(f"this string has more than {MAX_STRING_CHARACTERS} characters", span)
    return ir.Const(text, ir.String())


def _fold(
    op: str, a: int, b: int, left: ir.Type, right: ir.Type, type_: ir.Type, span: Span | None
) -> ir.Const:
    if op in _COMPARISON:
        return boolean(_COMPARISON[op](a, b))
    if op in ("|+|", "|-|"):
        return ir.Const(_saturate(_ARITHMETIC[op](a, b), type_), type_)
    if op in _ARITHMETIC:
        return _bounded(_ARITHMETIC[op](a, b), type_, span)
    if op in ("/", "%"):
        quotient, remainder = divmod(abs(a), b)
        sign = -1 if a < 0 else 1
        return bits(sign * (quotient if op == "/" else remainder), type_)
    if op == "++":
        assert isinstance(left, ir.Bits)
        assert isinstance(right, ir.Bits)
        return bits(((a & ((1 << left.width) - 1)) << right.width) | (b & ((1 << right.width) - 1)), type_)
    if op == "<<" and b > MAX_INT_BITS:
        if type_ == INTEGER:
            raise CompileError(f"a shift of a compile-time integer by more than {MAX_INT_BITS} bits", span)
        return bits(0, type_)
    return _bounded(a << b if op == "<<" else a >> b, type_, span)


def _bounded(value: int, type_: ir.Type, span: Span | None) -> ir.Const:
    if type_ == INTEGER and value.bit_length() > MAX_INT_BITS:
        raise CompileError(f"this number has more than {MAX_INT_BITS} bits", span)
    return bits(value, type_)


def unary(op: str, operand: ir.Expr, type_: ir.Type) -> ir.Expr:
    value = _known(operand)
    if op == "+":
        return operand
    if value is None:
        if op == "!" and isinstance(operand, ir.Unary) and operand.operator == "!":
            return operand.operand
        return ir.Unary(op, operand, type_)
    if op == "!":
        return boolean(not value)
    return bits(-value if op == "-" else ~value, type_)


def cast(operand: ir.Expr, type_: ir.Type) -> ir.Expr:
    """Return a cast between scalars: Bits, Bool and compile-time integers."""
    if operand.type == type_:
        return operand
    value = _known(operand)
    if value is not None:
        return boolean(bool(value)) if isinstance(type_, ir.Bool) else bits(value, type_)
    if isinstance(type_, ir.Bits) and isinstance(operand.type, ir.Bool) and type_.width != 1:
        operand = ir.Cast(operand, ir.Bits(1))
    return ir.Cast(operand, type_)


def slice_(base: ir.Expr, high: int, low: int) -> ir.Expr:
    type_ = ir.Bits(high - low + 1)
    value = _known(base)
    if value is not None:
        return bits(value >> low, type_)
    if isinstance(base, ir.Slice):
        return slice_(base.base, high + base.low, low + base.low)
    if isinstance(base.type, ir.Bits) and base.type == type_ and low == 0:
        return base
    return ir.Slice(base, high, low, type_)


def ternary(condition: ir.Expr, then: ir.Expr, otherwise: ir.Expr) -> ir.Expr:
    value = _known(condition)
    if value is None:
        return ir.Ternary(condition, then, otherwise, then.type)
    return then if value else otherwise


def member(base: ir.Expr, field: str) -> ir.Expr:
    """Return base.field of a struct, header or union; of an aggregate, the field's own expression."""
    assert isinstance(base.type, ir.Struct | ir.Header | ir.Union), base
    for position, (name, type_) in enumerate(base.type.fields):
        if name == field:
            if isinstance(base, ir.Aggregate) and base.valid:
                return base.values[position]
            return ir.Member(base, field, type_)
    raise AssertionError(f"{base.type.name} has no field {field}")
