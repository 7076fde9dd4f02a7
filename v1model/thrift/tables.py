"""Tables in BMv2's Thrift service: entries by handles, default entries, direct counters and meters."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from v1model.dataplane import MAX_PRIORITY, CounterValue, DataPlaneError, TableEntry
from v1model.thrift.binary import I32, I64, STRING, ListOf, StructOf
from v1model.thrift.calls import TABLE, ThriftError, call
from v1model.thrift.handles import Handles
from v1model.thrift.values import (
    FIRST_ID,
    MATCH_PARAMS,
    NS_PER_MS,
    RATES,
    action_call,
    action_data,
    bad_key,
    match_params,
    matches_of,
    meter_config,
    named,
    rates,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from v1model import ir
    from v1model.dataplane import DataPlane
    from v1model.ir import ActionCall

COUNTER_VALUE = StructOf((I64, I64))
ACTION_ENTRY = StructOf((I32, STRING, ListOf(STRING), I32, I32))
ENTRY = StructOf((MATCH_PARAMS, StructOf((I32,)), I32, ACTION_ENTRY, StructOf((I32, I32))))
COUNTERS_DISABLED, METERS_DISABLED, AGEING_DISABLED = 4, 5, 6
INVALID_TABLE, WRONG_TYPE, DEFAULT_IS_CONST = 7, 9, 20
NO_PRIORITY = -1


class Tables:
    """Table calls. Priorities are BMv2's: the smaller wins. Handles are valid until the entry is deleted."""

    def __init__(self, switch: DataPlane) -> None:
        self._switch = switch
        self._handles = {table.name: Handles() for table in switch.program.tables}

    # --- entries

    @call(2, I64, TABLE)
    def bm_mt_get_num_entries(self, _context: int, table: bytes) -> int:
        return sum(1 for _ in self._switch.entries(self._table(table).name))

    @call(3, None, TABLE)
    def bm_mt_clear_entries(self, _context: int, table: bytes, reset_default: bool | None) -> None:
        name = self._table(table).name
        for entry in list(self._switch.entries(name)):
            if not entry.is_const:
                self._switch.delete(entry)
        self._handles[name].synchronise(self._switch.entries(name))
        if reset_default:
            self._switch.set_default(name, None)

    @call(6, I32, TABLE)
    def bm_mt_add_entry(
        self, _context: int, table: bytes, key: Any, action: bytes, data: Any, options: Any
    ) -> int:
        found = self._direct(table)
        return self._insert(found, key, options, action=self._action(found, action, data))

    @call(5, I32, TABLE)
    def bm_mt_indirect_add_entry(
        self, _context: int, table: bytes, key: Any, member: int, options: Any
    ) -> int:
        return self._insert(self._indirect(table), key, options, member=member + FIRST_ID)

    @call(5, I32, TABLE)
    def bm_mt_indirect_ws_add_entry(
        self, _context: int, table: bytes, key: Any, group: int, options: Any
    ) -> int:
        return self._insert(self._indirect(table), key, options, group=group + FIRST_ID)

    @call(5, None, TABLE)
    def bm_mt_modify_entry(self, _context: int, table: bytes, handle: int, action: bytes, data: Any) -> None:
        found = self._direct(table)
        self._modify(found, handle, action=self._action(found, action, data))

    @call(4, None, TABLE)
    def bm_mt_indirect_modify_entry(self, _context: int, table: bytes, handle: int, member: int) -> None:
        self._modify(self._indirect(table), handle, member=member + FIRST_ID)

    @call(4, None, TABLE)
    def bm_mt_indirect_ws_modify_entry(self, _context: int, table: bytes, handle: int, group: int) -> None:
        self._modify(self._indirect(table), handle, group=group + FIRST_ID)

    @call(3, None, TABLE)
    def bm_mt_delete_entry(self, _context: int, table: bytes, handle: int) -> None:
        found = self._table(table)
        self._switch.delete(self._entry(found, handle))
        self._handles[found.name].release(handle)

    bm_mt_indirect_delete_entry = bm_mt_delete_entry

    @call(4, None, TABLE)
    def bm_mt_set_entry_ttl(self, _context: int, table: bytes, handle: int, timeout_ms: int) -> None:
        found = self._table(table)
        if not found.idle_timeout:
            raise ThriftError(AGEING_DISABLED, f"table {found.name} has no support_timeout")
        entry = self._entry(found, handle)
        self._switch.modify(entry._replace(idle_timeout_ns=timeout_ms * NS_PER_MS))

    bm_mt_indirect_set_entry_ttl = bm_mt_set_entry_ttl

    @call(4, ListOf(ENTRY), TABLE)
    def bm_mt_get_entries(
        self, _context: int, table: bytes, behind: int | None, most: int | None
    ) -> list[tuple[Any, ...]]:
        """Return all entries in the order of their handles.

        weir-cli gives two arguments that BMv2 lacks, for parts that fit a message: only handles after
        `behind`, and at most `most` of them.
        """
        found = self._table(table)
        entries = self._synchronised(found)
        if behind is not None:
            known = self._handles[found.name]
            entries = islice((entry for entry in entries if known.of(entry) > behind), max(0, most or 0))
        return [self._shown(found, entry) for entry in entries]

    @call(3, ENTRY, TABLE)
    def bm_mt_get_entry(self, _context: int, table: bytes, handle: int) -> tuple[Any, ...]:
        found = self._table(table)
        return self._shown(found, self._entry(found, handle))

    @call(4, ENTRY, TABLE)
    def bm_mt_get_entry_from_key(
        self, _context: int, table: bytes, key: Any, options: Any
    ) -> tuple[Any, ...]:
        found = self._table(table)
        wanted = TableEntry(found.name, matches_of(found, key), None, _priority(found, options))
        return self._shown(found, self._switch.find(wanted))

    # --- default entries

    @call(4, None, TABLE)
    def bm_mt_set_default_action(self, _context: int, table: bytes, action: bytes, data: Any) -> None:
        found = self._table(table)
        if found.default_is_const:
            raise ThriftError(DEFAULT_IS_CONST, f"the default action of table {found.name} is const")
        self._switch.set_default(found.name, self._action(found, action, data))

    @call(2, None, TABLE)
    def bm_mt_reset_default_entry(self, _context: int, table: bytes) -> None:
        self._switch.set_default(self._table(table).name, None)

    bm_mt_indirect_reset_default_entry = bm_mt_reset_default_entry

    @call(2, ACTION_ENTRY, TABLE)
    def bm_mt_get_default_entry(self, _context: int, table: bytes) -> tuple[Any, ...]:
        return self._shown_action(self._switch.default(self._table(table).name))

    # --- direct counters and meters

    @call(3, COUNTER_VALUE, TABLE)
    def bm_mt_read_counter(self, _context: int, table: bytes, handle: int) -> tuple[int, int]:
        value = self._switch.direct_counter(self._entry(self._counting(table), handle))
        return value.bytes, value.packets

    @call(2, None, TABLE)
    def bm_mt_reset_counters(self, _context: int, table: bytes) -> None:
        for entry in list(self._switch.entries(self._counting(table).name)):
            self._switch.set_direct_counter(entry, CounterValue(0, 0))

    @call(4, None, TABLE)
    def bm_mt_write_counter(self, _context: int, table: bytes, handle: int, value: Any) -> None:
        entry = self._entry(self._counting(table), handle)
        self._switch.set_direct_counter(entry, CounterValue(value[2], value[1]))

    @call(4, None, TABLE)
    def bm_mt_set_meter_rates(self, _context: int, table: bytes, handle: int, given: Any) -> None:
        self._switch.set_direct_meter(self._entry(self._metering(table), handle), meter_config(given))

    @call(3, RATES, TABLE)
    def bm_mt_get_meter_rates(self, _context: int, table: bytes, handle: int) -> list[tuple[float, int]]:
        return rates(self._switch.direct_meter(self._entry(self._metering(table), handle)))

    # --- what calls name

    def _table(self, name: bytes) -> ir.Table:
        table = named(self._switch.program.tables, name)
        if table is None:
            raise ThriftError(INVALID_TABLE, f"no table {name!r}")
        return table

    def _direct(self, name: bytes) -> ir.Table:
        table = self._table(name)
        if table.implementation:
            raise ThriftError(WRONG_TYPE, f"table {table.name} has an action profile")
        return table

    def _indirect(self, name: bytes) -> ir.Table:
        table = self._table(name)
        if not table.implementation:
            raise ThriftError(WRONG_TYPE, f"table {table.name} has no action profile")
        return table

    def _counting(self, name: bytes) -> ir.Table:
        return self._with_direct(name, "direct_counter", COUNTERS_DISABLED)

    def _metering(self, name: bytes) -> ir.Table:
        return self._with_direct(name, "direct_meter", METERS_DISABLED)

    def _with_direct(self, name: bytes, kind: str, code: int) -> ir.Table:
        table = self._table(name)
        kinds = {extern.name: extern.kind for extern in self._switch.program.externs}
        if kind not in (kinds[direct] for direct in table.direct):
            raise ThriftError(code, f"table {table.name} has no {kind}")
        return table

    def _action(self, table: ir.Table, name: bytes, data: Any) -> ActionCall:
        names = {action.action for action in table.actions}
        actions = [action for action in self._switch.program.actions if action.name in names]
        return action_call(actions, name, data)

    # --- entries and their handles

    def _insert(
        self,
        table: ir.Table,
        key: Any,
        options: Any,
        action: ActionCall | None = None,
        member: int | None = None,
        group: int | None = None,
    ) -> int:
        matches = matches_of(table, key)
        entry = TableEntry(table.name, matches, action, _priority(table, options), member, group)
        self._switch.insert(entry)
        return self._handles[table.name].of(entry)

    def _modify(
        self,
        table: ir.Table,
        handle: int,
        action: ActionCall | None = None,
        member: int | None = None,
        group: int | None = None,
    ) -> None:
        entry = self._entry(table, handle)
        self._switch.modify(entry._replace(action=action, member=member, group=group))

    def _entry(self, table: ir.Table, handle: int) -> TableEntry:
        """Return the current entry with this handle."""
        known = self._handles[table.name]
        if handle not in known:
            known.synchronise(self._switch.entries(table.name))
        matches, priority = known.key(handle)
        try:
            return self._switch.find(TableEntry(table.name, matches, None, priority))
        except DataPlaneError:
            known.release(handle)
            raise

    def _synchronised(self, table: ir.Table) -> Iterator[TableEntry]:
        entries = list(self._switch.entries(table.name))
        self._handles[table.name].synchronise(entries)
        return iter(sorted(entries, key=self._handles[table.name].of))

    def _shown(self, table: ir.Table, entry: TableEntry) -> tuple[Any, ...]:
        life = None
        if table.idle_timeout:
            life = entry.idle_timeout_ns // NS_PER_MS, self._switch.idle_time_ns(entry) // NS_PER_MS
        options = (MAX_PRIORITY - entry.priority if entry.priority else NO_PRIORITY,)
        handle = self._handles[table.name].of(entry)
        return match_params(table, entry.matches), options, handle, self._shown_target(entry), life

    def _shown_target(self, entry: TableEntry) -> tuple[Any, ...]:
        if entry.action is not None:
            return self._shown_action(entry.action)
        if entry.member is not None:
            return 2, None, None, _handle(entry.member), None
        return 3, None, None, None, _handle(entry.group or FIRST_ID)

    def _shown_action(self, action: ActionCall) -> tuple[Any, ...]:
        return 1, action.action, action_data(self._switch.program.actions, action), None, None


def _handle(own_id: int) -> int:
    """Return BMv2's handle of a member or group as a signed number: those of action sets have large ids."""
    handle = own_id - FIRST_ID
    return handle - (1 << 32) if handle >> 31 else handle


def _priority(table: ir.Table, options: Any) -> int:
    """Return P4Runtime's priority, where the larger wins, for BMv2's."""
    if all(key.match_kind in ("exact", "lpm", "selector") for key in table.keys):
        return 0
    given = (options or {}).get(1) or 0
    if not 0 <= given < MAX_PRIORITY:
        raise bad_key(f"a priority of {given}")
    return MAX_PRIORITY - int(given)
