"""Instances, and the methods that their initialisers implement."""

from __future__ import annotations

from typing import TYPE_CHECKING

from v1model.errors import CompileError
from v1model.frontend import ast
from v1model.frontend.check import calls
from v1model.frontend.check.functions import check_function
from v1model.frontend.check.show import show
from v1model.frontend.check.substitute import Bindings, substitute
from v1model.frontend.check.values import check_annotations
from v1model.frontend.types import DeclaredType, Type, VoidType

if TYPE_CHECKING:
    from v1model.frontend.check.scope import Context


def check_instantiation(c: Context, node: ast.Instantiation) -> None:
    """Check an instance, and the methods that its initialiser implements."""
    node.arguments, found = calls.construct(c, node.type_ref, node, node.arguments)
    if c.place == "program" and isinstance(found.declaration, ast.ParserDeclaration | ast.ControlDeclaration):
        hint = "instantiate it in a control or parser, or as an argument of the package"
        raise CompileError(f"{show(found)} cannot be instantiated here", node.span, hint)
    if (
        c.place == "program"
        and node.name == "main"
        and not isinstance(found.declaration, ast.PackageDeclaration)
    ):
        raise CompileError(f"'main' must be a package, not {show(found)}", node.span)
    _check_object_members(c, node, found)
    check_annotations(c, node.annotations)
    c.declare(node)


# --- abstract methods --------------------------------------------------------------------


def _check_object_members(c: Context, node: ast.Instantiation, found: DeclaredType) -> None:
    """Check that an instance's initialiser implements exactly the abstract methods of its extern."""
    extern = found.declaration
    methods = extern.methods if isinstance(extern, ast.ExternDeclaration) else []
    abstract = {method.name: method for method in methods if method.is_abstract}
    type_parameters = extern.type_parameters if isinstance(extern, ast.ExternDeclaration) else []
    bindings = dict(zip(type_parameters, found.arguments, strict=False))
    before, c.this = c.this, found
    with c.nested():
        for member in node.members:
            if isinstance(member, ast.Instantiation):
                check_instantiation(c, member)
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
    """Return the types of the result and of the parameters, with their directions."""
    result = function.return_type.resolved if function.return_type else None
    shape = [("", substitute(result or VoidType(), bindings))]
    for parameter in function.parameters:
        kind = parameter.type_ref.resolved or VoidType()
        shape.append((parameter.direction, substitute(kind, bindings)))
    return shape
