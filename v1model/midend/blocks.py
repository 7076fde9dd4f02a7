"""The six blocks of a V1Switch: their parameters bound to the shared variables, their bodies lowered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from v1model import ir
from v1model.errors import CompileError, UnsupportedError
from v1model.frontend import ast
from v1model.frontend import types as t
from v1model.midend.calls import inline_control
from v1model.midend.fold import FALSE
from v1model.midend.frame import Builder, Frame
from v1model.midend.instances import construct
from v1model.midend.scope import Binding, ControlInstance, Packet, ParserInstance
from v1model.midend.states import StateBuilder

if TYPE_CHECKING:
    from v1model.midend.unit import Unit

BLOCKS = ("parser", "verify_checksum", "ingress", "egress", "compute_checksum", "deparser")


def instantiate_main(unit: Unit, main: ast.Instantiation) -> list[ParserInstance | ControlInstance]:
    """Return the six instances given to V1Switch, in order."""
    type_ = main.type_ref.resolved
    if not isinstance(type_, t.DeclaredType) or type_.declaration.name != "V1Switch":
        raise UnsupportedError("main is no V1Switch: only v1model's architecture is supported", main.span)
    frame = unit.frame(Builder("main"))
    instances: list[ParserInstance | ControlInstance] = []
    for argument in main.arguments:
        assert argument.value is not None
        instance = construct(frame, argument.value, "")
        if not isinstance(instance, ParserInstance | ControlInstance):
            raise CompileError("an argument of V1Switch must be a parser or a control", argument.span)
        instances.append(instance)
    if len(instances) != len(BLOCKS):
        raise CompileError(f"V1Switch takes {len(BLOCKS)} arguments", main.span)
    return instances


def bind_shared(unit: Unit, frame: Frame, instance: ParserInstance | ControlInstance) -> None:
    """Bind a block's parameters: the packet, and headers, metadata and standard_metadata in this order."""
    shared: list[Binding] = [
        ir.Var("headers", unit.headers),
        ir.Var("metadata", unit.metadata),
        ir.Var("standard_metadata", unit.standard_metadata),
    ]
    for parameter in instance.declaration.parameters:
        type_ = parameter.type_ref.resolved
        is_packet = isinstance(type_, t.DeclaredType)
        frame.scope.bindings[parameter] = Packet() if is_packet else shared.pop(0)


def shared_shapes(unit: Unit, parser: ParserInstance) -> None:
    """Set the types of the three shared variables from the parser's parameters."""
    _, headers, metadata, standard = (
        parser.scope.closed(parameter.type_ref.resolved)
        for parameter in parser.declaration.parameters
        if parameter.type_ref.resolved is not None
    )
    span = parser.declaration.span
    unit.headers = unit.shapes.struct(headers, span)
    unit.metadata = unit.shapes.struct(metadata, span)
    unit.standard_metadata = unit.shapes.struct(standard, span)


def lower_parser(unit: Unit, instance: ParserInstance) -> ir.Parser:
    builder = Builder("parser")
    builder.is_parser = True
    frame = Frame(unit, builder, instance.scope)
    bind_shared(unit, frame, instance)
    states = StateBuilder()
    with builder.collect() as initial:
        start = states.parser(frame, instance, "accept")
    if initial:
        goto = ir.Transition((), (((), start),))
        start = builder.fresh_name("initialise")
        states.states.insert(0, ir.State(start, tuple(initial), goto))
    return ir.Parser(
        instance.path, tuple(builder.locals), start, tuple(states.states), instance.declaration.span
    )


def lower_control(unit: Unit, name: str, instance: ControlInstance) -> ir.Control:
    builder = Builder(name)
    frame = Frame(unit, builder, instance.scope, exit_label=builder.fresh_name("exit"))
    bind_shared(unit, frame, instance)
    with builder.collect() as statements:
        inline_control(frame, instance)
    if builder.exited is not None:
        statements.insert(0, ir.Assign(builder.exited, FALSE))
    builder.emit_block(frame.exit_label, statements)
    return ir.Control(instance.path, tuple(builder.locals), tuple(builder.out), instance.declaration.span)
