"""Inlining: parameters bound by copy-in/copy-out (spec section 6.8), and bodies with their returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from v1model import ir
from v1model.frontend import ast
from v1model.midend.values import Place, assign, convert, fixed_place, is_union_member, overlap, reset

if TYPE_CHECKING:
    from v1model.midend.frame import Frame
    from v1model.midend.scope import Binding


def inline_body(frame: Frame, body: ast.Block, name: str) -> None:
    """Emit the body that `frame` runs, up to its `return`s, then its copy-out."""
    frame.return_label = frame.builder.fresh_name(f"{name}_return")
    with frame.builder.collect() as statements:
        frame.statement(body)
    frame.builder.emit_block(frame.return_label, statements)
    if not frame.builder.ended():
        frame.emit(*frame.copy_out)


@dataclass(slots=True)
class _Argument:
    """Argument of a call; `value` is None for `_`.

    `place` is that of an l-value without run-time indices.
    """

    parameter: ast.Parameter
    value: ir.Expr | None
    place: Place | None = None

    @property
    def written(self) -> bool:
        return self.parameter.direction in ("out", "inout")


def bind_arguments(
    frame: Frame,
    inner: Frame,
    parameters: list[ast.Parameter],
    arguments: list[ast.Argument],
    *,
    alias: bool,
    constants: bool,
) -> None:
    """Bind parameters to arguments in the callee's frame.

    Arguments are evaluated and copied in; the copies out go to `inner.copy_out`. All three go from left to
    right as the call is written, whatever the order of the parameters (spec section 6.8).

    With `alias` (the callee sees nothing of the caller but its parameters), a parameter stands for the
    argument's place itself if no difference can be observed. With `constants` it stands for the argument's
    constant value.
    """
    bound = _evaluate_all(frame, inner, parameters, arguments)
    fresh = []
    for argument in bound:
        value = argument.value
        if constants and isinstance(value, ir.Const) and not argument.written:
            inner.scope.bindings[argument.parameter] = value
        elif alias and value is not None and _may_alias(frame, argument, bound):
            inner.scope.bindings[argument.parameter] = value
            fresh.append((argument, value))
        else:
            fresh.append((argument, _copy(frame, inner, argument)))
    for argument, place in fresh:
        if argument.parameter.direction == "out":
            frame.emit(*reset(place))


def _evaluate_all(
    frame: Frame, inner: Frame, parameters: list[ast.Parameter], arguments: list[ast.Argument]
) -> list[_Argument]:
    """Return the arguments' values and places, in the order of the call; defaults come last."""
    bound: list[_Argument] = []
    given = _by_parameter(parameters, arguments)
    positions = {parameter: argument.position for parameter, argument in given.items()}
    for parameter in sorted(parameters, key=lambda p: positions.get(p, len(parameters))):
        before = len(frame.builder.out)
        argument = _evaluate(frame, inner, parameter, given.get(parameter))
        if len(frame.builder.out) > before:
            for earlier in bound:
                _pin(frame, earlier, before)
        if argument is not None:
            bound.append(argument)
    return bound


def _by_parameter(
    parameters: list[ast.Parameter], arguments: list[ast.Argument]
) -> dict[ast.Parameter, ast.Argument]:
    """Return arguments by parameter; by position if they were checked against a control type."""
    if all(argument.parameter in parameters for argument in arguments):
        return {a.parameter: a for a in arguments if a.parameter is not None}
    return dict(zip(parameters, arguments, strict=True))


def _evaluate(
    frame: Frame, inner: Frame, parameter: ast.Parameter, argument: ast.Argument | None
) -> _Argument | None:
    """Return the argument's value or place; None for an object (packet, instance), which is bound at once."""
    node = argument.value if argument is not None else parameter.default
    if node is None:
        return _Argument(parameter, None)
    instance = named_object(frame, node)
    if instance is not None:
        inner.scope.bindings[parameter] = instance
        return None
    value = frame.expression(node)
    if parameter.direction not in ("out", "inout"):
        value = convert(frame, value, inner.shape_of(parameter.type_ref), node.span)
    return _Argument(parameter, value, fixed_place(value))


def named_object(frame: Frame, node: ast.Expression) -> Binding | None:
    """Return the packet or instance that an expression names, or None."""
    if isinstance(node, ast.Name) and node.declaration is not None:
        binding = frame.find(node.declaration)
        if not isinstance(binding, ir.Expr):
            return binding
    return None


def _pin(frame: Frame, argument: _Argument, before: int) -> None:
    """Keep an argument as it was before a later one's side effects."""
    if argument.value is None:
        return
    if argument.parameter.direction == "out" or argument.parameter.direction == "inout":
        argument.value = frame.builder.pinned_at(before, argument.value)
    else:
        argument.value = frame.builder.saved_at(before, argument.value)
    argument.place = fixed_place(argument.value)


def _copy(frame: Frame, inner: Frame, argument: _Argument) -> ir.Var:
    """Return the parameter as a variable of its own, copied in, and to be copied out."""
    parameter, value = argument.parameter, argument.value
    variable = inner.scope.bindings.get(parameter)
    if not isinstance(variable, ir.Var):
        variable = frame.builder.local(parameter.name, inner.shape_of(parameter.type_ref))
        inner.scope.bindings[parameter] = variable
    if value is None:
        return variable
    if argument.written:  # fixes the place before the callee can change its indices
        value = frame.builder.pinned_at(len(frame.builder.out), value)
    if parameter.direction != "out":
        frame.emit(ir.Assign(variable, convert(frame, value, variable.type, parameter.span)))
    if argument.written:
        with frame.builder.collect() as copies:
            assign(frame, value, convert(frame, variable, value.type, parameter.span))
        inner.copy_out.extend(copies)
    return variable


def _may_alias(frame: Frame, argument: _Argument, others: list[_Argument]) -> bool:
    """Return whether the parameter may stand for the argument's place.

    No other argument may be written there, nor read there what this one writes. Temporaries are excluded,
    which the next inlining would rename. So are written members of a header union: their copy-out invalidates
    the others.
    """
    if argument.place is None or argument.value is None or frame.builder.is_temporary(argument.value):
        return False
    if argument.written and is_union_member(argument.value):
        return False
    return not any(
        other is not argument
        and (argument.written or other.written)
        and (overlap(argument.place, other.place) if other.place is not None else other.written)
        for other in others
    )
