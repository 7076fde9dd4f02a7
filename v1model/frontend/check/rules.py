"""Checking of any expression: the modules for each kind register their rules here.

Expressions contain calls, calls contain types, and the widths of types contain expressions. Through this
module they use one another without importing one another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from v1model.errors import CompileError
from v1model.frontend import ast
from v1model.frontend.check.constants import is_compile_time
from v1model.frontend.check.convert import convert

if TYPE_CHECKING:
    from collections.abc import Callable

    from v1model.frontend.check.scope import Context
    from v1model.frontend.types import Type

_rules: dict[type[ast.Expression], Callable[[Context, Any, Type | None], ast.Expression]] = {}
Rule = TypeVar("Rule", bound="Callable[[Context, Any, Type | None], ast.Expression]")


def checks(node: type[ast.Expression]) -> Callable[[Rule], Rule]:
    """Return a decorator that registers the rule for a kind of expression."""

    def register(rule: Rule) -> Rule:
        _rules[node] = rule
        return rule

    return register


def check(c: Context, node: ast.Expression, hint: Type | None = None) -> ast.Expression:
    """Return `node`, or what replaces it, with its type and value filled in.

    `hint` is the type that the place wants; it only helps to infer type arguments.
    """
    return _rules[type(node)](c, node, hint)


def check_as(c: Context, node: ast.Expression, target: Type) -> ast.Expression:
    """Return `node` checked and converted to `target`."""
    return convert(check(c, node, target), target)


def check_constant(c: Context, node: ast.Expression, what: str) -> ast.Expression:
    """Return `node` checked; raises CompileError if its value is not known at compile time."""
    found = check(c, node)
    if not is_compile_time(found):
        raise CompileError(f"{what} must be known at compile time", node.span)
    return found
