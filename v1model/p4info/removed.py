"""Extern instances that p4c removes before it writes P4Info."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING

from v1model import ir

if TYPE_CHECKING:
    from collections.abc import Iterator


def removed(program: ir.Program) -> frozenset[str]:
    """Return the names of unused instances whose type is a typedef of an extern.

    A read into a variable that nothing reads is no use. Instances of an extern by its own name stay, used or
    not.
    """
    candidates = frozenset(extern.name for extern in program.externs if extern.has_typedef)
    if not candidates:
        return candidates
    attached = {name for t in program.tables for name in (t.implementation, *t.direct) if name}
    parts = list(_parts([program.parser, *program.actions, *_controls(program)], candidates))
    read = {part.name for part in parts if isinstance(part, ir.Var)}
    calls = [part for part in parts if isinstance(part, ir.ExternCall) and part.instance in candidates]
    used = {call.instance for call in calls if not _is_read_of_unread(call, read)}
    return candidates - attached - used


def _controls(program: ir.Program) -> tuple[ir.Control, ...]:
    checksums = (program.verify_checksum, program.compute_checksum)
    return (program.ingress, program.egress, program.deparser, *checksums)


def _is_read_of_unread(call: ir.ExternCall, read: set[str]) -> bool:
    target = call.arguments[0]
    return call.name == "read" and isinstance(target, ir.Var) and target.name not in read


def _parts(node: object, candidates: frozenset[str]) -> Iterator[object]:
    """Yield everything below `node` except the variables that are only written.

    These are assigned as a whole, or read into from one of the candidates.
    """
    if isinstance(node, list | tuple):
        for item in node:
            yield from _parts(item, candidates)
        return
    if not is_dataclass(node):
        return
    yield node
    match node:
        case ir.Control() | ir.Parser():
            yield from _parts(getattr(node, "body", None) or getattr(node, "states", ()), candidates)
        case ir.Assign(target=ir.Var(), value=value):
            yield from _parts(value, candidates)
        case ir.ExternCall(instance=instance, name="read", arguments=(ir.Var(), *rest)) if (
            instance in candidates
        ):
            yield from _parts(rest, candidates)
        case _:
            for field in fields(node):
                yield from _parts(getattr(node, field.name), candidates)
