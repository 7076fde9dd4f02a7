"""The order in which p4c lists tables, actions and externs: as declared, sub-controls in their place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from v1model import ir
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

    from v1model.midend.unit import Unit


def sort_control_plane(unit: Unit, blocks: Sequence[ParserInstance | ControlInstance]) -> None:
    """Brings a unit's tables, actions and externs into p4c's order. An action that only a control's
    body calls is listed as well, without parameters."""
    objects: list[Binding] = [b for b in unit.globals.bindings.values() if isinstance(b, ExternObject)]
    objects += [found for block in blocks for found in _declared(unit, block)]
    for closure in unit.called_actions:
        unit.actions.setdefault(
            closure.name, ir.Action(closure.name, (), tuple(closure.declaration.annotations))
        )
    tables = {table.name: table for table in unit.tables}
    table_names = dict.fromkeys(o.name for o in objects if isinstance(o, TableInstance))
    action_names = dict.fromkeys(o.name for o in objects if isinstance(o, ActionClosure))
    unit.tables = [tables[name] for name in table_names if name in tables]
    unit.actions = {name: unit.actions[name] for name in action_names if name in unit.actions}
    attached = {name for table in unit.tables for name in (*table.direct, table.implementation)}
    listed = [o.resource for o in objects if isinstance(o, ExternObject)]
    unit.externs = list(dict.fromkeys([*listed, *(e for e in unit.externs if e.name in attached)]))


def _declared(unit: Unit, instance: ControlInstance | ParserInstance) -> Iterator[Binding]:
    """What an instance declares: first the top level's actions that it uses, then its own objects."""
    bindings = [*instance.scope.bindings.values(), *instance.scope.anonymous.values()]
    used = {closure.name for closure, scope in unit.called_actions.items() if scope is instance.scope}
    for table in bindings:
        if isinstance(table, TableInstance):
            used.update(table.actions)
    actions = (a for a in unit.globals.bindings.values() if isinstance(a, ActionClosure))
    yield from (action for action in actions if action.name in used)
    for binding in bindings:
        if not isinstance(binding, ControlInstance | ParserInstance):
            yield binding
        elif binding.applications:
            yield from _declared(unit, binding)
