"""C for P4's operators on bit<N> and int<N> of any width.

An int<N> is its two's complement bits in an unsigned value: only comparison, division, right shift,
saturation and widening look at the sign.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from v1model import ir
from v1model.backend.layout import INTEGER_BITS, NARROW_BITS, is_wide, value_width
from v1model.errors import UnsupportedError

if TYPE_CHECKING:
    from v1model.backend.function import Function

COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
WIDE_FUNCTIONS = {"+": "add", "-": "sub", "*": "mul", "&": "and", "|": "or", "^": "xor"}


def mask(width: int) -> str:
    if width <= NARROW_BITS:
        return f"UINT64_C({(1 << width) - 1:#x})"
    return f"mask128({width})"


def masked(value: str, width: int) -> str:
    return value if width in (NARROW_BITS, INTEGER_BITS) else f"({value} & {mask(width)})"


def _suffix(width: int) -> str:
    return "64" if width <= NARROW_BITS else "128"


def _signed(value_type: ir.Type) -> bool:
    return isinstance(value_type, ir.Bits) and value_type.signed and value_type.width > 0


def unary(function: Function, operator: str, value: str, value_type: ir.Type) -> str:
    width = value_width(value_type)
    if operator == "!":
        return f"(!{value})"
    if operator == "+":
        return value
    if is_wide(value_type):
        to = function.wide_temporary(width)
        if operator == "~":
            return f"wide_not({to}, {value}, {width})"
        zero = function.unit.wide_constant(0, width)
        return f"wide_sub({to}, {zero}, {value}, {width})"
    kind = "u128" if width > NARROW_BITS else "uint64_t"
    return masked(f"({kind})({operator}{value})" if operator == "~" else f"({kind})(0 - {value})", width)


def binary(function: Function, operator: str, values: tuple[str, str], types: tuple[ir.Type, ir.Type]) -> str:
    """Return C for a binary operator, except ++ and comparisons of aggregates."""
    left, right = values
    if operator in ("&&", "||"):
        return f"({left} {operator} {right})"
    if operator in COMPARISONS:
        return _comparison(operator, values, types[0])
    if operator in ("<<", ">>"):
        return _shift(function, operator, left, types[0], as_count(right, types[1]))
    if is_wide(types[0]):
        return _wide_binary(function, operator, values, types[0])
    if operator in ("|+|", "|-|"):
        return _saturating(function, operator, values, types[0])
    if operator in ("/", "%"):
        return _division(operator, values, types[0])
    if operator in ("&", "|", "^"):
        return f"({left} {operator} {right})"
    return masked(f"({left} {operator} {right})", value_width(types[0]))


def _comparison(operator: str, values: tuple[str, str], value_type: ir.Type) -> str:
    width = value_width(value_type)
    left, right = values
    if is_wide(value_type):
        if operator in ("==", "!="):
            return f"({'!' if operator == '!=' else ''}wide_equal({left}, {right}, {width}))"
        return f"(wide_compare({left}, {right}, {width}, {int(_signed(value_type))}) {operator} 0)"
    if _signed(value_type) and operator not in ("==", "!="):
        sign = f"sign{_suffix(width)}"
        return f"({sign}({left}, {width}) {operator} {sign}({right}, {width}))"
    return f"({left} {operator} {right})"


def as_count(value: str, value_type: ir.Type) -> str:
    """Return an index or shift amount as a uint64_t; UINT64_MAX for one that is too large or negative."""
    width = value_width(value_type)
    if is_wide(value_type):
        return f"wide_shift_amount({value}, {width})"
    if width > NARROW_BITS:
        return f"({value} >> 64 ? UINT64_MAX : (uint64_t){value})"
    if _signed(value_type):
        return f"(sign64({value}, {width}) < 0 ? UINT64_MAX : {value})"
    return value


def _shift(function: Function, operator: str, value: str, value_type: ir.Type, amount: str) -> str:
    width, signed = value_width(value_type), _signed(value_type)
    if is_wide(value_type):
        to = function.wide_temporary(width)
        if operator == "<<":
            return f"wide_shl({to}, {value}, {amount}, {width})"
        return f"wide_shr({to}, {value}, {amount}, {width}, {int(signed)})"
    name = "shl" if operator == "<<" else "sar" if signed else "shr"
    return f"{name}{_suffix(width)}({value}, {amount}, {width})"


def _wide_binary(function: Function, operator: str, values: tuple[str, str], value_type: ir.Type) -> str:
    width = value_width(value_type)
    to = function.wide_temporary(width)
    left, right = values
    if operator in WIDE_FUNCTIONS:
        return f"wide_{WIDE_FUNCTIONS[operator]}({to}, {left}, {right}, {width})"
    if operator in ("|+|", "|-|"):
        name = "add" if operator == "|+|" else "sub"
        return f"wide_sat_{name}({to}, {left}, {right}, {width}, {int(_signed(value_type))})"
    if operator in ("/", "%") and not _signed(value_type):
        return f"wide_divmod({to}, {left}, {right}, {width}, {int(operator == '%')})"
    raise UnsupportedError(f"operator {operator} on int<{width}>")


def _saturating(function: Function, operator: str, values: tuple[str, str], value_type: ir.Type) -> str:
    width, signed = value_width(value_type), _signed(value_type)
    name = "add" if operator == "|+|" else "sub"
    if width > NARROW_BITS:
        operands = [f"wide_from({function.wide_temporary(width)}, {width}, {value})" for value in values]
        to = function.wide_temporary(width)
        result = f"wide_sat_{name}({to}, {operands[0]}, {operands[1]}, {width}, {int(signed)})"
        return f"wide_low128({result}, {width})"
    if width == 0:
        return "UINT64_C(0)"
    if signed:
        return f"sat_{name}_signed64({values[0]}, {values[1]}, {width})"
    if operator == "|-|":
        return f"sat_sub64({values[0]}, {values[1]})"
    return f"sat_add64({values[0]}, {values[1]}, {width})"


def _division(operator: str, values: tuple[str, str], value_type: ir.Type) -> str:
    """Return C for / or %. Division by 0 gives 0: nothing may stop the switch."""
    width = value_width(value_type)
    left, right = values
    if not _signed(value_type):
        return f"({right} ? {left} {operator} {right} : 0)"
    if width > NARROW_BITS:
        raise UnsupportedError(f"operator {operator} on int<{width}>")
    quotient = f"(i128)sign64({left}, {width}) {operator} sign64({right}, {width})"
    return masked(f"(uint64_t)({right} ? {quotient} : 0)", width)


def cast(function: Function, value: str, from_type: ir.Type, to_type: ir.Type) -> str:
    if isinstance(to_type, ir.Bool) or isinstance(from_type, ir.Bool):
        return f"(uint64_t)({value})" if isinstance(to_type, ir.Bits) else f"({value} != 0)"
    if not isinstance(from_type, ir.Bits) or not isinstance(to_type, ir.Bits):
        return value  # between structs of one shape
    width, from_width, signed = to_type.width, from_type.width, _signed(from_type)
    if from_width == 0:
        value, from_width, signed = "UINT64_C(0)", 1, False
    if is_wide(to_type):
        return _cast_to_wide(function, value, from_width, width, signed=signed)
    kind = "u128" if width > NARROW_BITS else "uint64_t"
    if from_width > INTEGER_BITS:
        return masked(f"(({kind})wide_low128({value}, {from_width}))", width)
    if signed and width > from_width:
        return masked(f"(({kind})sign{_suffix(from_width)}({value}, {from_width}))", width)
    return masked(f"(({kind}){value})", width) if width < from_width else f"(({kind}){value})"


def _cast_to_wide(function: Function, value: str, from_width: int, width: int, *, signed: bool) -> str:
    to = function.wide_temporary(width)
    if from_width <= INTEGER_BITS:
        if not signed:
            return f"wide_from({to}, {width}, {value})"
        value = f"wide_from({function.wide_temporary(from_width)}, {from_width}, {value})"
    return f"wide_resize({to}, {width}, {value}, {from_width}, {int(signed)})"
