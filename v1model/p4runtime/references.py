"""Constraint @refers_to: values of keys and of action parameters must occur in another table's entry.

    action set_nexthop(@refers_to(nexthop_table, nexthop_id) bit<10> nexthop_id) { ... }
    key = { meta.vrf: exact @refers_to(vrf_table, vrf_id); }

If one entry or action refers to several fields of a table, one entry of it must have all these values. The
table `builtin::multicast_group_table` with its field `multicast_group_id` stands for the multicast groups.
"""

from __future__ import annotations

import logging
import re
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from v1model import ir
from v1model.dataplane import DataPlaneError, TableEntry, matched
from v1model.p4runtime import constraints

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from v1model.dataplane import DataPlane
    from v1model.protos.p4.config.v1 import p4info_pb2

    Pairs = dict[str, list[tuple[int, int]]]  # by target: positions of a field here and in the target

logger = logging.getLogger(__name__)

MAX_TOLD = 20  # references of tables, and of actions, that are not enforced
MULTICAST_GROUPS = "builtin::multicast_group_table"
_GROUP_ID = "multicast_group_id"
_REFERS_TO = re.compile(r"@refers_to\((?P<table>[^,]*),(?P<field>[^,]*)\)")


@dataclass(frozen=True, slots=True)
class Reference:
    """Reference: the values at `positions` must be those at `target_positions` in an entry of `target`.

    `positions` are of a table's keys or an action's parameters, `target_positions` of the target's keys.
    """

    source: str  # a table or an action
    positions: tuple[int, ...]
    target: str
    target_positions: tuple[int, ...]


class References:
    """Checker of references against the data plane's current entries, members and groups."""

    def __init__(self, p4info: p4info_pb2.P4Info, data_plane: DataPlane) -> None:
        self._data_plane = data_plane
        self._tables = {table.name: table for table in data_plane.program.tables}
        self._is_enforced = True
        self._of_keys = list(self._read(p4info, p4info.tables, "match_fields"))
        self._of_actions = list(self._read(p4info, p4info.actions, "params"))

    def concerns(self, table: ir.Table) -> bool:
        """Return whether entries of a table refer to others or may be referred to."""
        actions = {ref.action for ref in table.actions}
        named = {name for r in self._of_keys for name in (r.source, r.target)}
        return table.name in named or any(
            r.target == table.name or r.source in actions for r in self._of_actions
        )

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """Check nothing during the block, in which consistent state is copied in another order."""
        self._is_enforced = False
        try:
            yield
        finally:
            self._is_enforced = True

    def check_keys(self, entry: TableEntry) -> None:
        """Raise INVALID_ARGUMENT if a key's value is missing in the table that it refers to."""
        self._check(self._of_keys, entry.table, self._key_values(entry))

    def check_action(self, call: ir.ActionCall) -> None:
        """Raise INVALID_ARGUMENT if an action's argument is missing in the table that it refers to."""
        self._check(self._of_actions, call.action, call.arguments)

    def check_deletion(self, entry: TableEntry) -> None:
        """Raise FAILED_PRECONDITION if something refers to an entry, and no other entry has its values."""
        self._check_unused(entry.table, self._key_values(entry), entry)

    def check_group_deletion(self, group: int) -> None:
        """Raise FAILED_PRECONDITION if something refers to a multicast group."""
        self._check_unused(MULTICAST_GROUPS, (group,), None)

    # --- what is there

    def _check(self, references: list[Reference], source: str, values: Sequence[int | None]) -> None:
        for reference in references:
            if reference.source != source or not self._is_enforced:
                continue
            wanted = _at(values, reference.positions)
            if None not in wanted and not any(self._targets(reference, wanted)):
                shown = ", ".join(map(str, wanted))
                message = f"{source} refers to {shown}, which no entry of {reference.target} has"
                raise DataPlaneError("INVALID_ARGUMENT", message)

    def _check_unused(self, target: str, values: Sequence[int | None], entry: TableEntry | None) -> None:
        for reference in (*self._of_keys, *self._of_actions):
            if reference.target != target or not self._is_enforced:
                continue
            wanted = _at(values, reference.target_positions)
            others = (other for other in self._targets(reference, wanted) if not _is_same(other, entry))
            if any(self._sources(reference, wanted)) and not any(others):
                message = f"{reference.source} still refers to this entry of {target}"
                raise DataPlaneError("FAILED_PRECONDITION", message)

    def _targets(self, reference: Reference, wanted: Sequence[int | None]) -> Iterator[TableEntry]:
        """Yield the entries that a reference with these values means."""
        if reference.target == MULTICAST_GROUPS:
            groups = self._data_plane.multicast_groups()
            yield from (TableEntry(MULTICAST_GROUPS, (), None) for group in wanted if group in groups)
            return
        yield from self._entries(reference.target, reference.target_positions, wanted)

    def _entries(
        self, table: str, positions: tuple[int, ...], wanted: Sequence[int | None]
    ) -> Iterator[TableEntry]:
        """Yield the entries of a table with these values at these positions of its keys."""
        kinds = [key.match_kind for key in _keys(self._tables[table])]
        if sorted(positions) == list(range(len(kinds))) and set(kinds) == {"exact"} and None not in wanted:
            by_position = sorted(zip(positions, wanted, strict=True))
            matches = tuple(ir.KeyMatch(value) for _, value in by_position if value is not None)
            try:
                yield self._data_plane.find(TableEntry(table, matches, None))
            except DataPlaneError as error:
                if error.code != "NOT_FOUND":
                    raise
            return
        for entry in self._data_plane.entries(table):
            if _at(self._key_values(entry), positions) == tuple(wanted):
                yield entry

    def _sources(self, reference: Reference, wanted: Sequence[int | None]) -> Iterator[object]:
        """Yield the entries and action calls whose values refer to these."""
        if reference in self._of_keys:
            yield from self._entries(reference.source, reference.positions, wanted)
            return
        for call in self._calls(reference.source):
            if _at(call.arguments, reference.positions) == tuple(wanted):
                yield call

    def _calls(self, action: str) -> Iterator[ir.ActionCall]:
        """Yield each call of an action in entries, default entries and members."""
        for table in self._tables.values():
            if action not in {ref.action for ref in table.actions}:
                continue
            if table.implementation:
                calls = [member.action for member in self._data_plane.members(table.implementation)]
            else:
                calls = [entry.action for entry in self._data_plane.entries(table.name) if entry.action]
                calls.append(self._data_plane.default(table.name))
            yield from (call for call in calls if call.action == action)

    def _key_values(self, entry: TableEntry) -> tuple[int | None, ...]:
        """Return the one number that an entry matches each key with; None if it is not one number."""
        values = []
        for key, match in matched(self._tables[entry.table], entry.matches):
            width = key.expression.type.width if isinstance(key.expression.type, ir.Bits) else 1
            value = constraints.matched(key.match_kind, width, match)
            values.append(value if isinstance(value, int) else value.exact)
        return tuple(values)

    # --- the annotations

    def _read(self, p4info: p4info_pb2.P4Info, owners: Iterable[object], parts: str) -> Iterator[Reference]:
        """Yield the references of tables (match_fields) or actions (params).

        One that can't be parsed is logged and not enforced.
        """
        told = 0
        for owner in owners:
            name = owner.preamble.name  # type: ignore[attr-defined]  # of tables and actions alike
            found: Pairs = {}
            for position, part in enumerate(getattr(owner, parts)):
                for annotation in part.annotations:
                    if (match := _REFERS_TO.fullmatch(annotation)) is None:
                        continue
                    target, field = ("".join(match[group].split()) for group in ("table", "field"))
                    try:
                        target, index = self._target(p4info, target, field)
                    except ValueError as error:
                        if told < MAX_TOLD:
                            what = "%.200s of %s of %s is not enforced: %.200s"
                            logger.warning(what, annotation, part.name, name, error)
                        told += 1
                        continue
                    found.setdefault(target, []).append((position, index))
            for target, pairs in found.items():
                yield Reference(name, tuple(a for a, _ in pairs), target, tuple(b for _, b in pairs))

    @staticmethod
    def _target(p4info: p4info_pb2.P4Info, target: str, field: str) -> tuple[str, int]:
        """Return the named table and the position of its field; raises ValueError."""
        if target == MULTICAST_GROUPS and field == _GROUP_ID:
            return MULTICAST_GROUPS, 0
        for table in p4info.tables:
            if target in (table.preamble.name, table.preamble.alias):
                names = [field.name for field in table.match_fields]
                if field not in names:
                    raise ValueError(f"{target} has no key {field}; it has {', '.join(names)}")
                return table.preamble.name, names.index(field)
        raise ValueError(f"there is no table {target}")


def _keys(table: ir.Table) -> list[ir.Key]:
    return [key for key in table.keys if key.match_kind != "selector"]


def _at(values: Sequence[int | None], positions: tuple[int, ...]) -> tuple[int | None, ...]:
    return tuple(values[position] for position in positions)


def _is_same(other: TableEntry, entry: TableEntry | None) -> bool:
    return entry is None or (other.matches, other.priority) == (entry.matches, entry.priority)
