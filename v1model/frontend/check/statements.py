"""Statements (spec section 12) and blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from v1model.errors import CompileError
from v1model.frontend import ast
from v1model.frontend.check import values
from v1model.frontend.check.convert import convert, refuse_cut_key
from v1model.frontend.check.lvalues import require_lvalue
from v1model.frontend.check.members import is_action_run
from v1model.frontend.check.operators import SHIFTS, check_binary
from v1model.frontend.check.resolve import runtime
from v1model.frontend.check.rules import check, check_as
from v1model.frontend.check.show import show
from v1model.frontend.types import (
    BitType,
    BoolType,
    EnumType,
    ErrorType,
    IntegerType,
    ListType,
    NewType,
    SetType,
    StackType,
    TupleType,
    Type,
    VoidType,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from v1model.frontend.check.scope import Context


def check_statement(c: Context, node: ast.Statement) -> None:
    _RULES[type(node)](c, node)


def check_block(c: Context, node: ast.Block) -> None:
    with c.nested():
        _check_each(c, node.statements)


def _check_each(c: Context, statements: Sequence[ast.Statement]) -> None:
    """Check statements in order; an error in one does not end the check."""
    for statement in statements:
        with c.diagnostics.recovering(_declared(statement)):
            check_statement(c, statement)


def _declared(statement: ast.Statement) -> str:
    """Return the name that a statement declares, or ""."""
    return statement.declaration.name if isinstance(statement, ast.DeclarationStatement) else ""


def always_returns(node: ast.Statement) -> bool:
    """Return whether every path through the statement ends in `return` or `exit`."""
    match node:
        case ast.Return() | ast.Exit():
            return True
        case ast.Block():
            return any(always_returns(statement) for statement in node.statements)
        case ast.If():
            return node.otherwise is not None and always_returns(node.then) and always_returns(node.otherwise)
        case ast.Switch():
            labels = [label for case in node.cases for label in case.labels]
            has_default = any(isinstance(label, ast.DefaultExpression) for label in labels)
            bodies = [case.body for case in node.cases if case.body is not None]
            return has_default and all(always_returns(body) for body in bodies)
    return False


# --- assignments and calls ---------------------------------------------------------------


def _assignment(c: Context, node: ast.Assignment) -> None:
    node.target = check(c, node.target)
    require_lvalue(c, node.target, "the left side")
    target = node.target.type
    assert target is not None
    if not node.operator:
        node.value = check_as(c, node.value, target)
        return
    value = check(c, node.value)
    operation = ast.Binary(node.span, node.operator, node.target, value)
    check_binary(operation)
    if operation.type != target:
        raise CompileError(f"'{node.operator}=' cannot be used with {show(target)}", node.span)
    node.value = operation.right if node.operator in SHIFTS else convert(operation.right, target)


def _call_statement(c: Context, node: ast.CallStatement) -> None:
    found = check(c, node.call)
    if not isinstance(found, ast.Call) or found.kind == "constructor":
        raise CompileError("a constructor call is no statement", node.span)
    node.call = found


# --- declarations ------------------------------------------------------------------------


def _declaration_statement(c: Context, node: ast.DeclarationStatement) -> None:
    match node.declaration:
        case ast.VariableDeclaration() as variable:
            values.check_variable(c, variable)
        case ast.ConstantDeclaration() as constant:
            values.check_constant_declaration(c, constant)
        case other:
            hint = "declare it before the apply block or before the states"
            raise CompileError("an instance cannot be declared among statements", other.span, hint)


# --- branches ----------------------------------------------------------------------------


def _if(c: Context, node: ast.If) -> None:
    with c.diagnostics.recovering():
        node.condition = check_as(c, node.condition, BoolType())
    for branch in (node.then, node.otherwise):
        if branch is not None:
            with c.nested(), c.diagnostics.recovering():
                check_statement(c, branch)


def _switch(c: Context, node: ast.Switch) -> None:
    if c.place == "state":
        raise CompileError("'switch' cannot be used in a parser", node.span, "use select")
    c.switch_subject = node.subject
    node.subject = check(c, node.subject)
    node.on_action = is_action_run(node.subject)
    subject = node.subject.type
    if not isinstance(subject, BitType | EnumType | ErrorType | NewType):
        is_applied = isinstance(node.subject, ast.Call) and node.subject.kind == "apply"
        hint = "write .action_run behind apply()" if is_applied else ""
        raise CompileError(f"'switch' cannot be used with {show(subject)}", node.subject.span, hint)
    seen: dict[object, ast.Expression] = {}
    for position, case in enumerate(node.cases):
        with c.diagnostics.recovering():
            case.labels = [_switch_label(c, node, subject, label) for label in case.labels]
            for label in case.labels:
                _check_label(label, seen, is_last=position == len(node.cases) - 1)
        if case.body is not None:
            check_block(c, case.body)


def _switch_label(c: Context, node: ast.Switch, subject: Type, label: ast.Expression) -> ast.Expression:
    if isinstance(label, ast.DefaultExpression):
        label.type = subject
        return label
    if node.on_action:
        return _action_label(c, node, subject, label)
    found = check_as(c, label, subject)
    if found.constant is None:
        raise CompileError("the label of a case must be known at compile time", label.span)
    refuse_cut_key(found)
    return found


def _action_label(c: Context, node: ast.Switch, subject: Type, label: ast.Expression) -> ast.Expression:
    assert isinstance(subject, EnumType)
    if not isinstance(label, ast.Name):
        raise CompileError("expected the name of an action", label.span)
    members = dict(subject.members)
    if label.name not in members:
        hint = f"its actions are {', '.join(members)}" if members else ""
        raise CompileError(f"{label.name!r} is no action of the table", label.span, hint)
    symbol = c.lookup(label.name, label.span, absolute=label.absolute)
    label.declaration = symbol if isinstance(symbol, ast.ActionDeclaration) else None
    label.type, label.constant = subject, members[label.name]
    return label


def _check_label(label: ast.Expression, seen: dict[object, ast.Expression], *, is_last: bool) -> None:
    if isinstance(label, ast.DefaultExpression):
        if not is_last:
            raise CompileError("'default' must be the last case", label.span)
    elif label.constant in seen:
        hint = f"see line {seen[label.constant].span.line}"
        raise CompileError("this case is already there", label.span, hint)
    else:
        seen[label.constant] = label


# --- loops -------------------------------------------------------------------------------


def _for(c: Context, node: ast.For) -> None:
    with c.nested():
        _check_each(c, node.initial)
        with c.diagnostics.recovering():
            node.condition = check_as(c, node.condition, BoolType())
        _check_each(c, node.update)
        _loop_body(c, node.body)


def _for_in(c: Context, node: ast.ForIn) -> None:
    variable = runtime(c, node.variable.type_ref, "a loop variable")
    with c.diagnostics.recovering():
        _check_collection(c, node, variable)
    with c.nested():
        c.declare(node.variable)
        _loop_body(c, node.body)


def _check_collection(c: Context, node: ast.ForIn, variable: Type) -> None:
    """Check that a loop's variable can hold the values of the collection."""
    node.collection = check(c, node.collection)
    match node.collection.type:
        case SetType():
            node.collection = convert(node.collection, SetType(variable))
        case TupleType(elements):
            node.collection = convert(node.collection, TupleType((variable,) * len(elements)))
        case StackType(element) | ListType(element) if element == variable:
            pass
        case ListType(IntegerType()) if isinstance(variable, BitType):
            pass  # each element becomes as wide as the variable
        case found:
            raise CompileError(f"cannot loop over {show(found)} with {show(variable)}", node.collection.span)


def _loop_body(c: Context, body: ast.Statement) -> None:
    c.loop_depth += 1
    with c.nested(), c.diagnostics.recovering():
        check_statement(c, body)
    c.loop_depth -= 1


def _break_or_continue(c: Context, node: ast.Break | ast.Continue) -> None:
    if not c.loop_depth:
        word = "break" if isinstance(node, ast.Break) else "continue"
        raise CompileError(f"{word!r} is only possible in a loop", node.span)


# --- leaving -----------------------------------------------------------------------------


def _return(c: Context, node: ast.Return) -> None:
    if c.place in ("state", "parser"):
        raise CompileError("'return' cannot be used in a parser", node.span)
    expected = c.return_type or VoidType()
    if node.value is None:
        if expected != VoidType():
            raise CompileError(f"'return' needs a value of {show(expected)}", node.span)
        return
    if expected == VoidType():
        raise CompileError("'return' has a value where none is expected", node.value.span)
    node.value = check_as(c, node.value, expected)


def _exit(c: Context, node: ast.Exit) -> None:
    if c.place in ("state", "function"):
        where = "a parser" if c.place == "state" else "a function"
        raise CompileError(f"'exit' cannot be used in {where}", node.span)


def _empty(c: Context, node: ast.Empty) -> None:
    pass


_RULES: dict[type[ast.Statement], Callable[[Context, Any], None]] = {
    ast.Block: check_block,
    ast.Assignment: _assignment,
    ast.CallStatement: _call_statement,
    ast.DeclarationStatement: _declaration_statement,
    ast.If: _if,
    ast.Switch: _switch,
    ast.For: _for,
    ast.ForIn: _for_in,
    ast.Return: _return,
    ast.Exit: _exit,
    ast.Break: _break_or_continue,
    ast.Continue: _break_or_continue,
    ast.Empty: _empty,
}
