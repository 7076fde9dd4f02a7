"""The order in which p4c lists tables, actions and externs: as declared, sub-controls in their place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from v1model.midend.scope import (
    ActionClosure,
    Binding,
    ControlInstance,
    ExternObject,
    ParserInstance,
    TableInstance,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from v1model import ir
    from v1model.midend.unit import Unit


def sort_control_plane(unit: Unit, blocks: Sequence[ParserInstance | ControlInstance]) -> None:
    """Brings a unit's tables, actions and externs into p4c's order."""
    objects = [found for block in blocks for found in _declared(unit, block)]
    tables = {table.name: table for table in unit.tables}
    unit.tables = _picked([o.name for o in objects if isinstance(o, TableInstance)], tables)
    unit.actions = {
        o.name: unit.actions[o.name]
        for o in objects
        if isinstance(o, ActionClosure) and o.name in unit.actions
    }
    attached = {name for table in unit.tables for name in (*table.direct, table.implementation)}
    listed = [o.resource for o in objects if isinstance(o, ExternObject)]
    unit.externs = list(dict.fromkeys([*listed, *(e for e in unit.externs if e.name in attached)]))


def _picked(names: list[str], tables: dict[str, ir.Table]) -> list[ir.Table]:
    return [tables[name] for name in dict.fromkeys(names) if name in tables]


def _declared(unit: Unit, instance: Binding) -> Iterator[Binding]:
    """What an instance declares: first the top level's actions that its tables have, then its own."""
    if not isinstance(instance, ControlInstance | ParserInstance):
        return
    bindings = [*instance.scope.bindings.values(), *instance.scope.anonymous.values()]
    by_name = {table.name: table for table in unit.tables}
    for table in bindings:
        if isinstance(table, TableInstance) and table.lowered:
            names = {action.action for action in by_name[table.name].actions}
            actions = (a for a in unit.globals.bindings.values() if isinstance(a, ActionClosure))
            yield from (action for action in actions if action.name in names)
    for binding in bindings:
        if isinstance(binding, ControlInstance | ParserInstance):
            if binding.applications:
                yield from _declared(unit, binding)
        else:
            yield binding
