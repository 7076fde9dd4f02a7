"""Rules of the specification for core.p4's externs beyond their signatures (sections 13.8 and 16)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from v1model.errors import CompileError
from v1model.frontend import ast
from v1model.frontend.check.builtins import size_bits
from v1model.frontend.check.convert import is_header
from v1model.frontend.check.members import PARSER_PLACES
from v1model.frontend.check.show import show
from v1model.frontend.types import DeclaredType, RecordType, StackType, TupleType, Type, VarbitType

if TYPE_CHECKING:
    from v1model.frontend.check.scope import Context


def check_function_call(c: Context, node: ast.Call, name: str) -> None:
    """Check what the signature does not say of a call of an extern function."""
    if name == "static_assert":
        _check_static_assert(node)
    elif name == "verify" and c.place not in PARSER_PLACES:
        raise CompileError("'verify' can be called only in a parser", node.span)


def check_method_call(node: ast.Call, extern: str, method: str) -> None:
    """Check what the signature does not say of a call of a method of packet_in or packet_out."""
    if (extern, method) == ("packet_in", "extract"):
        _check_extract(node)
    elif (extern, method) == ("packet_in", "lookahead"):
        bits = size_bits(node.inferred[0], largest=True)
        if bits is None or bits != size_bits(node.inferred[0], largest=False):
            message = f"'lookahead' needs a type of one size, not {show(node.inferred[0])}"
            raise CompileError(message, node.span)
    elif (extern, method) == ("packet_out", "emit") and not _is_emittable(node.inferred[0]):
        raise CompileError(f"'emit' cannot write {show(node.inferred[0])}, only headers", node.span)


def _check_static_assert(node: ast.Call) -> None:
    """Evaluate a static_assert; raises CompileError if it is not known or fails."""
    condition = node.arguments[0].value if node.arguments else None
    if condition is None or not isinstance(condition.constant, bool):
        raise CompileError("the condition of static_assert must be known at compile time", node.span)
    if not condition.constant:
        message = node.arguments[1].value if len(node.arguments) > 1 else None
        text = message.constant if message is not None else None
        raise CompileError(f"static_assert failed: {text}" if text else "static_assert failed", node.span)
    node.constant = True


def _check_extract(node: ast.Call) -> None:
    """Require one argument for a header without varbit, and two for a header with one."""
    header, span = node.inferred[0], node.arguments[0].span
    if not is_header(header) or not isinstance(header, RecordType) or header.kind != "header":
        raise CompileError(f"'extract' reads a header, not {show(header)}", span)
    has_varbit = any(isinstance(kind, VarbitType) for _, kind in header.fields)
    if has_varbit and len(node.arguments) == 1:
        hint = "give the number of its bits as second argument"
        raise CompileError(f"{show(header)} has a varbit field", span, hint)
    if not has_varbit and len(node.arguments) == 2:
        raise CompileError(f"{show(header)} has no varbit field", span, "leave the second argument out")


def _is_emittable(found: Type) -> bool:
    match found:
        case StackType(element, _):
            return _is_emittable(element)
        case TupleType(elements):
            return all(_is_emittable(element) for element in elements)
        case RecordType(kind="struct"):
            return all(_is_emittable(kind) for _, kind in found.fields)
        case DeclaredType():
            return False
    return is_header(found)
