"""Expressions inside types: the width of a type is an expression, and an expression may contain a type.

`expressions.py` registers its rules here, so that `types.py` need not import what imports it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from v1model.frontend import ast
    from v1model.frontend.parser.cursor import Cursor

    Rule = Callable[[Cursor], ast.Expression]

_rules: dict[str, Rule] = {}


def parses(rule: Rule) -> Rule:
    """Register a rule by its name."""
    _rules[rule.__name__] = rule
    return rule


def size(p: Cursor) -> ast.Expression:
    """Parse an expression between `[` and `]`."""
    return _rules["expression"](p)


def width(p: Cursor) -> ast.Expression:
    """Parse an expression between `<` and `>`, where operators that begin with `>` need parentheses."""
    return _rules["width_expression"](p)
