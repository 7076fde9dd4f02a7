"""Parsers: states, transitions, select (spec section 13)."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from v1model.errors import CompileError, UnsupportedError
from v1model.frontend import ast
from v1model.frontend.check import instances, values
from v1model.frontend.check.constants import require_int
from v1model.frontend.check.convert import convert, refuse_cut_key
from v1model.frontend.check.resolve import complete
from v1model.frontend.check.rules import check
from v1model.frontend.check.show import show
from v1model.frontend.check.statements import check_statement
from v1model.frontend.types import (
    BitType,
    BoolType,
    EnumType,
    ErrorType,
    NewType,
    RecordType,
    SetType,
    TupleType,
    Type,
)

if TYPE_CHECKING:
    from v1model.frontend.check.scope import Context

FINAL_STATES = frozenset({"accept", "reject"})


def check_parser(c: Context, node: ast.ParserDeclaration) -> None:
    """Check a parser type, or a parser."""
    with c.inside("parser"):
        c.declare_type_variables(node.type_parameters, node.span)
        values.check_parameters(c, node.parameters)
        values.refuse_block_parameters(node.parameters)
        if node.states is not None:
            _check_body(c, node, node.states)
    values.check_annotations(c, node.annotations)
    c.declare(node)


def _check_body(c: Context, node: ast.ParserDeclaration, states: list[ast.StateDeclaration]) -> None:
    if node.type_parameters:
        raise UnsupportedError(f"parser {node.name!r} has a body and so cannot be generic", node.span)
    values.require_constructor_parameters(node.constructor_parameters, "constructor")
    values.check_parameters(c, node.constructor_parameters)
    names = _state_names(node, states)
    with c.nested(), c.declaring(node.locals):
        for declaration in node.locals:
            with c.diagnostics.recovering(declaration.name):
                _check_local(c, declaration)
        for state in states:
            _check_state(c, state, names)


def _check_local(c: Context, declaration: ast.Declaration) -> None:
    match declaration:
        case ast.VariableDeclaration():
            values.check_variable(c, declaration)
        case ast.ConstantDeclaration():
            values.check_constant_declaration(c, declaration)
        case ast.Instantiation():
            instances.check_instantiation(c, declaration)
        case ast.ValueSetDeclaration():
            _check_value_set(c, declaration)
        case _:
            raise CompileError("a parser cannot declare this", declaration.span)


def _check_value_set(c: Context, node: ast.ValueSetDeclaration) -> None:
    complete(c, node.type_ref)
    node.size = check(c, node.size)
    if require_int(node.size, "the size of a value set") < 1:
        raise CompileError("the size of a value set must be at least 1", node.size.span)
    values.check_annotations(c, node.annotations)
    c.declare(node)


def _state_names(node: ast.ParserDeclaration, states: list[ast.StateDeclaration]) -> set[str]:
    names: set[str] = set(FINAL_STATES)
    for state in states:
        if state.name in FINAL_STATES:
            raise CompileError(f"state {state.name!r} exists by itself", state.span)
        if state.name in names:
            raise CompileError(f"state {state.name!r} is already declared", state.span)
        names.add(state.name)
    if "start" not in names:
        raise CompileError(f"parser {node.name!r} has no state 'start'", node.span)
    return names


def _check_state(c: Context, state: ast.StateDeclaration, names: set[str]) -> None:
    with c.inside("state"):
        for statement in state.statements:
            with c.diagnostics.recovering():
                check_statement(c, statement)
        if state.transition is not None:
            with c.diagnostics.recovering():
                _check_transition(c, state.transition, names)
    values.check_annotations(c, state.annotations)


# --- transitions -------------------------------------------------------------------------


def _check_transition(c: Context, node: ast.Select, names: set[str]) -> None:
    for case in node.cases:
        with c.diagnostics.recovering():
            _check_next_state(case, names)
    node.expressions = [check(c, subject) for subject in node.expressions]
    types = [require_matchable(subject, "select") for subject in node.expressions]
    for case in node.cases:
        with c.diagnostics.recovering():
            if types:
                case.keys = check_keys(c, case.keys, types, case.span)
                for key in case.keys:
                    refuse_cut_key(key)


def _check_next_state(case: ast.SelectCase, names: set[str]) -> None:
    if case.state not in names:
        close = difflib.get_close_matches(case.state, sorted(names), n=1)
        hint = f"did you mean {close[0]!r}?" if close else ""
        raise CompileError(f"state {case.state!r} is not declared", case.span, hint, missing=case.state)


def require_matchable(node: ast.Expression, what: str) -> Type:
    """Return the type of a checked expression; raises CompileError if values can't be matched with it."""
    if node.type is None or not _is_matchable(node.type):
        raise CompileError(f"{what} cannot be used with {show(node.type)}", node.span)
    return node.type


def _is_matchable(found: Type) -> bool:
    if isinstance(found, TupleType):
        return all(_is_matchable(element) for element in found.elements)
    return isinstance(found, BitType | BoolType | EnumType | ErrorType | NewType)


def check_keys(
    c: Context, keys: list[ast.Expression], types: list[Type], span: ast.Span
) -> list[ast.Expression]:
    """Check the keys of a select case or an entry and return them, one for each type.

    A lone `_` stands for all.
    """
    if len(keys) == 1 and len(types) > 1 and isinstance(keys[0], ast.DefaultExpression):
        keys = [ast.DefaultExpression(keys[0].span) for _ in types]
    if len(keys) == 1 and isinstance(keys[0], ast.ListExpression) and not isinstance(types[0], TupleType):
        keys = keys[0].elements
    if len(keys) == 1 and (value_set := _structured_value_set(c, keys[0], types)):
        return [value_set]
    if len(keys) != len(types):
        raise CompileError(f"{len(keys)} keys where {len(types)} are matched", span)
    return [_check_key(c, key, kind) for key, kind in zip(keys, types, strict=True)]


def _structured_value_set(c: Context, key: ast.Expression, types: list[Type]) -> ast.Expression | None:
    """Return a value set of tuples or structs, whose elements are matched with all subjects, or None."""
    symbol = c.scope.lookup(key.name) if isinstance(key, ast.Name) else None
    if not isinstance(symbol, ast.ValueSetDeclaration):
        return None
    match symbol.type_ref.resolved:
        case TupleType(elements):
            fields = list(elements)
        case RecordType(fields=named):
            fields = [kind for _, kind in named]
        case _:
            return None
    if _flat(fields) != _flat(types):
        message = "the elements of this value set do not have the types of what is selected"
        raise CompileError(message, key.span)
    return check(c, key)


def _flat(types: list[Type]) -> list[Type]:
    """Return the types of all single values in the given types."""
    found: list[Type] = []
    for kind in types:
        match kind:
            case TupleType(elements):
                found += _flat(list(elements))
            case RecordType(fields=named):
                found += _flat([field for _, field in named])
            case _:
                found.append(kind)
    return found


def _check_key(c: Context, key: ast.Expression, kind: Type) -> ast.Expression:
    if isinstance(key, ast.DefaultExpression):
        key.type = kind
        return key
    found = check(c, key, kind)
    if isinstance(found.type, SetType):
        if isinstance(found, ast.Binary):
            masked = kind.underlying if isinstance(kind, EnumType) else None
            return convert(found, SetType(masked or kind))
        if found.type.element != kind:
            raise CompileError(f"expected {show(kind)}, found {show(found.type)}", key.span)
        return found
    return convert(found, kind)
