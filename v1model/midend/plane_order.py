"""Order of tables, actions and externs, as in p4c: as declared, with those of sub-controls in place."""

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
    """Sort a unit's tables, actions and externs in p4c's order.

    An action that is only called in a control's body is listed as well, without parameters.
    """
    objects: list[Binding] = [b for b in unit.globals.bindings.values() if isinstance(b, ExternObject)]
    for block in blocks:
        own = list(_declared(block))
        objects += [*_global_actions(unit, own), *own]
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


def _global_actions(unit: Unit, declared: list[Binding]) -> Iterator[Binding]:
    """Yield the top level's actions that a block uses: p4c copies them to its beginning."""
    used = {name for table in declared if isinstance(table, TableInstance) for name in table.actions}
    used.update(closure.name for closure in unit.called_actions)
    actions = (a for a in unit.globals.bindings.values() if isinstance(a, ActionClosure))
    yield from (action for action in actions if action.name in used)


def _declared(instance: ControlInstance | ParserInstance) -> Iterator[Binding]:
    """Yield the bindings of an instance; those of sub-controls are in the place of their instance."""
    for binding in (*instance.scope.bindings.values(), *instance.scope.anonymous.values()):
        if not isinstance(binding, ControlInstance | ParserInstance):
            yield binding
        elif binding.applications:
            yield from _declared(binding)
