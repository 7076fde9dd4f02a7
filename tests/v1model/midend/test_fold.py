"""Constant folding against arithmetic on Python's integers (spec section 8)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from v1model import ir
from v1model.errors import CompileError
from v1model.midend import fold
from v1model.midend.shapes import INTEGER

WIDTHS = st.integers(1, 80)


@st.composite
def operands(draw: st.DrawFn) -> tuple[ir.Bits, int, int]:
    """A type and two values that it holds."""
    type_ = ir.Bits(draw(WIDTHS), draw(st.booleans()))
    low = -(1 << (type_.width - 1)) if type_.signed else 0
    values = st.integers(low, low + (1 << type_.width) - 1)
    return type_, draw(values), draw(values)


def folded(op: str, left: ir.Expr, right: ir.Expr, type_: ir.Type) -> int:
    result = fold.binary(op, left, right, type_)
    assert isinstance(result, ir.Const)
    assert isinstance(result.value, int)
    return result.value


@given(operands(), st.sampled_from(["+", "-", "*"]))
def test_arithmetic_wraps(given_: tuple[ir.Bits, int, int], op: str) -> None:
    type_, a, b = given_
    exact = {"+": a + b, "-": a - b, "*": a * b}[op]
    result = folded(op, ir.Const(a, type_), ir.Const(b, type_), type_)
    assert (result - exact) % (1 << type_.width) == 0
    assert result == fold.wrap(result, type_)


@given(operands(), st.sampled_from(["|+|", "|-|"]))
def test_saturation_stops_at_the_bounds(given_: tuple[ir.Bits, int, int], op: str) -> None:
    type_, a, b = given_
    exact = a + b if op == "|+|" else a - b
    low = -(1 << (type_.width - 1)) if type_.signed else 0
    expected = max(low, min(low + (1 << type_.width) - 1, exact))
    assert folded(op, ir.Const(a, type_), ir.Const(b, type_), type_) == expected


@given(operands(), st.integers(0, 200))
def test_shifts(given_: tuple[ir.Bits, int, int], amount: int) -> None:
    type_, a, _ = given_
    by = ir.Const(amount, ir.Bits(8))
    assert folded("<<", ir.Const(a, type_), by, type_) == fold.wrap(a << amount, type_)
    assert folded(">>", ir.Const(a, type_), by, type_) == a >> amount


@given(operands(), operands())
def test_concatenation_and_slices_undo_each_other(
    left: tuple[ir.Bits, int, int], right: tuple[ir.Bits, int, int]
) -> None:
    (left_type, a, _), (right_type, b, _) = left, right
    joined_type = ir.Bits(left_type.width + right_type.width)
    joined = fold.binary("++", ir.Const(a, left_type), ir.Const(b, right_type), joined_type)
    upper = fold.slice_(joined, joined_type.width - 1, right_type.width)
    lower = fold.slice_(joined, right_type.width - 1, 0)
    assert fold.cast(upper, left_type) == ir.Const(a, left_type)
    assert fold.cast(lower, right_type) == ir.Const(b, right_type)


@given(st.integers(-1000, 1000), st.integers(1, 50))
def test_division_truncates(a: int, b: int) -> None:
    left, right = ir.Const(a, INTEGER), ir.Const(b, INTEGER)
    quotient, remainder = folded("/", left, right, INTEGER), folded("%", left, right, INTEGER)
    assert quotient * b + remainder == a
    assert abs(remainder) < b


def test_division_by_zero_is_refused() -> None:
    with pytest.raises(CompileError, match="zero"):
        fold.binary("/", ir.Var("x", ir.Bits(8)), ir.Const(0, ir.Bits(8)), ir.Bits(8))


def test_huge_shifts_of_compile_time_integers_are_refused() -> None:
    with pytest.raises(CompileError, match="shift"):
        fold.binary("<<", ir.Const(1, INTEGER), ir.Const(1 << 40, INTEGER), INTEGER)
    assert folded("<<", ir.Const(1, ir.Bits(8)), ir.Const(1 << 40, ir.Bits(64)), ir.Bits(8)) == 0


def test_logic_folds_where_the_left_decides() -> None:
    unknown = ir.Var("x", ir.Bool())
    assert fold.binary("&&", fold.FALSE, unknown, ir.Bool()) == fold.FALSE
    assert fold.binary("&&", fold.TRUE, unknown, ir.Bool()) == unknown
    assert fold.binary("||", fold.TRUE, unknown, ir.Bool()) == fold.TRUE
    assert fold.binary("||", unknown, fold.FALSE, ir.Bool()) == unknown


def test_slices_of_slices_become_one() -> None:
    word = ir.Var("w", ir.Bits(32))
    assert fold.slice_(fold.slice_(word, 23, 8), 7, 4) == ir.Slice(word, 15, 12, ir.Bits(4))
    assert fold.slice_(word, 31, 0) == word
