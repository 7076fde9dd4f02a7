"""Matching of arguments with parameters: order, type arguments, conversions, directions (spec 6.8)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from v1model.errors import CompileError
from v1model.frontend import ast
from v1model.frontend.check import resolve
from v1model.frontend.check.block_mismatch import block_mismatch
from v1model.frontend.check.constants import is_compile_time
from v1model.frontend.check.convert import convert
from v1model.frontend.check.lvalues import require_lvalue
from v1model.frontend.check.rules import check
from v1model.frontend.check.show import show
from v1model.frontend.check.signatures import Signature, is_optional
from v1model.frontend.check.substitute import DONT_CARE, Bindings, has_variables, substitute, unify
from v1model.frontend.types import DeclaredType, IntegerType, RecordType, Type, TypeVariable, parts_of

if TYPE_CHECKING:
    from v1model.frontend.check.scope import Context


@dataclass(frozen=True)
class Site:
    """A place with a call or construction, as written there.

    `hint` is the type that the place wants. `allow_unknown` lets type arguments that are written as `_` stay
    unknown.
    """

    span: ast.Span
    arguments: list[ast.Argument]
    type_arguments: list[ast.TypeRef] = field(default_factory=list)
    hint: Type | None = None
    allow_unknown: bool = False


@dataclass(frozen=True)
class Bound:
    """Arguments of a call in the order of the parameters, checked and converted."""

    arguments: list[ast.Argument]
    type_arguments: tuple[Type, ...]
    result: Type


def bind(c: Context, signature: Signature, site: Site) -> Bound:
    """Check a site's arguments against a signature; the site's own arguments stay unchanged."""
    ordered = _in_order(signature, site)
    fresh, bindings = _fresh_variables(c, signature, site)
    wanted = [_parameter_type(argument, fresh) for argument in ordered]
    for argument, kind in zip(ordered, wanted, strict=True):
        _check_argument(c, argument, kind, bindings)
    inferred = _inferred(signature, site, fresh, bindings)
    for argument, kind in zip(ordered, wanted, strict=True):
        _convert_argument(c, argument, substitute(kind, bindings))
        if isinstance(signature.declaration, ast.FunctionDeclaration):
            _require_known(argument)
    return Bound(ordered, inferred, substitute(substitute(signature.result, fresh), bindings))


# --- order -------------------------------------------------------------------------------


def _in_order(signature: Signature, site: Site) -> list[ast.Argument]:
    """Return a copy of one argument for each parameter; optional parameters may have none.

    Defaults fill in for missing ones. `position` is the place in the call, which is the order of evaluation.
    """
    parameters, arguments = signature.parameters, site.arguments
    if len(arguments) > len(parameters):
        message = f"{signature.name!r} takes {_count(parameters)}, not {len(arguments)}"
        raise CompileError(message, arguments[len(parameters)].span)
    given: dict[str, ast.Argument] = {}
    for position, (argument, positional) in enumerate(zip(arguments, parameters, strict=False)):
        placed = replace(argument, position=position)
        _take(signature, placed, argument.name or positional.name, given)
    ordered = []
    for parameter in parameters:
        if (found := given.get(parameter.name)) is None and parameter.default is not None:
            found = ast.Argument(site.span, parameter.default, parameter.name, position=len(arguments))
        if found is not None:
            ordered.append(replace(found, parameter=parameter))
        elif not is_optional(parameter):
            raise CompileError(f"{signature.name!r} needs an argument for {parameter.name!r}", site.span)
    return ordered


def _take(signature: Signature, argument: ast.Argument, name: str, given: dict[str, ast.Argument]) -> None:
    if name not in [parameter.name for parameter in signature.parameters]:
        raise CompileError(f"{signature.name!r} has no parameter {name!r}", argument.span)
    if name in given:
        raise CompileError(f"parameter {name!r} of {signature.name!r} is given twice", argument.span)
    if any((other.name is None) != (argument.name is None) for other in given.values()):
        raise CompileError("either all arguments are named or none is", argument.span)
    given[name] = argument


def _count(parameters: list[ast.Parameter]) -> str:
    return "1 argument" if len(parameters) == 1 else f"{len(parameters)} arguments"


# --- type arguments ----------------------------------------------------------------------


def _fresh_variables(c: Context, signature: Signature, site: Site) -> tuple[Bindings, Bindings]:
    """Return what replaces the signature's type variables, and their known bindings.

    Each becomes a variable with a fresh name, apart from the caller's own. It is bound to the type argument
    that the user wrote, if any.
    """
    names, type_arguments = signature.type_parameters, site.type_arguments
    if type_arguments and len(type_arguments) != len(names):
        raise CompileError(
            f"{signature.name!r} takes {len(names)} type arguments, not {len(type_arguments)}", site.span
        )
    fresh: Bindings = dict(signature.outer)
    bindings: Bindings = {}
    for position, name in enumerate(names):
        c.fresh_variables += 1
        variable = TypeVariable(f"{name}#{c.fresh_variables}")
        fresh[name] = variable
        written = resolve.complete(c, type_arguments[position]) if type_arguments else DONT_CARE
        bindings[variable.name] = written
    return fresh, bindings


def _inferred(signature: Signature, site: Site, fresh: Bindings, bindings: Bindings) -> tuple[Type, ...]:
    hint = site.hint
    if hint is not None and not isinstance(hint, TypeVariable):
        result = substitute(signature.result, fresh)
        if isinstance(result, TypeVariable) and bindings.get(result.name) == DONT_CARE:
            bindings[result.name] = hint
    inferred = []
    for name in signature.type_parameters:
        variable = fresh[name]
        assert isinstance(variable, TypeVariable)
        found = bindings[variable.name]
        if found == DONT_CARE and not site.allow_unknown:
            message = f"cannot infer type argument {name!r} of {signature.name!r}"
            raise CompileError(message, site.span, f"write it: {signature.name}<...>(...)")
        if isinstance(found, RecordType) and not found.name:
            message = f"the struct for {name!r} of {signature.name!r} has no type"
            raise CompileError(message, site.span, "write it before, as in (S){...}")
        if any(isinstance(part, IntegerType) for part in parts_of(found)):
            message = f"cannot infer a width for type argument {name!r} of {signature.name!r}"
            raise CompileError(message, site.span, "give the integer one, as in 8w1")
        inferred.append(found)
    return tuple(inferred)


# --- types and directions ----------------------------------------------------------------


def _parameter_type(argument: ast.Argument, fresh: Bindings) -> Type:
    assert argument.parameter is not None
    kind = argument.parameter.type_ref.resolved
    assert kind is not None
    return substitute(kind, fresh)


def _check_argument(c: Context, argument: ast.Argument, wanted: Type, bindings: Bindings) -> None:
    """Check an argument's value, and infer type arguments from it."""
    if argument.value is None:
        return
    known = substitute(wanted, bindings)
    argument.value = check(c, argument.value, None if has_variables(known) else known)
    if not has_variables(wanted):
        return
    assert argument.value.type is not None
    _require_value(argument.value)
    if not unify(wanted, argument.value.type, bindings) and has_variables(known):
        raise _mismatch(argument, known)


def _require_value(node: ast.Expression) -> None:
    """Refuse a named thing that is no value and so can't be bound to a type parameter."""
    if isinstance(node.type, DeclaredType) and isinstance(
        node.type.declaration, ast.TableDeclaration | ast.ActionDeclaration | ast.FunctionDeclaration
    ):
        raise CompileError(f"{show(node.type)} is no value", node.span)


def _mismatch(argument: ast.Argument, wanted: Type) -> CompileError:
    assert argument.parameter is not None
    assert argument.value is not None
    if error := block_mismatch(wanted, argument.value.type, argument.span):
        return error
    types = f"{show(wanted)}, not {show(argument.value.type)}"
    return CompileError(f"parameter {argument.parameter.name!r} is {types}", argument.span)


def _require_known(argument: ast.Argument) -> None:
    """Require a compile-time value for a function's parameter without direction."""
    if argument.parameter is None or argument.parameter.direction or argument.value is None:
        return
    if not is_compile_time(argument.value):
        message = f"the argument for {argument.parameter.name!r} must be known at compile time"
        raise CompileError(message, argument.span)


def _convert_argument(c: Context, argument: ast.Argument, wanted: Type) -> None:
    parameter = argument.parameter
    assert parameter is not None
    if argument.value is None:
        if parameter.direction != "out":
            message = f"'_' is only possible for an 'out' parameter, not for {parameter.name!r}"
            raise CompileError(message, argument.span)
        return
    if parameter.direction in ("out", "inout"):
        require_lvalue(c, argument.value, f"parameter {parameter.name!r} is {parameter.direction}: it")
        if argument.value.type != wanted:
            raise _mismatch(argument, wanted)
    else:
        argument.value = convert(argument.value, wanted)
