"""Signatures of functions, methods, constructors and apply: parameters and result."""

from __future__ import annotations

from dataclasses import dataclass, field

from v1model.errors import CompileError
from v1model.frontend import ast
from v1model.frontend.check.substitute import Bindings
from v1model.frontend.types import Type, VoidType


@dataclass(frozen=True, slots=True)
class Signature:
    """Signature of a call; `outer` has the type arguments of the callee's extern or package."""

    name: str
    parameters: list[ast.Parameter]
    result: Type
    type_parameters: list[str] = field(default_factory=list)
    outer: Bindings = field(default_factory=dict)
    declaration: ast.Declaration | None = None


def of_function(function: ast.FunctionDeclaration, outer: Bindings | None = None) -> Signature:
    result = function.return_type.resolved if function.return_type else None
    return Signature(
        function.name,
        function.parameters,
        result or VoidType(),
        function.type_parameters,
        outer or {},
        function,
    )


def select_overload(candidates: list[Signature], node: ast.Node, arguments: list[ast.Argument]) -> Signature:
    """Return the one candidate that fits the number and the names of the arguments."""
    if len(candidates) == 1:
        return candidates[0]
    fitting = [candidate for candidate in candidates if _fits(candidate, arguments)]
    if len(fitting) == 1:
        return fitting[0]
    name = candidates[0].name
    if fitting:
        raise CompileError(f"several declarations of {name!r} fit this call", node.span, "name its arguments")
    counts = sorted({len(candidate.parameters) for candidate in candidates})
    hint = f"it takes {' or '.join(str(count) for count in counts)}"
    raise CompileError(f"no declaration of {name!r} fits {len(arguments)} arguments", node.span, hint)


def _fits(candidate: Signature, arguments: list[ast.Argument]) -> bool:
    if len(arguments) > len(candidate.parameters):
        return False
    parameters = {parameter.name: parameter for parameter in candidate.parameters}
    given: set[str] = set()
    for argument, positional in zip(arguments, candidate.parameters, strict=False):
        name = argument.name or positional.name
        if name not in parameters:
            return False
        given.add(name)
    return all(name in given or is_optional(parameter) for name, parameter in parameters.items())


def is_optional(parameter: ast.Parameter) -> bool:
    return parameter.default is not None or any(note.name == "optional" for note in parameter.annotations)
