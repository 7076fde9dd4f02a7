"""Random P4 expressions, and what each of them means (see programs.py)."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

FIELDS = {"hdr.h.op": 8, "hdr.h.a": 32, "hdr.h.b": 32, "hdr.h.r": 64}
"""Of the harness's header."""
WIDTHS = (1, 3, 7, 8, 9, 16, 31, 32, 33, 48, 64, 65, 100, 128, 129, 200)

State = dict[str, int]


@dataclass(frozen=True, slots=True)
class Expression:
    text: str
    width: int
    value: Callable[[State], int]


def mask(width: int) -> int:
    return (1 << width) - 1


def signed(value: int, width: int) -> int:
    return value - (1 << width) if value >> (width - 1) & 1 else value


class Expressions:
    """Makes expressions over the names that are in scope."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._names = dict(FIELDS)

    def _expression(self, width: int, depth: int) -> Expression:
        if depth == 0 or self._rng.random() < 0.2:
            return self._rng.choice((self._constant, self._variable))(width)
        kinds: list[Callable[[int, int], Expression]]
        kinds = [self._binary, self._unary, self._shift, self._cast, self._ternary, self._variable]
        if width > 1:
            kinds += [self._concatenation, self._saturating]
        return self._rng.choice(kinds)(width, depth - 1)

    def _constant(self, width: int, _: int = 0) -> Expression:
        value = self._rng.choice((0, 1, mask(width), self._rng.getrandbits(width), 1 << (width - 1)))
        return Expression(f"{width}w{value}", width, lambda _: value)

    def _variable(self, width: int, _: int = 0) -> Expression:
        """A variable, cut to the width or made wider."""
        name = self._rng.choice(list(self._names))
        own = self._names[name]
        if own == width:
            return Expression(name, width, lambda state: state[name])
        if own > width:
            low = self._rng.randrange(own - width + 1)
            return Expression(
                f"{name}[{low + width - 1}:{low}]", width, lambda state: state[name] >> low & mask(width)
            )
        return Expression(f"(bit<{width}>) {name}", width, lambda state: state[name])

    def _binary(self, width: int, depth: int) -> Expression:
        left, right = self._expression(width, depth), self._expression(width, depth)
        operators: dict[str, Callable[[int, int], int]] = {
            "+": lambda a, b: a + b,
            "-": lambda a, b: a - b,
            "*": lambda a, b: a * b,
            "&": lambda a, b: a & b,
            "|": lambda a, b: a | b,
            "^": lambda a, b: a ^ b,
        }
        operator = self._rng.choice(list(operators))
        function = operators[operator]
        return Expression(
            f"({left.text} {operator} {right.text})",
            width,
            lambda state: function(left.value(state), right.value(state)) & mask(width),
        )

    def _saturating(self, width: int, depth: int) -> Expression:
        left, right = self._expression(width, depth), self._expression(width, depth)
        if self._rng.random() < 0.5:
            return Expression(
                f"({left.text} |+| {right.text})",
                width,
                lambda state: min(left.value(state) + right.value(state), mask(width)),
            )
        return Expression(
            f"({left.text} |-| {right.text})",
            width,
            lambda state: max(left.value(state) - right.value(state), 0),
        )

    def _unary(self, width: int, depth: int) -> Expression:
        operand = self._expression(width, depth)
        if self._rng.random() < 0.5:
            return Expression(f"(~{operand.text})", width, lambda state: ~operand.value(state) & mask(width))
        return Expression(f"(-{operand.text})", width, lambda state: -operand.value(state) & mask(width))

    def _shift(self, width: int, depth: int) -> Expression:
        operand, amount = self._expression(width, depth), self._expression(8, 0)
        kind = self._rng.choice(("<<", ">>", "signed"))
        if kind == "<<":
            return Expression(
                f"({operand.text} << {amount.text})",
                width,
                lambda state: operand.value(state) << amount.value(state) & mask(width),
            )
        if kind == ">>":
            return Expression(
                f"({operand.text} >> {amount.text})",
                width,
                lambda state: operand.value(state) >> amount.value(state),
            )
        return Expression(
            f"(bit<{width}>) (((int<{width}>) {operand.text}) >> {amount.text})",
            width,
            lambda state: signed(operand.value(state), width) >> amount.value(state) & mask(width),
        )

    def _cast(self, width: int, depth: int) -> Expression:
        """Over another width: cut, or made wider with zeros or the sign."""
        inner = self._expression(self._rng.choice(WIDTHS), depth)
        if inner.width < width and self._rng.random() < 0.5:
            return Expression(
                f"(bit<{width}>) (int<{width}>) (int<{inner.width}>) {inner.text}",
                width,
                lambda state: signed(inner.value(state), inner.width) & mask(width),
            )
        return Expression(
            f"((bit<{width}>) {inner.text})", width, lambda state: inner.value(state) & mask(width)
        )

    def _concatenation(self, width: int, depth: int) -> Expression:
        split = self._rng.randrange(1, width)
        high, low = self._expression(width - split, depth), self._expression(split, depth)
        return Expression(
            f"({high.text} ++ {low.text})",
            width,
            lambda state: high.value(state) << split | low.value(state),
        )

    def _ternary(self, width: int, depth: int) -> Expression:
        condition = self._condition(depth)
        then, otherwise = self._expression(width, depth), self._expression(width, depth)
        return Expression(
            f"({condition.text} ? {then.text} : {otherwise.text})",
            width,
            lambda state: then.value(state) if condition.value(state) else otherwise.value(state),
        )

    def _condition(self, depth: int) -> Expression:
        width = self._rng.choice(WIDTHS)
        left, right = self._expression(width, depth), self._expression(width, depth)
        operators: dict[str, Callable[[int, int], int]] = {
            "==": lambda a, b: a == b,
            "!=": lambda a, b: a != b,
            "<": lambda a, b: a < b,
            "<=": lambda a, b: a <= b,
            ">": lambda a, b: a > b,
            ">=": lambda a, b: a >= b,
        }
        operator = self._rng.choice(list(operators))
        function = operators[operator]
        if self._rng.random() < 0.3:
            return Expression(
                f"((int<{width}>) {left.text} {operator} (int<{width}>) {right.text})",
                1,
                lambda state: function(signed(left.value(state), width), signed(right.value(state), width)),
            )
        return Expression(
            f"({left.text} {operator} {right.text})",
            1,
            lambda state: function(left.value(state), right.value(state)),
        )
