"""Names after a dot that are no methods (calls.py has those)."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from v1model.errors import CompileError
from v1model.frontend import ast
from v1model.frontend.check import resolve
from v1model.frontend.check.rules import check
from v1model.frontend.check.show import show
from v1model.frontend.types import (
    BitType,
    EnumType,
    ErrorType,
    RecordType,
    StackType,
    Type,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from v1model.frontend.check.scope import Context

PARSER_PLACES = frozenset({"parser", "state"})


def check_member(c: Context, node: ast.Member) -> ast.Expression:
    """Check a field, a member of an enum or of error, or a property of a stack; return it with its type."""
    if isinstance(node.base, ast.TypeName):
        return _member_of_type(c, node, node.base)
    node.base = check(c, node.base)
    match node.base.type:
        case RecordType():
            if is_action_run(node) and node is not c.switch_subject:
                raise CompileError("'action_run' can only be the subject of a switch statement", node.span)
            _field(node, node.base.type)
        case StackType():
            _stack_property(c, node, node.base.type)
        case _:
            raise no_member(node, [])
    return node


def is_action_run(node: ast.Expression) -> bool:
    """Return whether the checked expression is `table.apply().action_run`."""
    return (
        isinstance(node, ast.Member)
        and node.member == "action_run"
        and isinstance(node.base, ast.Call)
        and node.base.kind == "apply"
    )


def no_member(node: ast.Member, names: Iterable[str]) -> CompileError:
    """Return the error for a member that the base does not have."""
    close = difflib.get_close_matches(node.member, list(names), n=1)
    hint = f"did you mean {close[0]!r}?" if close else ""
    if (
        node.member in ("hit", "miss", "action_run")
        and isinstance(node.base, ast.Call)
        and node.base.kind == "apply"
    ):
        hint = f"it is a field: write .{node.member} without parentheses"
    message = f"{show(node.base.type)} has no member {node.member!r}"
    return CompileError(message, node.span, hint, missing=node.member)


def _member_of_type(c: Context, node: ast.Member, base: ast.TypeName) -> ast.Expression:
    found = base.type = resolve.resolve(c, base.ref)
    match found:
        case EnumType(members=members):
            values = dict(members)
            if node.member not in values:
                raise no_member(node, values)
            node.type, node.constant = found, values[node.member]
        case ErrorType():
            if node.member not in c.errors:
                close = difflib.get_close_matches(node.member, c.errors, n=1)
                hint = f"did you mean error.{close[0]}?" if close else ""
                message = f"error {node.member!r} is not declared"
                raise CompileError(message, node.span, hint, missing=node.member)
            node.type, node.constant = found, c.errors[node.member]
        case _:
            raise no_member(node, [])
    return node


def _field(node: ast.Member, record: RecordType) -> None:
    for position, (name, kind) in enumerate(record.fields):
        if name == node.member:
            node.type = kind
            if isinstance(node.base.constant, tuple):
                node.constant = node.base.constant[position]
            return
    if record.kind != "struct" and node.member in ("isValid", "setValid", "setInvalid"):
        raise CompileError(f"{node.member!r} is a method: call it as {node.member}()", node.span)
    raise no_member(node, [name for name, _ in record.fields])


def _stack_property(c: Context, node: ast.Member, stack: StackType) -> None:
    properties: dict[str, Type] = {
        "next": stack.element,
        "last": stack.element,
        "lastIndex": BitType(32),
        "size": BitType(32),
    }
    if node.member not in properties:
        raise no_member(node, properties)
    if node.member != "size" and c.place not in PARSER_PLACES:
        raise CompileError(f"{node.member!r} of a header stack exists only in a parser", node.span)
    node.type = properties[node.member]
    if node.member == "size":
        node.constant = stack.size
