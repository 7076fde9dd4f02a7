"""Values of compile-time-known expressions: int, bool, str, and tuples of those."""

from __future__ import annotations

import operator
from collections.abc import Callable

from v1model.errors import CompileError
from v1model.frontend import ast
from v1model.frontend.types import (
    MAX_INT_BITS,
    MAX_STRING_CHARACTERS,
    BitType,
    BoolType,
    EnumType,
    NewType,
    Type,
)


def wrap(value: int, kind: Type | None) -> int:
    """Return `value` wrapped to the range of a bit<W> or int<W>; of any other type unchanged."""
    if not isinstance(kind, BitType):
        return value
    value &= (1 << kind.width) - 1
    if kind.signed and kind.width and value >> (kind.width - 1):
        value -= 1 << kind.width
    return value


def saturate(value: int, kind: Type | None) -> int:
    """Return `value`, or the nearest value of a bit<W> or int<W>."""
    if not isinstance(kind, BitType):
        return value
    low = -(1 << kind.width - 1) if kind.signed and kind.width else 0
    high = (1 << kind.width - 1) - 1 if kind.signed and kind.width else (1 << kind.width) - 1
    return max(low, min(high, value))


_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "/": operator.floordiv,
    "%": operator.mod,
    "<<": operator.lshift,
    ">>": operator.rshift,
}
_UNARY: dict[str, Callable[[int], int]] = {
    "-": operator.neg,
    "+": operator.pos,
    "~": operator.invert,
}
_COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def fold_binary(node: ast.Binary) -> object | None:
    """Return the value of a checked binary expression, None if it is not known."""
    left, right = node.left.constant, node.right.constant
    if node.operator in ("&&", "||") and isinstance(left, bool):
        # The other operand is not evaluated, so it need not be known.
        if left is (node.operator == "||"):
            return left
        return right
    if left is None or right is None:
        return None
    if node.operator in ("==", "!="):
        return (left == right) is (node.operator == "==")
    if isinstance(left, str) and isinstance(right, str):
        if len(left) + len(right) > MAX_STRING_CHARACTERS:
            message = f"this string has more than {MAX_STRING_CHARACTERS} characters"
            raise CompileError(message, node.span)
        return left + right
    if not isinstance(left, int) or not isinstance(right, int):
        return None
    if comparison := _COMPARISONS.get(node.operator):
        return comparison(left, right)
    return _fold_arithmetic(node, left, right)


def _fold_arithmetic(node: ast.Binary, left: int, right: int) -> int | None:
    match node.operator:
        case "|+|":
            return saturate(left + right, node.type)
        case "|-|":
            return saturate(left - right, node.type)
        case "++":
            assert isinstance(node.right.type, BitType)
            width = node.right.type.width
            return wrap(left << width | right & (1 << width) - 1, node.type)
        case "/" | "%" if left < 0 or right < 0:
            raise CompileError("division is not defined for negative numbers", node.span)
        case "<<" | ">>" if right < 0:
            raise CompileError("shift by a negative amount", node.right.span)
        case "<<" | ">>" if right > MAX_INT_BITS:
            if not isinstance(node.type, BitType):
                raise CompileError(f"shift by more than {MAX_INT_BITS} bits", node.right.span)
            right = MAX_INT_BITS
    if (function := _ARITHMETIC.get(node.operator)) is None:
        return None
    return bounded(wrap(function(left, right), node.type), node.span)


def bounded(value: int, span: ast.Span) -> int:
    """Return `value`; raises CompileError if it is wider than an `int` may be."""
    if value.bit_length() > MAX_INT_BITS:
        raise CompileError(f"this number has more than {MAX_INT_BITS} bits", span)
    return value


def fold_unary(node: ast.Unary) -> object | None:
    value = node.operand.constant
    if node.operator == "!":
        return None if value is None else not value
    if not isinstance(value, int):
        return None
    return wrap(_UNARY[node.operator](value), node.type)


def fold_cast(value: object | None, target: Type) -> object | None:
    """Return the value of a cast of a known value to `target`."""
    if not isinstance(value, int):
        return value
    match target:
        case NewType():
            return fold_cast(value, target.base)
        case BoolType():
            return bool(value)
        case EnumType() if target.underlying:
            return wrap(int(value), target.underlying)
    return wrap(int(value), target) if isinstance(target, BitType) else value


def require_int(node: ast.Expression, what: str) -> int:
    """Return the value of a checked expression that must be a compile-time-known integer."""
    value = node.constant
    if isinstance(value, bool) or not isinstance(value, int):
        raise CompileError(f"{what} must be a compile-time-known integer", node.span)
    return value


def is_compile_time(node: ast.Expression) -> bool:
    """Return whether the value is known once the program is instantiated (spec section 18.1)."""
    if node.constant is not None:
        return True
    match node:
        case ast.Name():
            return _is_compile_time_name(node)
        case ast.Call():
            return node.kind == "constructor"
        case ast.ListExpression():
            return all(is_compile_time(element) for element in node.elements)
        case ast.StructExpression():
            return all(is_compile_time(value) for value in node.fields.values())
        case ast.Binary():
            return is_compile_time(node.left) and is_compile_time(node.right)
        case ast.Unary() | ast.Cast():
            return is_compile_time(node.operand)
        case ast.Ternary():
            return all(is_compile_time(part) for part in (node.condition, node.then, node.otherwise))
        case ast.Member() | ast.Index() | ast.Slice():
            return is_compile_time(node.base)
    return isinstance(node, ast.InvalidExpression | ast.DefaultExpression)


def _is_compile_time_name(node: ast.Name) -> bool:
    declaration = node.declaration
    if isinstance(declaration, ast.Parameter):
        return declaration.direction == ""
    return isinstance(declaration, ast.ConstantDeclaration | ast.Instantiation)
