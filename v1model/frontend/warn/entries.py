"""Entries of a table in the source that are probably mistakes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from v1model.frontend import ast

if TYPE_CHECKING:
    from v1model.diagnostics import Diagnostics

_WITH_PRIORITY = ("ternary", "range", "optional")  # match kinds whose entries have a priority


def warn_entries(table: ast.TableDeclaration, diagnostics: Diagnostics) -> None:
    """Warn about a table's entries that are probably mistakes.

    These are priorities given twice or out of order, bits that a mask ignores, entries with the keys of an
    earlier one, and a size that constant entries make meaningless.
    """
    if table.entries_const and (size := table.properties.get("size")) is not None:
        message = f"table {table.name!r} has constant entries: its size means nothing"
        diagnostics.warn("mismatch", message, size.span)
    for entry in table.entries:
        for key in entry.keys:
            _masked_bits(key, diagnostics)
    if any(key.match_kind in _WITH_PRIORITY for key in table.keys):
        _same_keys(table, diagnostics)
    if not table.entries_const and any(entry.priority is not None for entry in table.entries):
        _priorities(table, diagnostics)


def _same_keys(table: ast.TableDeclaration, diagnostics: Diagnostics) -> None:
    """Warn about entries with the same keys, of which one is never hit; tables without priorities refuse
    them.
    """
    seen: dict[object, ast.Entry] = {}
    for entry in table.entries:
        keys = tuple(_matched(key) for key in entry.keys)
        if None not in keys and (first := seen.setdefault(keys, entry)) is not entry:
            message = f"this entry and that of line {first.span.line} have the same keys"
            hint = "only the one with the better priority is ever hit"
            diagnostics.warn("unreachable", message, entry.span, hint)


def _matched(key: ast.Expression) -> object:
    """Return what a key of an entry matches; None if it is not known here."""
    match key:
        case ast.DefaultExpression():
            return "_"
        case ast.ListExpression(elements=elements):
            parts = tuple(_matched(part) for part in elements)
            return None if None in parts else parts
        case ast.Binary(operator="&&&" | ".." as operator):
            left, right = key.left.constant, key.right.constant
            if not isinstance(left, int) or not isinstance(right, int):
                return None
            return (operator, left & right, right) if operator == "&&&" else (operator, left, right)
    return key.constant


def _masked_bits(key: ast.Expression, diagnostics: Diagnostics) -> None:
    if isinstance(key, ast.ListExpression):
        for part in key.elements:
            _masked_bits(part, diagnostics)
        return
    if not isinstance(key, ast.Binary) or key.operator != "&&&":
        return
    value, mask = key.left.constant, key.right.constant
    if isinstance(value, int) and isinstance(mask, int) and value & ~mask:
        hint = f"the entry matches {value & mask:#x} &&& {mask:#x}"
        diagnostics.warn("mismatch", "the mask leaves out bits that are set in the value", key.span, hint)


def _priorities(table: ast.TableDeclaration, diagnostics: Diagnostics) -> None:
    """Warn about equal priorities, and about entries that win over earlier ones.

    The larger priority wins unless the table says otherwise, and entries should be in the order in which they
    win.
    """
    largest_wins = _property(table, "largest_priority_wins", default=True)
    step = int(_property(table, "priority_delta", default=1)) * (-1 if largest_wins else 1)
    seen: dict[int, ast.Entry] = {}
    last: int | None = None
    is_in_order = True
    for entry in table.entries:
        given = entry.priority.constant if entry.priority is not None else None
        if entry.priority is None and last is not None:
            given = last + step
        if isinstance(given, bool) or not isinstance(given, int):
            return  # the middle end refuses it, or evaluates a constructor's argument
        if (first := seen.setdefault(given, entry)) is not entry:
            message = f"this entry and that of line {first.span.line} both have priority {given}"
            diagnostics.warn(
                "duplicate-priorities", message, entry.span, "if a packet matches both, either may win"
            )
        if is_in_order and last is not None and (given - last) * step < 0:
            message = f"priority {given} stands behind {last}: the entry wins over the one before it"
            diagnostics.warn("entries-out-of-priority-order", message, entry.span)
            is_in_order = False
        last = given


def _property(table: ast.TableDeclaration, name: str, *, default: int) -> int:
    found = table.properties.get(name)
    value = found.value.constant if found and isinstance(found.value, ast.Expression) else default
    return value if isinstance(value, int) else default
