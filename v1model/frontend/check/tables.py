"""Tables of controls (spec section 14)."""

from __future__ import annotations

import dataclasses
import difflib
from typing import TYPE_CHECKING, Any

from v1model.errors import CompileError, UnsupportedError
from v1model.frontend import ast
from v1model.frontend.check import values
from v1model.frontend.check.arguments import Site, bind
from v1model.frontend.check.constants import is_compile_time, require_int
from v1model.frontend.check.convert import convert, refuse_cut, refuse_cut_key
from v1model.frontend.check.parsers import check_keys, require_matchable
from v1model.frontend.check.rules import check, check_constant
from v1model.frontend.check.show import show
from v1model.frontend.check.signatures import Signature
from v1model.frontend.types import (
    BitType,
    BoolType,
    DeclaredType,
    EnumType,
    IntegerType,
    NewType,
    SetType,
    Type,
    VoidType,
)

if TYPE_CHECKING:
    from v1model.frontend.check.scope import Context

# Table properties whose value is an expression.
PROPERTIES = (
    "size",
    "implementation",
    "counters",
    "meters",
    "support_timeout",
    "largest_priority_wins",
    "priority_delta",
)
_LEAST = {"size": 0, "priority_delta": 1}
_BOOLEAN = ("support_timeout", "largest_priority_wins")


def check_table(c: Context, node: ast.TableDeclaration) -> None:
    with c.inside("table"):
        for key in node.keys:
            with c.diagnostics.recovering():
                _check_key_element(c, key)
        references = _check_actions(c, node)
        if isinstance(node.default_action, ast.Call):
            with c.diagnostics.recovering():
                _check_action_call(c, node.default_action, references, node)
        types = [kind for key in node.keys if (kind := key.expression.type) is not None]
        if len(types) == len(node.keys):
            for entry in node.entries:
                with c.diagnostics.recovering():
                    _check_entry(c, node, entry, types, references)
        for table_property in node.properties.values():
            with c.diagnostics.recovering():
                _check_property(c, table_property)
                _check_attached(c, node, table_property)
    values.check_annotations(c, node.annotations)
    c.declare(node)


def _check_key_element(c: Context, key: ast.KeyElement) -> None:
    key.expression = check(c, key.expression)
    require_matchable(key.expression, "a table key")
    if key.match_kind not in c.match_kinds:
        known = ", ".join(c.match_kinds)
        raise CompileError(f"match kind {key.match_kind!r} is not declared", key.span, f"there are {known}")
    values.check_annotations(c, key.annotations)


def _check_property(c: Context, node: ast.TableProperty) -> None:
    _check_name(c, node)
    assert isinstance(node.value, ast.Expression)
    node.value = check_constant(c, node.value, f"table property {node.name!r}")
    if node.name in _LEAST:
        _check_number(node.name, node.value)
    if node.name in _BOOLEAN and not isinstance(node.value.type, BoolType):
        raise CompileError(f"{node.name} must be true or false", node.value.span)


def _check_number(name: str, value: ast.Expression) -> None:
    if not isinstance(value.type, IntegerType | BitType):
        raise CompileError(f"{name} must be a number, not {show(value.type)}", value.span)
    if isinstance(value.constant, int) and value.constant < _LEAST[name]:
        raise CompileError(f"{name} must be at least {_LEAST[name]}", value.span)


def _check_name(c: Context, node: ast.TableProperty) -> None:
    """Refuse an unknown property whose name resembles a known one; warn about any other."""
    if node.name in PROPERTIES:
        return
    if close := difflib.get_close_matches(node.name, PROPERTIES, n=1):
        message = f"table property {node.name!r} is not known"
        raise CompileError(message, node.span, f"did you mean {close[0]!r}?")
    c.diagnostics.warn(
        "ignore-prop", f"table property {node.name!r} is not known: it has no effect", node.span
    )


def _check_attached(c: Context, table: ast.TableDeclaration, node: ast.TableProperty) -> None:
    """Refuse a direct counter or meter in a second table: it has a cell for each entry of one."""
    value = node.value
    if node.name not in ("counters", "meters") or not isinstance(value, ast.Name):
        return
    if value.declaration is None:
        return
    other = c.attached.setdefault(value.declaration, table)
    if other is not table:
        message = f"{value.name!r} belongs to table {other.name!r} already"
        raise CompileError(message, value.span, "a direct counter or meter serves one table")


# --- actions -----------------------------------------------------------------------------

References = dict[str, ast.ActionReference]


def _check_actions(c: Context, node: ast.TableDeclaration) -> References:
    references: References = {}
    for reference in node.actions:
        with c.diagnostics.recovering(reference.name.name):
            if reference.name.name in references:
                raise CompileError(f"action {reference.name.name!r} is listed twice", reference.name.span)
            _check_reference(c, reference)
            references[reference.name.name] = reference
    return references


def _check_reference(c: Context, reference: ast.ActionReference) -> None:
    action = _lookup_action(c, reference.name)
    directed = [parameter for parameter in action.parameters if parameter.direction]
    bound = Signature(action.name, directed, VoidType(), declaration=action)
    reference.arguments = bind(c, bound, Site(reference.span, reference.arguments)).arguments
    for parameter in action.parameters:
        _check_action_data(parameter)
    values.check_annotations(c, reference.annotations)


def _check_action_data(parameter: ast.Parameter) -> None:
    """Refuse a parameter from the control plane that is not one number."""
    found = parameter.type_ref.resolved
    while isinstance(found, NewType):
        found = found.base
    if parameter.direction or isinstance(found, BitType | BoolType | EnumType):
        return
    message = f"parameter {parameter.name!r} of an action in a table cannot be {show(found)}"
    raise UnsupportedError(message, parameter.type_ref.span)


def _lookup_action(c: Context, name: ast.Name) -> ast.ActionDeclaration:
    symbol = c.lookup(name.name, name.span, absolute=name.absolute, kinds=(ast.ActionDeclaration,))
    if not isinstance(symbol, ast.ActionDeclaration):
        raise CompileError(f"{name.name!r} is no action", name.span)
    name.declaration, name.type = symbol, DeclaredType(symbol)
    return symbol


def _check_action_call(
    c: Context, node: ast.Call, references: References, table: ast.TableDeclaration
) -> None:
    """Check a default action or an entry's action.

    Its arguments are those that the control plane would give, after those that `actions` binds, which may be
    repeated.
    """
    assert isinstance(node.callee, ast.Name)
    action = _lookup_action(c, node.callee)
    if (reference := references.get(node.callee.name)) is None:
        hint = f"it has {', '.join(references)}" if references else ""
        message = f"action {action.name!r} is not among the actions of table {table.name!r}"
        raise CompileError(message, node.span, hint, missing=action.name)
    if action is not reference.name.declaration:
        raise CompileError(f"this is another action {action.name!r} than the table has", node.span)
    free = [parameter for parameter in action.parameters if not parameter.direction]
    signature = Signature(action.name, free, VoidType(), declaration=action)
    free_arguments = Site(node.span, _unbound(c, node, action, reference))
    arguments = bind(c, signature, free_arguments).arguments
    for argument in arguments:
        if argument.value is None:
            continue
        if not is_compile_time(argument.value):
            raise CompileError("this must be known at compile time", argument.span)
        refuse_cut(argument.value)
    _check_scope_annotations(node, reference, is_default=node is table.default_action)
    node.arguments = [*reference.arguments, *arguments]
    node.kind, node.declaration, node.type = "action", action, VoidType()


def _check_scope_annotations(node: ast.Call, reference: ast.ActionReference, *, is_default: bool) -> None:
    forbidden = "tableonly" if is_default else "defaultonly"
    if any(annotation.name == forbidden for annotation in reference.annotations):
        where = "the default action" if is_default else "an entry"
        raise CompileError(f"an action that is @{forbidden} cannot be that of {where}", node.span)


def _unbound(
    c: Context, node: ast.Call, action: ast.ActionDeclaration, reference: ast.ActionReference
) -> list[ast.Argument]:
    """Return the arguments without those that only repeat what `actions` binds."""
    bound = {a.parameter.name: a for a in reference.arguments if a.parameter is not None}
    if len(node.arguments) != len(action.parameters) and not any(a.name for a in node.arguments):
        return node.arguments
    free = []
    for argument, parameter in zip(node.arguments, action.parameters, strict=False):
        if (repeated := bound.get(argument.name or parameter.name)) is None:
            free.append(argument)
        elif not _same(c, argument.value, repeated.value):
            raise CompileError("this differs from what the table's actions list binds", argument.span)
    return free


def _same(c: Context, left: ast.Expression | None, right: ast.Expression | None) -> bool:
    """Return whether an argument repeats a checked one."""
    if left is None or right is None:
        return left is right
    return _equal(convert(check(c, left), right.type) if right.type else left, right)


def _equal(left: Any, right: Any) -> bool:
    """Return whether two checked expressions are equal apart from their places."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_equal(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_equal, left, right))
    if not isinstance(left, ast.Node) or isinstance(left, ast.TypeRef | ast.Declaration):
        return bool(left == right) or isinstance(left, ast.TypeRef)
    names = [field.name for field in dataclasses.fields(left) if field.name not in ("span", "base")]
    return type(left) is type(right) and all(
        _equal(getattr(left, name), getattr(right, name)) for name in names
    )


# --- entries -----------------------------------------------------------------------------


def _check_entry(
    c: Context, table: ast.TableDeclaration, entry: ast.Entry, types: list[Type], references: References
) -> None:
    if not types:
        raise CompileError(f"table {table.name!r} has entries but no key", entry.span)
    entry.keys = check_keys(c, entry.keys, types, entry.span)
    for key, element in zip(entry.keys, table.keys, strict=True):
        _check_entry_key(key, element.match_kind)
    if entry.priority is not None:
        entry.priority = check(c, entry.priority)
        if require_int(entry.priority, "a priority") < 0:
            raise CompileError("a priority must not be negative", entry.priority.span)
    _check_action_call(c, entry.action, references, table)
    values.check_annotations(c, entry.annotations)


def _check_entry_key(key: ast.Expression, match_kind: str) -> None:
    is_exact = not isinstance(key, ast.DefaultExpression) and not isinstance(key.type, SetType)
    if match_kind == "exact" and not is_exact:
        raise CompileError("an exact key must be one value", key.span)
    refuse_cut_key(key)
    parts = [key.left, key.right] if isinstance(key, ast.Binary) and isinstance(key.type, SetType) else [key]
    if not all(is_compile_time(part) for part in parts):
        raise CompileError("the keys of an entry must be known at compile time", key.span)
    low, high = parts[0].constant, parts[-1].constant
    if match_kind == "range" and isinstance(low, int) and isinstance(high, int) and low > high:
        raise CompileError(f"the range from {low} to {high} holds nothing", key.span)
