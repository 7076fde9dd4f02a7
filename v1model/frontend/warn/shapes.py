"""Values, calls and types that are probably mistakes, each by itself."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from v1model.frontend import ast
from v1model.frontend.check.builtins import size_bits
from v1model.frontend.check.show import show
from v1model.frontend.types import BitType, DeclaredType, IntegerType, RecordType, TupleType, Type
from v1model.frontend.warn.entries import warn_entries
from v1model.frontend.warn.nodes import walk

if TYPE_CHECKING:
    from v1model.diagnostics import Diagnostics

# In a message: a brace that a backslash makes a character, or a place for a value.
PLACE = re.compile(r"\\([{}])|\{\}")


def warn_shapes(declaration: ast.Declaration, diagnostics: Diagnostics) -> None:
    """Warn about the nodes inside the declaration."""
    for node in walk(declaration):
        match node:
            case ast.Cast():
                _conversion(node, diagnostics)
            case ast.Binary(operator="<<" | ">>"):
                _shift(node, diagnostics)
            case ast.Call():
                _warn_deprecated(node.declaration, node.span, diagnostics)
                _bits_on_the_wire(node, diagnostics)
                _places_of_message(node, diagnostics)
            case ast.Instantiation():
                found = node.type_ref.resolved
                if isinstance(found, DeclaredType):
                    _warn_deprecated(found.declaration, node.span, diagnostics)
            case ast.KeyElement() if node.expression.constant is not None:
                diagnostics.warn("mismatch", "this key is a constant", node.span)
            case ast.TableDeclaration():
                warn_entries(node, diagnostics)
            case ast.StateDeclaration(transition=None):
                message = f"state {node.name!r} has no transition: parsing ends with 'reject'"
                diagnostics.warn("parser-transition", message, node.span, "write transition accept;")
            case ast.Select():
                _cases(node, diagnostics)


def _conversion(node: ast.Cast, diagnostics: Diagnostics) -> None:
    """Warn about an implicit conversion that changes the value; written casts are intended."""
    kind, value = node.type, node.operand.constant
    is_implicit = type(node.target) is ast.TypeRef
    if not is_implicit or not isinstance(kind, BitType) or not isinstance(node.operand.type, IntegerType):
        return
    if isinstance(value, bool) or not isinstance(value, int):
        return
    hint = f"a cast says that it is meant: ({show(kind)})({value})"
    if value < 0 and not kind.signed:
        message = f"{value} is negative, and {show(kind)} has no sign: it becomes {node.constant}"
        diagnostics.warn("mismatch", message, node.span, hint)
        return
    highest = (1 << (kind.width - kind.signed)) - 1
    if value > highest or (kind.signed and value < -highest - 1):
        message = f"{value} does not fit {show(kind)}: it becomes {node.constant}"
        diagnostics.warn("overflow", message, node.span, hint)


def _shift(node: ast.Binary, diagnostics: Diagnostics) -> None:
    kind, amount = node.left.type, node.right.constant
    if isinstance(kind, BitType) and isinstance(amount, int) and amount >= kind.width > 0:
        diagnostics.warn("overflow", f"a shift of {show(kind)} by {amount} leaves nothing", node.span)


def _warn_deprecated(declaration: ast.Declaration | None, span: ast.Span, diagnostics: Diagnostics) -> None:
    if declaration is None:
        return
    for annotation in declaration.annotations:
        if annotation.name == "deprecated":
            hint = next((value for value in _texts(annotation)), "")
            diagnostics.warn("deprecated", f"{declaration.name!r} is deprecated", span, hint)


def _texts(annotation: ast.Annotation) -> list[str]:
    return [value.constant for value in annotation.expressions if isinstance(value.constant, str)]


def _bits_on_the_wire(node: ast.Call, diagnostics: Diagnostics) -> None:
    """Warn about headers that are extracted or emitted and are no whole bytes; others may have any size."""
    if node.kind != "extern_method" or not isinstance(node.declaration, ast.FunctionDeclaration):
        return
    if node.declaration.name not in ("extract", "emit") or not node.arguments or not node.arguments[0].value:
        return
    found = node.arguments[0].value.type
    bits = (
        size_bits(found, largest=False) if isinstance(found, RecordType) and found.kind == "header" else None
    )
    if bits and bits % 8 and isinstance(found, RecordType):
        message = f"header {found.name!r} has {bits} bits, no whole number of bytes"
        hint = f"on the wire {-bits % 8} bits of padding follow it: declare them, as bit<{-bits % 8}>"
        diagnostics.warn("unsupported", message, found.declaration.span, hint)


def _places_of_message(node: ast.Call, diagnostics: Diagnostics) -> None:
    """Warn about a log_msg whose text has more or fewer places {} than there are values."""
    if node.kind != "extern_function" or node.declaration is None or node.declaration.name != "log_msg":
        return
    text, *values = [argument.value for argument in node.arguments]
    if text is None or not isinstance(text.constant, str):
        return
    places = sum(match[1] is None for match in PLACE.finditer(text.constant))
    count = sum(_values_of(value.type) for value in values if value is not None)
    if places != count:
        message = f"the message has {{}} {places} times, and values: {count}"
        diagnostics.warn("mismatch", message, node.span, "each {} stands for a value, and \\{\\} for braces")


def _values_of(kind: Type | None) -> int:
    """Return how many places a message's data fills; a list or struct fills one for each of its parts."""
    if isinstance(kind, TupleType):
        return len(kind.elements)
    return len(kind.fields) if isinstance(kind, RecordType) and kind.kind == "struct" else 1


def _cases(node: ast.Select, diagnostics: Diagnostics) -> None:
    """Warn about unreachable and repeated cases, and ranges that hold nothing."""
    seen: set[tuple[object, ...]] = set()
    takes_all = False
    for case in node.cases:
        values = tuple(key.constant for key in case.keys)
        if takes_all or (values and None not in values and values in seen):
            diagnostics.warn("parser-transition", "no packet gets to this case", case.span)
        for key in case.keys:
            _empty_range(key, diagnostics)
        seen.add(values)
        takes_all = takes_all or all(isinstance(key, ast.DefaultExpression) for key in case.keys)


def _empty_range(key: ast.Expression, diagnostics: Diagnostics) -> None:
    match key:
        case ast.ListExpression(elements=elements):
            for element in elements:
                _empty_range(element, diagnostics)
        case ast.Binary(operator=".."):
            low, high = key.left.constant, key.right.constant
            if isinstance(low, int) and isinstance(high, int) and low > high:
                diagnostics.warn("invalid", f"the range from {low} to {high} holds nothing", key.span)
