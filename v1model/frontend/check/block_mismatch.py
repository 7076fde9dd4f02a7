"""Errors that say why a parser or control does not fit a package: which parameter differs, and how."""

from __future__ import annotations

from v1model.errors import CompileError
from v1model.frontend import ast
from v1model.frontend.check.show import show
from v1model.frontend.check.substitute import Bindings, substitute, unify
from v1model.frontend.types import DeclaredType, Type

Block = ast.ParserDeclaration | ast.ControlDeclaration


def block_mismatch(wanted: Type | None, given: Type | None, span: ast.Span) -> CompileError | None:
    """Return the error for a parser or control `given` where `wanted` is expected; None for other types."""
    if not (isinstance(wanted, DeclaredType) and isinstance(given, DeclaredType)):
        return None
    if not (isinstance(wanted.declaration, Block) and isinstance(given.declaration, Block)):
        return None
    bindings: Bindings = dict(zip(wanted.declaration.type_parameters, wanted.arguments, strict=False))
    expected = [_Parameter(parameter, bindings) for parameter in wanted.declaration.parameters]
    name, shown = wanted.declaration.name, show(DeclaredType(given.declaration))
    declared = f"{given.declaration.span.file}:{given.declaration.span.line}"
    hint = f"{name} is {_kind(wanted.declaration)} {name}({', '.join(map(str, expected))}); see {declared}"
    if type(wanted.declaration) is not type(given.declaration):
        return CompileError(f"expected a {_kind(wanted.declaration)} {name}, found {shown}", span, hint)
    parameters = given.declaration.parameters
    if len(parameters) != len(expected):
        message = f"{shown} has {len(parameters)} parameters, {name} has {len(expected)}"
        return CompileError(message, span, hint)
    for parameter, other in zip(map(_Parameter, parameters), expected, strict=True):
        if not parameter.fits(other):
            message = f"parameter {parameter.name!r} of {shown} is '{parameter}', {name} has '{other}' there"
            return CompileError(message, span, hint)
    return None


def _kind(declaration: Block) -> str:
    return "parser" if isinstance(declaration, ast.ParserDeclaration) else "control"


class _Parameter:
    """Parameter whose type variables are replaced."""

    def __init__(self, parameter: ast.Parameter, bindings: Bindings | None = None) -> None:
        self.name, self.direction = parameter.name, parameter.direction
        self.type = (
            substitute(parameter.type_ref.resolved, bindings or {}) if parameter.type_ref.resolved else None
        )

    def __str__(self) -> str:
        shown = show(self.type).removeprefix("struct ")
        return f"{self.direction} {shown} {self.name}".lstrip()

    def fits(self, other: _Parameter) -> bool:
        if self.type is None or other.type is None:
            return False
        return self.direction == other.direction and unify(other.type, self.type, {})
