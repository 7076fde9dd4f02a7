"""Constants, variables, parameters and annotations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from v1model.errors import CompileError
from v1model.frontend import ast
from v1model.frontend.check.constants import is_compile_time
from v1model.frontend.check.resolve import complete, refuse_compile_time_parts, runtime
from v1model.frontend.check.rules import check, check_as
from v1model.frontend.check.show import show
from v1model.frontend.types import (
    DeclaredType,
    IntegerType,
    ListType,
    StringType,
    VoidType,
)

if TYPE_CHECKING:
    from v1model.frontend.check.scope import Context


_DIRECTIONLESS_TYPES = (DeclaredType, IntegerType, StringType, VoidType, ListType)


def check_constant_declaration(c: Context, node: ast.ConstantDeclaration) -> None:
    target = complete(c, node.type_ref)
    if isinstance(target, DeclaredType | VoidType):
        raise CompileError(f"a constant cannot be {show(target)}", node.type_ref.span)
    node.value = check_as(c, node.value, target)
    if not is_compile_time(node.value):
        message = f"the value of constant {node.name!r} must be known at compile time"
        raise CompileError(message, node.value.span)
    check_annotations(c, node.annotations)
    c.declare(node)


def check_variable(c: Context, node: ast.VariableDeclaration) -> None:
    target = runtime(c, node.type_ref, f"variable {node.name!r}")
    if node.value is not None:
        with c.diagnostics.recovering():
            node.value = check_as(c, node.value, target)
    check_annotations(c, node.annotations)
    c.declare(node)


def refuse_block_parameters(parameters: list[ast.Parameter]) -> None:
    """Refuse parsers, controls and packages, which only constructors take, as parameters."""
    for parameter in parameters:
        found = parameter.type_ref.resolved
        if isinstance(found, DeclaredType) and not isinstance(found.declaration, ast.ExternDeclaration):
            message = f"parameter {parameter.name!r} cannot be {show(found)}"
            raise CompileError(message, parameter.type_ref.span, "make it a constructor parameter")


def check_parameters(c: Context, parameters: list[ast.Parameter]) -> None:
    """Resolve types and defaults, and declare the names in the present scope."""
    for parameter in parameters:
        _check_parameter(c, parameter)
        c.declare(parameter)


def _check_parameter(c: Context, parameter: ast.Parameter) -> None:
    found = complete(c, parameter.type_ref)
    if parameter.direction and isinstance(found, _DIRECTIONLESS_TYPES):
        raise CompileError(
            f"parameter {parameter.name!r} of {show(found)} cannot be {parameter.direction}",
            parameter.type_ref.span,
            "leave the direction out",
        )
    if found == VoidType():
        raise CompileError(f"parameter {parameter.name!r} cannot be void", parameter.type_ref.span)
    if parameter.direction:
        refuse_compile_time_parts(c, found, parameter.type_ref, f"parameter {parameter.name!r}")
    if parameter.default is not None:
        if parameter.direction in ("out", "inout"):
            raise CompileError(f"an {parameter.direction} parameter cannot have a default", parameter.span)
        parameter.default = check_as(c, parameter.default, found)
        if not is_compile_time(parameter.default):
            raise CompileError("a default must be known at compile time", parameter.default.span)
    check_annotations(c, parameter.annotations)


def require_constructor_parameters(parameters: list[ast.Parameter], what: str) -> None:
    """Refuse parameters with directions."""
    for parameter in parameters:
        if parameter.direction:
            raise CompileError(f"{what} parameter {parameter.name!r} cannot have a direction", parameter.span)


def check_annotations(c: Context, annotations: list[ast.Annotation]) -> None:
    """Fill in the values of annotations' expressions that can be checked.

    The content of an unstructured annotation need not be P4, so what cannot be checked stays as it is.
    """
    for annotation in annotations:
        annotation.expressions = [_check_quietly(c, value) for value in annotation.expressions]
        annotation.pairs = {key: _check_quietly(c, value) for key, value in annotation.pairs.items()}


def _check_quietly(c: Context, node: ast.Expression) -> ast.Expression:
    try:
        return check(c, node)
    except CompileError:
        return node
