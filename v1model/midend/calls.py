"""Calls: functions, actions and sub-controls are inlined, others are lowered by their own modules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from v1model import ir
from v1model.errors import UnsupportedError
from v1model.frontend import ast
from v1model.frontend import types as t
from v1model.midend import builtins, externs
from v1model.midend.frame import lowers
from v1model.midend.inline import bind_arguments, inline_body
from v1model.midend.instances import applied_instance
from v1model.midend.scope import ActionClosure, ControlInstance, Scope, TableInstance
from v1model.midend.tables import apply_table
from v1model.midend.values import VOID

if TYPE_CHECKING:
    from v1model.midend.frame import Frame


@lowers(ast.Call)
def _call(frame: Frame, node: ast.Call) -> ir.Expr:
    match node.kind:
        case "builtin":
            return builtins.call(frame, node)
        case "function":
            return _function(frame, node)
        case "extern_method":
            return externs.method(frame, node)
        case "extern_function":
            return externs.function(frame, node)
        case "action":
            _action(frame, node)
        case "apply":
            _apply(frame, node)
        case _:
            raise UnsupportedError("a constructor call in this place", node.span)
    return VOID


def _function(frame: Frame, node: ast.Call) -> ir.Expr:
    declaration = node.declaration
    assert isinstance(declaration, ast.FunctionDeclaration), node
    assert declaration.body is not None
    assert declaration.return_type is not None
    types = [frame.scope.closed(inferred) for inferred in node.inferred]
    scope = Scope(frame.unit.globals, dict(zip(declaration.type_parameters, types, strict=False)))
    inner = frame.inner(scope, node)
    bind_arguments(frame, inner, declaration.parameters, node.arguments, alias=True, constants=True)
    if not isinstance(declaration.return_type.resolved, t.VoidType | t.StringType):
        inner.result = frame.builder.temporary(inner.shape_of(declaration.return_type), declaration.name)
    inline_body(inner, declaration.body, declaration.name)
    return inner.result or inner.string or VOID


def _action(frame: Frame, node: ast.Call) -> None:
    assert isinstance(node.declaration, ast.ActionDeclaration), node
    closure = frame.find(node.declaration)
    assert isinstance(closure, ActionClosure)
    if frame.scope.path:
        frame.unit.called_actions[closure] = None
    inner = frame.inner(Scope(closure.scope), node)
    bind_arguments(frame, inner, node.declaration.parameters, node.arguments, alias=False, constants=True)
    inline_body(inner, node.declaration.body, node.declaration.name)


def _apply(frame: Frame, node: ast.Call) -> None:
    instance = applied_instance(frame, node)
    if isinstance(instance, TableInstance):
        apply_table(frame, instance)
    elif isinstance(instance, ControlInstance):
        inner = frame.inner(instance.scope, node)
        once = instance.applications == 1
        parameters = instance.declaration.parameters
        bind_arguments(frame, inner, parameters, node.arguments, alias=once, constants=once)
        inline_control(inner, instance)
    else:
        raise UnsupportedError(
            "a parser applied anywhere but in a parser's state, outside of `if`", node.span
        )


def inline_control(frame: Frame, instance: ControlInstance) -> None:
    """Inline the body of a control whose parameters are bound."""
    for local in instance.declaration.locals:
        if isinstance(local, ast.VariableDeclaration):
            frame.statement(ast.DeclarationStatement(local.span, local))
    assert instance.declaration.body is not None
    inline_body(frame, instance.declaration.body, instance.declaration.name)
