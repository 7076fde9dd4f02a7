"""Types that the control plane needs: packet-in and packet-out headers, translated types."""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING

from v1model import ir
from v1model.errors import CompileError
from v1model.frontend import ast
from v1model.midend.scope import annotation_text

if TYPE_CHECKING:
    from v1model.frontend import types as t
    from v1model.midend.unit import Unit

logger = logging.getLogger(__name__)

_TRANSLATION = re.compile(r'"(?P<uri>[^"]*)",(string|(bit<)?(?P<width>\d+)>?)')
ControllerHeader = tuple[ir.Header, str, tuple[tuple[ast.Annotation, ...], ...]]


def controller_header_types(unit: Unit, program: ast.Program) -> dict[str, t.RecordType]:
    """Return the header types annotated with @controller_header, by the name that it gives."""
    found: dict[str, t.RecordType] = {}
    for declaration in program.declarations:
        if not isinstance(declaration, ast.StructDeclaration):
            continue
        for annotation in declaration.annotations:
            if annotation.name != "controller_header":
                continue
            name = annotation_text(annotation)
            if not name or name in found or declaration.kind != "header":
                message = "@controller_header must name what it is for, once, before a header"
                raise CompileError(message, annotation.span, 'write @controller_header("packet_in")')
            found[name] = unit.record_type(declaration)
    return found


def controller_headers(unit: Unit, types: dict[str, t.RecordType]) -> tuple[ControllerHeader, ...]:
    """Return packet_in and packet_out headers with the annotations of their fields."""
    found = []
    for name, type_ in types.items():
        is_used = unit.shapes.has(type_)
        header = unit.shapes.of(type_)
        assert isinstance(header, ir.Header)
        if name in ("packet_in", "packet_out"):
            _check_fields(name, header, type_.declaration.span, is_used=is_used)
        found.append((header, name, tuple(tuple(f.annotations) for f in type_.declaration.fields)))
    return tuple(found)


def _check_fields(name: str, header: ir.Header, span: ast.Span, *, is_used: bool) -> None:
    """Refuse a packet-in or packet-out header that is no whole bytes or varies in size.

    If the program never uses the header, only warn.
    """
    if any(isinstance(field, ir.Varbit) for _, field in header.fields):
        message, hint = f"the header of {name} has a varbit", "the fields of packet metadata have one size"
    else:
        bits = sum(field.width if isinstance(field, ir.Bits) else 1 for _, field in header.fields)
        if not bits % 8:
            return
        message = f"the header of {name} has {bits} bits, which are no whole bytes"
        hint = f"add a field of bit<{-bits % 8}>"
    if is_used:
        raise CompileError(message, span, hint)
    logger.warning("%s:%d: %s; the program does not use it", span.file, span.line, message)


def header_annotations(program: ast.Program) -> dict[str, tuple[ast.Annotation, ...]]:
    return {
        declaration.name: tuple(declaration.annotations)
        for declaration in program.declarations
        if isinstance(declaration, ast.StructDeclaration) and declaration.annotations
    }


def translations(unit: Unit) -> tuple[ir.TypeTranslation, ...]:
    """Return the `type`s of keys and action parameters, with their @p4runtime_translation."""
    return tuple(_translation(unit, type_) for type_ in unit.new_types.values())


def _translation(unit: Unit, type_: t.NewType) -> ir.TypeTranslation:
    shape = unit.shapes.of(type_)
    for annotation in type_.declaration.annotations:
        if annotation.name == "p4runtime_translation":
            uri, controller_type = translation_arguments(annotation)
            return ir.TypeTranslation(
                type_.name, shape, uri, controller_type, sdn_string=controller_type is None
            )
    return ir.TypeTranslation(type_.name, shape)


def translation_arguments(annotation: ast.Annotation) -> tuple[str, int | None]:
    """Return the URI and the controller's bit width (None for a string) of @p4runtime_translation(uri, type).

    The type is written as `string`, `bit<W>` or W.
    """
    written = _TRANSLATION.fullmatch(annotation.text.replace(" ", ""))
    if written is None:
        raise CompileError("@p4runtime_translation needs a URI and `string` or bit<W>", annotation.span)
    if written["width"] and not int(written["width"]):
        raise CompileError("@p4runtime_translation to a type of 0 bits", annotation.span)
    return written["uri"], int(written["width"]) if written["width"] else None
