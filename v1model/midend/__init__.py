"""Middle end: a checked AST becomes an `ir.Program`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from v1model import ir
from v1model.errors import CompileError, UnsupportedError
from v1model.frontend import ast
from v1model.midend import expressions, statements
from v1model.midend.blocks import instantiate_main, lower_control, lower_parser, shared_shapes
from v1model.midend.control_plane import (
    controller_header_types,
    controller_headers,
    header_annotations,
    translations,
)
from v1model.midend.plane_order import sort_control_plane
from v1model.midend.scope import ControlInstance, ParserInstance
from v1model.midend.unit import Unit
from v1model.midend.verify import verify

if TYPE_CHECKING:
    from types import ModuleType

RULES: tuple[ModuleType, ...] = (expressions, statements)  # importing them registers their rules

__all__ = ["lower", "verify"]


def lower(program: ast.Program, source_name: str, *, has_custom_externs: bool = False) -> ir.Program:
    """Return the IR of a checked v1model program; raises CompileError or UnsupportedError with a place.

    With `has_custom_externs` the user implements externs in C that are not v1model's.
    """
    main = _main(program)
    try:
        return _lower(program, main, source_name, has_custom_externs=has_custom_externs)
    except RecursionError:
        raise UnsupportedError(
            "an expression, statement or type that is nested too deeply", main.span
        ) from None


def _lower(
    program: ast.Program, main: ast.Instantiation, source_name: str, *, has_custom_externs: bool
) -> ir.Program:
    unit = Unit(program, has_custom_externs=has_custom_externs)
    unit.instantiate_top_level(program)
    parser, *controls = instantiate_main(unit, main)
    if not isinstance(parser, ParserInstance):
        raise CompileError("the first argument of V1Switch must be a parser", main.span)
    shared_shapes(unit, parser)
    lowered = _blocks(unit, parser, controls)
    unit.check_direct_uses()
    sort_control_plane(unit, [parser, *controls])
    packet_io = controller_header_types(unit, program)
    result = ir.Program(
        name=source_name,
        headers=unit.headers,
        metadata=unit.metadata,
        standard_metadata=unit.standard_metadata,
        parser=lowered[0],
        verify_checksum=lowered[1],
        ingress=lowered[2],
        egress=lowered[3],
        compute_checksum=lowered[4],
        deparser=lowered[5],
        tables=tuple(unit.tables),
        actions=tuple(unit.actions.values()),
        externs=tuple(unit.externs),
        digests=tuple(unit.digests.values()),
        translations=translations(unit),
        controller_headers=controller_headers(unit, packet_io),
        errors=tuple(unit.errors),
        enums=unit.enums,
        header_annotations=header_annotations(program),
        controller_header_types=packet_io,
        annotations=tuple(main.annotations),
        value_sets=tuple(unit.value_sets),
        custom_objects=tuple(unit.custom_objects),
    )
    verify(result)
    return result


def _main(program: ast.Program) -> ast.Instantiation:
    for declaration in program.declarations:
        if isinstance(declaration, ast.Instantiation) and declaration.name == "main":
            return declaration
    last = program.declarations[-1].span if program.declarations else program.span
    raise CompileError("the program has no `main`", last)


def _blocks(
    unit: Unit, parser: ParserInstance, controls: list[ParserInstance | ControlInstance]
) -> tuple[ir.Parser, ir.Control, ir.Control, ir.Control, ir.Control, ir.Control]:
    names = ("verify_checksum", "ingress", "egress", "compute_checksum", "deparser")
    parsed = lower_parser(unit, parser)
    lowered = []
    for name, instance in zip(names, controls, strict=True):
        if not isinstance(instance, ControlInstance):
            raise CompileError(
                "V1Switch's second to sixth arguments must be controls", instance.declaration.span
            )
        lowered.append(lower_control(unit, name, instance))
    return (parsed, lowered[0], lowered[1], lowered[2], lowered[3], lowered[4])
