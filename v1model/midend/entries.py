"""Entries in the source: keys, arguments, and priorities as in P4Runtime."""

from __future__ import annotations

from typing import TYPE_CHECKING

from v1model import ir
from v1model.dataplane import MAX_PRIORITY
from v1model.errors import CompileError
from v1model.frontend import ast
from v1model.midend.scope import ActionClosure
from v1model.midend.values import convert

if TYPE_CHECKING:
    from v1model.midend.frame import Frame

_NEEDS_PRIORITY = frozenset(("ternary", "range", "optional"))


def action_arguments(frame: Frame, call: ast.Call) -> tuple[int, ...]:
    """Return the control plane's arguments of an action, as unsigned bit patterns."""
    values = []
    for argument in call.arguments:
        parameter = argument.parameter
        if parameter is None or parameter.direction or argument.value is None:
            continue
        value = convert(
            frame, frame.expression(argument.value), frame.shape_of(parameter.type_ref), argument.span
        )
        values.append(_pattern(value, argument))
    return tuple(values)


def _pattern(value: ir.Expr, node: ast.Node) -> int:
    """Return a constant's bits."""
    if not isinstance(value, ir.Const) or not isinstance(value.value, int):
        raise CompileError("this must be known at compile time", node.span)
    return value.value & ((1 << _width(value.type)) - 1)


def _width(type_: ir.Type) -> int:
    return type_.width if isinstance(type_, ir.Bits) else 1


def table_entries(
    frame: Frame, declaration: ast.TableDeclaration, keys: tuple[ir.Key, ...]
) -> tuple[ir.ConstEntry, ...]:
    """Return the entries of a table in the order of the source."""
    if not declaration.entries:
        return ()
    needed = any(key.match_kind in _NEEDS_PRIORITY for key in keys)
    with_priority = [entry for entry in declaration.entries if entry.priority is not None]
    if with_priority and declaration.entries_const:
        message = "const entries have no priorities: the first one that matches wins"
        raise CompileError(message, with_priority[0].span)
    if with_priority and not needed:
        message = "entries of a table with only exact and lpm keys have no priorities"
        raise CompileError(message, with_priority[0].span)
    priorities = _priorities(frame, declaration) if needed else [None] * len(declaration.entries)
    found = tuple(
        ir.ConstEntry(
            _matches(frame, entry, keys),
            _action(frame, entry.action),
            priority,
            declaration.entries_const or entry.is_const,
        )
        for entry, priority in zip(declaration.entries, priorities, strict=True)
    )
    _refuse_twice(declaration, found)
    return found


def _refuse_twice(declaration: ast.TableDeclaration, entries: tuple[ir.ConstEntry, ...]) -> None:
    """Refuse two entries of the same keys and priority, which the control plane could not distinguish."""
    seen: dict[object, ast.Entry] = {}
    for node, entry in zip(declaration.entries, entries, strict=True):
        first = seen.setdefault((entry.matches, entry.priority), node)
        if first is not node:
            hint = f"see line {first.span.line}"
            raise CompileError("an entry with these keys stands in the table already", node.span, hint)


def _action(frame: Frame, call: ast.Call) -> ir.ActionCall:
    assert isinstance(call.callee, ast.Name)
    assert call.callee.declaration is not None
    closure = frame.find(call.callee.declaration)
    assert isinstance(closure, ActionClosure)
    return ir.ActionCall(closure.name, action_arguments(frame, call))


def _priorities(frame: Frame, declaration: ast.TableDeclaration) -> list[int | None]:
    """Return P4Runtime's priorities: higher ones win (spec section 14.2.1.4; p4c's @priority for BMv2)."""
    entries = declaration.entries
    if declaration.entries_const:
        ranks = [_rank(frame, entry, position) for position, entry in enumerate(entries, start=1)]
        return [max(ranks) + 1 - rank for rank in ranks]
    largest_wins = _largest_wins(frame, declaration)
    delta = _delta(frame, declaration)
    explicit = _explicit(frame, declaration, -delta if largest_wins else delta)
    if largest_wins:
        return list(explicit)
    return [max(explicit) + 1 - priority for priority in explicit]


def _rank(frame: Frame, entry: ast.Entry, position: int) -> int:
    """Return the rank of a const entry: its position, or that of @priority(n), where smaller wins."""
    for annotation in entry.annotations:
        if annotation.name == "priority":
            return frame.constant(annotation.expressions[0], "a priority")
    return position


def _explicit(frame: Frame, declaration: ast.TableDeclaration, step: int) -> list[int]:
    """Return each entry's priority: as given, or a step from the one before.

    If none is given, all are made up.
    """
    entries = declaration.entries
    if all(entry.priority is None for entry in entries):
        count = len(entries)
        start = 1 if step > 0 else 1 + (count - 1) * -step
        made_up = [start + step * i for i in range(count)]
        for priority, entry in zip(made_up, entries, strict=True):
            _check_priority(priority, entry)
        return made_up
    priorities: list[int] = []
    for entry in entries:
        if entry.priority is not None:
            priorities.append(frame.constant(entry.priority, "a priority"))
        elif not priorities:
            raise CompileError("the first entry must have a priority when others have one", entry.span)
        else:
            priorities.append(priorities[-1] + step)
        _check_priority(priorities[-1], entry)
    return priorities


def _check_priority(priority: int, entry: ast.Entry) -> None:
    if not 0 < priority <= MAX_PRIORITY:
        message = f"a priority of {priority}: P4Runtime has those from 1 to {MAX_PRIORITY}"
        raise CompileError(message, entry.span)


def _largest_wins(frame: Frame, declaration: ast.TableDeclaration) -> bool:
    given = declaration.properties.get("largest_priority_wins")
    if given is None:
        return True
    assert isinstance(given.value, ast.Expression)
    return bool(frame.constant(given.value, "largest_priority_wins"))


def _delta(frame: Frame, declaration: ast.TableDeclaration) -> int:
    given = declaration.properties.get("priority_delta")
    if given is None:
        return 1
    assert isinstance(given.value, ast.Expression)
    value = frame.constant(given.value, "priority_delta")
    if value <= 0:  # from a constructor's argument; others are checked already
        raise CompileError("priority_delta must be at least 1", given.value.span)
    return value


def _matches(frame: Frame, entry: ast.Entry, keys: tuple[ir.Key, ...]) -> tuple[ir.KeyMatch | None, ...]:
    nodes = [part for key in entry.keys for part in _parts(key)]
    if len(nodes) == 1 and isinstance(nodes[0], ast.DefaultExpression):
        nodes *= len(keys)
    if len(nodes) != len(keys):
        raise CompileError(f"an entry with {len(nodes)} keys for a table with {len(keys)}", entry.span)
    return tuple(_match(frame, node, key) for node, key in zip(nodes, keys, strict=True))


def _parts(node: ast.Expression) -> list[ast.Expression]:
    return node.elements if isinstance(node, ast.ListExpression) else [node]


def _match(frame: Frame, node: ast.Expression, key: ir.Key) -> ir.KeyMatch | None:
    """Return the match of one field of an entry; None if it matches anything."""
    width = _width(key.expression.type)
    full = (1 << width) - 1

    def known(part: ast.Expression) -> int:
        return _pattern(convert(frame, frame.expression(part), key.expression.type, part.span), part)

    while isinstance(node, ast.Cast) and isinstance(node.operand, ast.Binary):
        node = node.operand
    if isinstance(node, ast.DefaultExpression):
        return None
    if isinstance(node, ast.Binary) and node.operator == "&&&":
        return _masked(known(node.left), known(node.right), width, key, node)
    if isinstance(node, ast.Binary) and node.operator == "..":
        low, high = known(node.left), known(node.right)
        if key.match_kind != "range":
            raise CompileError(f"a range for a key that matches {key.match_kind}", node.span)
        return None if (low, high) == (0, full) else ir.KeyMatch(low, high=high)
    value = known(node)
    match key.match_kind:
        case "lpm":
            return ir.KeyMatch(value, prefix_length=width)
        case "ternary":
            return ir.KeyMatch(value, mask=full)
        case "range":
            return ir.KeyMatch(value, high=value)
        case _:
            return ir.KeyMatch(value)


def _masked(value: int, mask: int, width: int, key: ir.Key, node: ast.Expression) -> ir.KeyMatch | None:
    """Return value &&& mask for a ternary key, or for an lpm key if the mask is a prefix."""
    if mask == 0 and key.match_kind in ("ternary", "lpm"):
        return None
    if key.match_kind == "ternary":
        return ir.KeyMatch(value & mask, mask=mask)
    inverse = ~mask & ((1 << width) - 1)
    if key.match_kind != "lpm" or inverse & (inverse + 1):
        raise CompileError(f"a mask that a key that matches {key.match_kind} cannot have", node.span)
    return ir.KeyMatch(value & mask, prefix_length=width - inverse.bit_length())
