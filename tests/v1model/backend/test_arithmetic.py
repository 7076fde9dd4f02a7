"""Every operator on bit<N> and int<N> of narrow, middle and wide widths against Python's integers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.slow import rest_slow
from tests.v1model.backend.harness import BIT, Build, const, goto
from v1model import ir
from v1model.backend import build
from v1model.switch import Switch

WIDTHS = (1, 5, 8, 16, 31, 32, 33, 63, 64, 65, 100, 127, 128, 129, 136, 255, 256, 512)
KINDS = [ir.Bits(width, signed) for width in WIDTHS for signed in (False, True)]
FEW = [kind for kind in KINDS if kind.width in (1, 8, 33, 64, 129, 512)]
"""Each way in which the C holds a number."""
CAST_WIDTHS = (1, 8, 37, 64, 90, 128, 133, 260)


def mask(width: int) -> int:
    return (1 << width) - 1


def number(bits: int, kind: ir.Bits) -> int:
    """What a bit pattern means."""
    return bits - (1 << kind.width) if kind.signed and bits >> (kind.width - 1) else bits


def clamp(value: int, kind: ir.Bits) -> int:
    low, high = (-(1 << kind.width - 1), mask(kind.width - 1)) if kind.signed else (0, mask(kind.width))
    return min(max(value, low), high)


def divide(a: int, b: int, kind: ir.Bits) -> int:
    return 0 if b == 0 else a // b


def shift_right(a: int, by: int, kind: ir.Bits) -> int:
    return number(a, kind) >> by


# operator: the result's value from the operands' values (bit patterns for shifts)
ARITHMETIC: dict[str, Callable[[int, int, ir.Bits], int]] = {
    "+": lambda a, b, _: a + b,
    "-": lambda a, b, _: a - b,
    "*": lambda a, b, _: a * b,
    "&": lambda a, b, _: a & b,
    "|": lambda a, b, _: a | b,
    "^": lambda a, b, _: a ^ b,
    "|+|": lambda a, b, kind: clamp(a + b, kind),
    "|-|": lambda a, b, kind: clamp(a - b, kind),
}
DIVISION = {"/": divide, "%": lambda a, b, _: 0 if b == 0 else a % b}
COMPARISON: dict[str, Callable[[int, int], bool]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


class Case:
    """One expression over a and b, and what it should be (a bit pattern)."""

    def __init__(self, expression: ir.Expr, expected: Callable[[int, int], int]) -> None:
        self.expression, self.expected = expression, expected
        self.width = 1
        if not isinstance(expression.type, ir.Bool):
            assert isinstance(expression.type, ir.Bits)
            self.width = expression.type.width


def cases(kind: ir.Bits, a: ir.Expr, b: ir.Expr) -> Iterator[Case]:
    width = kind.width
    full = mask(width)

    def on_numbers(operation: Callable[[int, int, ir.Bits], int]) -> Callable[[int, int], int]:
        return lambda x, y: operation(number(x, kind), number(y, kind), kind) & full

    for operator, operation in ARITHMETIC.items():
        yield Case(ir.Binary(operator, a, b, kind), on_numbers(operation))
    for operator, operation in DIVISION.items() if not kind.signed else ():
        yield Case(ir.Binary(operator, a, b, kind), on_numbers(operation))
    for operator, comparison in COMPARISON.items():
        expected = lambda x, y, c=comparison: int(c(number(x, kind), number(y, kind)))  # noqa: E731
        yield Case(ir.Binary(operator, a, b, ir.Bool()), expected)
    yield Case(ir.Unary("~", a, kind), lambda x, _: ~x & full)
    yield Case(ir.Unary("-", a, kind), lambda x, _: -x & full)
    yield from shifts(kind, a, b)
    yield from slices_and_casts(kind, a, b)
    test = ir.Binary("<", a, b, ir.Bool())
    yield Case(ir.Ternary(test, a, b, kind), lambda x, y: x if number(x, kind) < number(y, kind) else y)


def shifts(kind: ir.Bits, a: ir.Expr, b: ir.Expr) -> Iterator[Case]:
    full = mask(kind.width)

    def left(by: int, x: int, _: int) -> int:
        return x << by & full

    def right(by: int, x: int, _: int) -> int:
        return shift_right(x, by, kind) & full

    for by in (0, 1, 7, 8, kind.width - 1, kind.width, kind.width + 9):
        constant = const(by, 32)
        yield Case(ir.Binary("<<", a, constant, kind), partial(left, by))
        yield Case(ir.Binary(">>", a, constant, kind), partial(right, by))
    amount = ir.Cast(b, ir.Bits(kind.width))
    top = 4 * kind.width  # Python need not shift by 2**512
    yield Case(ir.Binary("<<", a, amount, kind), lambda x, y: x << min(y, top) & full)
    yield Case(ir.Binary(">>", a, amount, kind), lambda x, y: shift_right(x, min(y, top), kind) & full)


def slices_and_casts(kind: ir.Bits, a: ir.Expr, b: ir.Expr) -> Iterator[Case]:
    width = kind.width

    def cut(low: int, bits: int, x: int, _: int) -> int:
        return x >> low & mask(bits)

    def cast(to: int, x: int, _: int) -> int:
        return number(x, kind) & mask(to)

    for low, high in {(0, width - 1), (width // 3, width * 2 // 3), (width - 1, width - 1), (0, 0)}:
        bits = high - low + 1
        yield Case(ir.Slice(a, high, low, BIT(bits)), partial(cut, low, bits))
    for to in CAST_WIDTHS:
        yield Case(ir.Cast(a, ir.Bits(to, kind.signed)), partial(cast, to))
    yield Case(ir.Binary("++", a, b, ir.Bits(2 * width, kind.signed)), lambda x, y: x << width | y)


def padded(width: int) -> int:
    return (width + 7) // 8 * 8


class Machine:
    """A program for one kind: operands in, every case's result out."""

    def __init__(self, kind: ir.Bits) -> None:
        room = padded(kind.width)
        sizes = [case.width for case in cases(kind, const(0, kind.width), const(0, kind.width))]
        operands = ir.Header("operands_t", (("a", BIT(room)), ("b", BIT(room))))
        results = ir.Header("results_t", tuple((f"r{i}", BIT(padded(size))) for i, size in enumerate(sizes)))
        made = Build((("operands", operands), ("results", results)))
        extract = ir.Extract(made.header("operands"), operands)
        made.states = (ir.State("start", (extract,), goto("accept")),)
        a, b = (ir.Var(name, kind) for name in "ab")
        made.locals = [a, b]
        made.ingress = [ir.Assign(v, ir.Cast(made.field("operands", v.name), kind)) for v in (a, b)]
        made.ingress.append(ir.SetValid(made.header("results"), True))
        self.cases = list(cases(kind, a, b))
        for i, case in enumerate(self.cases):
            made.ingress.append(ir.Assign(made.field("results", f"r{i}"), widened(case)))
        self.switch = Switch(build(made.program(), quick=True))

    def run(self, kind: ir.Bits, a: int, b: int) -> list[int]:
        size = padded(kind.width) // 8
        (output,) = self.switch.inject(1, a.to_bytes(size, "big") + b.to_bytes(size, "big"))
        results, at = [], 2 * size
        for case in self.cases:
            length = padded(case.width) // 8
            results.append(int.from_bytes(output.data[at : at + length], "big"))
            at += length
        assert at == len(output.data)
        return results


def widened(case: Case) -> ir.Expr:
    """The result as an unsigned value of whole bytes."""
    expression = case.expression
    if isinstance(expression.type, ir.Bool):
        expression = ir.Cast(expression, BIT(1))
    unsigned = ir.Cast(expression, ir.Bits(case.width))
    return ir.Cast(unsigned, BIT(padded(case.width)))


@cache
def machine(kind: ir.Bits) -> Machine:
    return Machine(kind)


def operands(width: int) -> st.SearchStrategy[int]:
    edges = [0, 1, mask(width), 1 << width - 1, mask(width) >> 1]
    return st.one_of(
        st.sampled_from(edges), st.integers(0, mask(width)), st.integers(0, min(300, mask(width)))
    )


@pytest.mark.parametrize(
    "kind", rest_slow(FEW, KINDS), ids=lambda kind: f"{'int' if kind.signed else 'bit'}{kind.width}"
)
@given(data=st.data())
def test_results_are_those_of_integers(kind: ir.Bits, data: st.DataObject) -> None:
    a, b = data.draw(operands(kind.width)), data.draw(operands(kind.width))
    ran = machine(kind)
    for case, result in zip(ran.cases, ran.run(kind, a, b), strict=True):
        assert result == case.expected(a, b), (case.expression, a, b)
