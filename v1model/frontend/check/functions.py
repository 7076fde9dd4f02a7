"""Functions, actions, extern objects, and the methods that an instance implements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from v1model.errors import CompileError
from v1model.frontend import ast
from v1model.frontend.check import values
from v1model.frontend.check.resolve import complete
from v1model.frontend.check.scope import check_overload
from v1model.frontend.check.show import show
from v1model.frontend.check.statements import always_returns, check_block
from v1model.frontend.types import DeclaredType, IntegerType, VoidType

if TYPE_CHECKING:
    from v1model.frontend.check.scope import Context


def check_function(c: Context, node: ast.FunctionDeclaration) -> None:
    """Check a function with a body, or an extern function.

    It is declared after its body, so it cannot call itself.
    """
    _check_prototype(c, node)
    values.check_annotations(c, node.annotations)
    c.declare(node)


def _check_prototype(c: Context, node: ast.FunctionDeclaration) -> None:
    with c.inside("function"):
        c.declare_type_variables(node.type_parameters, node.span)
        result = complete(c, node.return_type) if node.return_type else VoidType()
        if node.return_type and isinstance(result, IntegerType):
            raise CompileError("a function cannot return int", node.return_type.span, "as in bit<32>")
        values.check_parameters(c, node.parameters)
        if node.body is not None:
            c.return_type = result
            before = len(c.diagnostics.errors)
            check_block(c, node.body)
            is_whole = len(c.diagnostics.errors) == before
            if is_whole and result != VoidType() and not always_returns(node.body):
                raise CompileError(f"function {node.name!r} can end without a 'return'", node.span)


def check_action(c: Context, node: ast.ActionDeclaration) -> None:
    with c.inside("action"):
        _check_action_parameters(node)
        values.check_parameters(c, node.parameters)
        for parameter in node.parameters:
            if isinstance(parameter.type_ref.resolved, DeclaredType | IntegerType):
                shown = show(parameter.type_ref.resolved)
                message = f"parameter {parameter.name!r} of an action cannot be {shown}"
                raise CompileError(message, parameter.type_ref.span)
        check_block(c, node.body)
    values.check_annotations(c, node.annotations)
    c.declare(node)


def _check_action_parameters(node: ast.ActionDeclaration) -> None:
    """Require that parameters without direction, which the control plane fills, come last."""
    without = False
    for parameter in node.parameters:
        if parameter.direction and without:
            raise CompileError(
                f"parameter {parameter.name!r} has a direction but stands behind one without",
                parameter.span,
                "parameters without direction come last",
            )
        without = without or not parameter.direction


def check_extern(c: Context, node: ast.ExternDeclaration) -> None:
    """Check an extern object, whose name is known in its own methods."""
    c.declare(node)
    with c.nested():
        c.declare_type_variables(node.type_parameters, node.span)
        known: dict[str, list[ast.FunctionDeclaration]] = {}
        for method in node.methods:
            check_overload(known.setdefault(method.name, []), method)
            known[method.name].append(method)
            if method.name == node.name and method.return_type is not None:
                raise CompileError(f"constructor {node.name!r} cannot have a return type", method.span)
            if method.return_type is None:
                values.require_constructor_parameters(method.parameters, "constructor")
            _check_prototype(c, method)
            values.check_annotations(c, method.annotations)
    values.check_annotations(c, node.annotations)
