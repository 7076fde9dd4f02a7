"""C expressions for IR expressions.

A Bits up to 128 bits and a Bool become C integers, a wider Bits a pointer to its bytes, an aggregate an
lvalue. Parts that need a statement of their own (an aggregate's construction, a parser's bounds check) are
emitted before the statement that is being generated: IR expressions have no side effects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from v1model import ir
from v1model.backend import arithmetic, wire
from v1model.backend.layout import (
    INTEGER_BITS,
    NARROW_BITS,
    is_wide,
    value_width,
    wire_bytes,
)
from v1model.backend.names import identifier
from v1model.errors import UnsupportedError

if TYPE_CHECKING:
    from v1model.backend.function import Function

SHARED = ("headers", "metadata", "standard_metadata")


class Expressions:
    """Translator of expressions inside one C function, in which `phv` is the name of its struct phv."""

    def __init__(self, function: Function, phv: str = "p") -> None:
        self._function = function
        self._phv = phv

    # --- places ------------------------------------------------------------------------------

    def place(self, expression: ir.Expr) -> str:
        """Return a C lvalue to write to."""
        return self._place(expression, write=True)

    def _place(self, expression: ir.Expr, *, write: bool) -> str:
        match expression:
            case ir.Var(name, _):
                return f"{self._phv}->{name}" if name in SHARED else self._function.variable(name)
            case ir.Member(base, field, _):
                return f"{self._place(base, write=write)}.f_{identifier(field)}"
            case ir.Index(base, index, _):
                return self._element(base, index, write=write)
            case ir.StackNext(base, _):
                stack = self._place(base, write=write)
                self._function.check(f"{stack}.next >= {_stack(base).size}", "StackOutOfBounds")
                return f"{stack}.e[{stack}.next]"
            case ir.StackLast(base, _):
                return self._last(base, write=write)
        if write:
            raise UnsupportedError(f"this expression can't be assigned to: {type(expression).__name__}")
        return self.value(expression)

    def _last(self, base: ir.Expr, *, write: bool) -> str:
        stack = self._place(base, write=write)
        size = _stack(base).size
        if self._function.is_parser:
            self._function.check(f"{stack}.next == 0", "StackOutOfBounds")
            return f"{stack}.e[{stack}.next - 1]"
        return f"{stack}.e[{stack}.next ? {stack}.next - 1 : {size + write}]"

    def _element(self, base: ir.Expr, index: ir.Expr, *, write: bool) -> str:
        size = _stack(base).size
        stack = self._place(base, write=write)
        if isinstance(index, ir.Const):
            at = int(index.value)
            return f"{stack}.e[{at if 0 <= at < size else size + write}]"
        number = arithmetic.as_count(self.value(index), index.type)
        return f"{stack}.e[{number} < {size} ? (uint32_t){number} : {size + write}]"

    # --- values ------------------------------------------------------------------------------

    def value(self, expression: ir.Expr) -> str:
        """Return a C expression for a value; integers are in parentheses, in the type of the computation."""
        match expression:
            case ir.Const(value, value_type):
                return self._constant(value, value_type)
            case ir.Var() | ir.Member() | ir.Index() | ir.StackNext() | ir.StackLast():
                return _widened(self._place(expression, write=False), expression.type)
            case ir.StackLastIndex(base, _):
                return f"(uint64_t)(uint32_t)({self._place(base, write=False)}.next - 1)"
            case ir.Slice(base, high, low, _):
                return self._slice(base, high, low)
            case ir.IsValid(base, _):
                return self._is_valid(base)
            case ir.Unary(operator, operand, value_type):
                return arithmetic.unary(self._function, operator, self.value(operand), value_type)
            case ir.Binary():
                return self._binary(expression)
            case ir.Ternary():
                return self._ternary(expression)
            case ir.Cast(operand, value_type):
                return arithmetic.cast(self._function, self.value(operand), operand.type, value_type)
            case ir.Aggregate():
                return self._aggregate(expression)
            case ir.Lookahead(value_type):
                return self._lookahead(value_type)
            case ir.PacketLength():
                return "(uint64_t)job->length"
        raise UnsupportedError(f"expression not supported here: {type(expression).__name__}")

    def condition(self, expression: ir.Expr) -> str:
        return self.value(expression)

    def _constant(self, value: int | str, value_type: ir.Type) -> str:
        if isinstance(value_type, ir.Bool):
            return str(int(value))
        if not isinstance(value_type, ir.Bits) or not isinstance(value, int):
            raise UnsupportedError(f"a constant of type {type(value_type).__name__} is not supported here")
        value &= (1 << value_type.width) - 1
        if value_type.width > INTEGER_BITS:
            return self._function.unit.wide_constant(value, value_type.width)
        if value_type.width > NARROW_BITS:
            return f"((u128)UINT64_C({value >> 64:#x}) << 64 | UINT64_C({value & (1 << 64) - 1:#x}))"
        return f"UINT64_C({value:#x})" if value > 9 else f"UINT64_C({value})"

    def _slice(self, base: ir.Expr, high: int, low: int) -> str:
        width = high - low + 1
        value, base_width = self.value(base), value_width(base.type)
        if not is_wide(base.type):
            shifted = f"{value} >> {low}" if low else value
            cast = "(uint64_t)" if width <= NARROW_BITS < base_width else ""
            return f"({cast}({shifted}) & {arithmetic.mask(width)})"
        if width > INTEGER_BITS:
            return (
                f"wide_slice({self._function.wide_temporary(width)}, {value}, {base_width}, {low}, {width})"
            )
        cast = "(uint64_t)" if width <= NARROW_BITS else ""
        return f"({cast}wide_slice128({value}, {base_width}, {low}, {width}))"

    def _is_valid(self, base: ir.Expr) -> str:
        place = self._place(base, write=False)
        if isinstance(base.type, ir.Union):
            members = [f"{place}.f_{identifier(name)}.valid" for name, _ in base.type.fields]
            return f"({' || '.join(members) or '0'})"
        return f"({place}.valid != 0)"

    def _binary(self, expression: ir.Binary) -> str:
        operator, left, right = expression.operator, expression.left, expression.right
        if operator == "++":
            return self._concatenation(left, right)
        if operator in ("==", "!=") and not isinstance(left.type, ir.Bits | ir.Bool):
            equal = self._function.unit.types.equal(left.type, self.value(left), self.value(right))
            return f"({equal})" if operator == "==" else f"(!({equal}))"
        values = self.value(left), self.value(right)
        return arithmetic.binary(self._function, operator, values, (left.type, right.type))

    def _concatenation(self, left: ir.Expr, right: ir.Expr) -> str:
        low_width = value_width(right.type)
        width = value_width(left.type) + low_width
        if width <= INTEGER_BITS:
            kind = "uint64_t" if width <= NARROW_BITS else "u128"
            high = self.value(left) if value_width(left.type) else "0"
            if low_width >= width:
                return f"(({kind}){self.value(right)})"
            return f"(({kind}){high} << {low_width} | {self.value(right)})"
        to = f"wide_from({self._function.wide_temporary(width)}, {width}, 0)"
        for part, low in ((left, low_width), (right, 0)):
            suffix = "" if is_wide(part.type) else "128"
            to = f"wide_insert{suffix}({to}, {width}, {low}, {self.value(part)}, {value_width(part.type)})"
        return to

    def _ternary(self, expression: ir.Ternary) -> str:
        condition = self.condition(expression.condition)
        then, otherwise = self.value(expression.then), self.value(expression.otherwise)
        if isinstance(expression.type, ir.Bits | ir.Bool):
            return f"({condition} ? {then} : {otherwise})"
        return f"(*({condition} ? &{then} : &{otherwise}))"

    def _aggregate(self, expression: ir.Aggregate) -> str:
        temporary = self._function.temporary(expression.type)
        self._function.emit(f"memset(&{temporary}, 0, sizeof {temporary});")
        match expression.type:
            case ir.Stack(_, size):
                self._function.emit(f"{temporary}.next = {min(len(expression.values), size)};")
                places = [f"{temporary}.e[{i}]" for i in range(size)]
            case ir.Header(_, fields):
                self._function.emit(f"{temporary}.valid = {int(expression.valid)};")
                places = [f"{temporary}.f_{identifier(name)}" for name, _ in fields]
            case ir.Struct(_, fields) | ir.Union(_, fields):
                places = [f"{temporary}.f_{identifier(name)}" for name, _ in fields]
            case _:
                places = []
        for place, value in zip(places, expression.values, strict=False):
            self._function.emit(self.store(place, value))
        return temporary

    def store(self, place: str, value: ir.Expr) -> str:
        """Return a statement that writes a value to a place of its type."""
        if is_wide(value.type):
            return f"wide_copy({place}, {self.value(value)}, {value_width(value.type)});"
        return f"{place} = {self.value(value)};"

    def _lookahead(self, value_type: ir.Bits) -> str:
        bits = value_type.width
        self._function.check(f"job->length - offset < {wire_bytes(bits)}", "PacketTooShort")
        packet = "(job->data + offset)"
        if is_wide(value_type):
            return f"wide_load({self._function.wide_temporary(bits)}, {packet}, 0, {bits})"
        return f"({wire.load(packet, 0, bits)})"


def _stack(expression: ir.Expr) -> ir.Stack:
    stack = expression.type
    if not isinstance(stack, ir.Stack):
        raise UnsupportedError("only header stacks can be indexed")
    return stack


def _widened(place: str, value_type: ir.Type) -> str:
    """Return C that reads an integer from its storage, in the type of the computation."""
    if isinstance(value_type, ir.Bits) and value_type.width <= NARROW_BITS:
        return f"(uint64_t){place}"
    return place
