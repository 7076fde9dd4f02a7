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
from v1model.frontend.check.substitute import Bindings, substitute
from v1model.frontend.types import DeclaredType, IntegerType, Type, VoidType

if TYPE_CHECKING:
    from v1model.frontend.check.scope import Context


def check_function(c: Context, node: ast.FunctionDeclaration) -> None:
    """A function with a body, or an extern function; declared behind its body, so it cannot recur."""
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
            check_block(c, node.body)
            if result != VoidType() and not always_returns(node.body):
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
    """The control plane fills the parameters without direction, which stand last."""
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
    """An extern object: its name is known in its own methods."""
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


# --- abstract methods --------------------------------------------------------------------


def check_object_members(c: Context, node: ast.Instantiation, found: DeclaredType) -> None:
    """What the initialiser of an instance implements: exactly the abstract methods of its extern."""
    extern = found.declaration
    methods = extern.methods if isinstance(extern, ast.ExternDeclaration) else []
    abstract = {method.name: method for method in methods if method.is_abstract}
    type_parameters = extern.type_parameters if isinstance(extern, ast.ExternDeclaration) else []
    bindings = dict(zip(type_parameters, found.arguments, strict=False))
    before, c.this = c.this, found
    with c.nested():
        for member in node.members:
            if isinstance(member, ast.Instantiation):
                values.check_instantiation(c, member)
            elif isinstance(member, ast.FunctionDeclaration):
                _check_implementation(c, member, abstract, bindings)
    c.this = before
    implemented = {member.name for member in node.members}
    for name in abstract:
        if name not in implemented:
            raise CompileError(f"{node.name!r} does not implement abstract method {name!r}", node.span)


def _check_implementation(
    c: Context,
    member: ast.FunctionDeclaration,
    abstract: dict[str, ast.FunctionDeclaration],
    bindings: Bindings,
) -> None:
    if (declared := abstract.get(member.name)) is None:
        raise CompileError(f"{member.name!r} is no abstract method", member.span)
    check_function(c, member)
    wanted, given = _shape(declared, bindings), _shape(member, {})
    if wanted != given:
        raise CompileError(
            f"{member.name!r} differs from the abstract method at line {declared.span.line}",
            member.span,
            f"it must return {show(wanted[0][1])} and take {len(wanted) - 1} parameters of the same types",
        )


def _shape(function: ast.FunctionDeclaration, bindings: Bindings) -> list[tuple[str, Type]]:
    """The types of the result and of the parameters, with their directions."""
    result = function.return_type.resolved if function.return_type else None
    shape = [("", substitute(result or VoidType(), bindings))]
    for parameter in function.parameters:
        kind = parameter.type_ref.resolved or VoidType()
        shape.append((parameter.direction, substitute(kind, bindings)))
    return shape
