"""Table entries as the control plane sees them.

The runtime has them, by handle. This module stores what the runtime does not need of an entry: a member's id,
an idle timeout in ns, the spelling of a match.
"""

from __future__ import annotations

import ctypes
import struct
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from v1model.backend.tables import data_bytes, table_size
from v1model.binding.actions import ActionPacker
from v1model.binding.library import EXISTS, NO_HANDLE, Handle
from v1model.binding.matches import KeyPacker
from v1model.dataplane import CounterValue, DataPlaneError, MeterConfig, MeterCounts, TableEntry, placed

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    CountsCall = Callable[[Any, int], Any]

    from v1model.binding.profiles import Profiles
    from v1model.ir import ActionCall, ConstEntry, Program, Table

TARGET_ACTION, TARGET_MEMBER, TARGET_GROUP = range(3)  # enum target_kind
_WHAT = struct.Struct("=3I")
METER_RATES = struct.Struct("=4Q")


@dataclass(slots=True)
class Installed:
    entry: TableEntry
    meter: MeterConfig | None = None


@dataclass(slots=True)
class TableState:
    number: int
    table: Table
    keys: KeyPacker
    actions: ActionPacker
    data_bytes: int
    installed: dict[int, Installed] = field(default_factory=dict)
    """Entries by handle, without those that were written as P4Runtime's bytes, which only the runtime has."""
    default: ActionCall | None = None  # None: the program's
    default_meter: MeterConfig | None = None


class Tables:
    """All tables of a switch. Not thread-safe: Switch holds a lock."""

    def __init__(self, handle: Handle, program: Program, profiles: Profiles) -> None:
        self._handle, self._profiles = handle, profiles
        self._states = {
            table.name: TableState(number, table, KeyPacker(table), ActionPacker(program, table, size), size)
            for number, table in enumerate(program.tables)
            for size in (data_bytes(program, table),)
        }
        self._by_number = [self._states[table.name] for table in program.tables]
        self.load_initial()

    def load_initial(self) -> None:
        """Load the entries and default actions that the program itself brings."""
        for state in self._states.values():
            state.installed.clear()
            state.default_meter = None
            self._set_default(state, None)
            for entry in state.table.entries:
                self._install(state, _initial_entry(state.table, entry))

    def _state(self, name: str) -> TableState:
        if name not in self._states:
            raise DataPlaneError(
                "NOT_FOUND", f"no table {name}; there are: {', '.join(self._states) or 'none'}"
            )
        return self._states[name]

    def _located(self, entry: TableEntry) -> tuple[TableState, int]:
        """Return the entry's table state and handle; raises DataPlaneError if there is none."""
        state = self._state(entry.table)
        packed = state.keys.pack(entry.matches, entry.priority)
        handle = self._handle.call("find", state.number, packed.key, packed.mask, packed.priority)
        if handle == NO_HANDLE:
            raise DataPlaneError("NOT_FOUND", f"table {entry.table}: no such entry")
        return state, handle

    def _installed(self, state: TableState, handle: int) -> Installed:
        """Return what is known of an existing entry."""
        if (known := state.installed.get(handle)) is not None:
            return known
        entry = self._unpack(state, handle)
        assert entry is not None
        return Installed(entry)

    def _keep(self, state: TableState, handle: int) -> Installed:
        """Return what is known of an entry and store it, so that its deletion must come here."""
        found = state.installed[handle] = self._installed(state, handle)
        self._handle.call("keep", state.number, handle)
        return found

    def _unpack(self, state: TableState, handle: int) -> TableEntry | None:
        """Return the runtime's entry with an action of its own, or None if there is none."""
        what = (ctypes.c_int32 * 2)()
        data = ctypes.create_string_buffer(state.data_bytes + 2 * state.keys.bytes)
        if not self._handle.call("read_entry", state.number, handle, what, data):
            return None
        key, mask = state.data_bytes, state.data_bytes + state.keys.bytes
        matches = state.keys.unpack(data.raw[key:mask], data.raw[mask:])
        return TableEntry(
            state.table.name,
            matches,
            state.actions.unpack(what[0], data.raw),
            what[1] if state.keys.has_priority else 0,
        )

    def _handles(self, state: TableState) -> list[int]:
        """Return the handles of all entries."""
        count = self._handle.call("in_use", state.number, None, 0)
        in_use = ctypes.create_string_buffer(count)
        self._handle.call("in_use", state.number, in_use, count)
        return [handle for handle, used in enumerate(in_use.raw) if used]

    # --- entries -------------------------------------------------------------------------------

    def insert(self, entry: TableEntry) -> None:
        state = self._state(entry.table)
        _refuse_const(state.table)
        self._install(state, entry._replace(is_const=False) if entry.is_const else entry)

    def _install(self, state: TableState, entry: TableEntry) -> None:
        packed = state.keys.pack(entry.matches, entry.priority)
        what, data = self._target(state, entry)
        idle_us = entry.idle_timeout_ns // 1000
        handle = self._handle.call(
            "insert", state.number, packed.key, packed.mask, packed.priority, what, data, idle_us
        )
        if handle == EXISTS:
            raise DataPlaneError("ALREADY_EXISTS", f"table {entry.table}: the entry exists already")
        if handle == NO_HANDLE:
            raise DataPlaneError(
                "RESOURCE_EXHAUSTED", f"table {entry.table} is full: {table_size(state.table)} entries"
            )
        state.installed[handle] = Installed(_with_places(state.table, entry))
        self._profiles.hold(state.table.implementation, entry)

    def _target(self, state: TableState, entry: TableEntry) -> tuple[bytes, bytes | None]:
        """Return the `what` and `data` of weir_insert."""
        implementation = state.table.implementation
        if implementation and entry.member is not None:
            handle = self._profiles.member_handle(implementation, entry.member)
            return _WHAT.pack(TARGET_MEMBER, 0, handle), None
        if implementation and entry.group is not None:
            handle = self._profiles.group_handle(implementation, entry.group)
            return _WHAT.pack(TARGET_GROUP, 0, handle), None
        if entry.action is None or implementation:
            wanted = "a member or group" if implementation else "an action"
            raise DataPlaneError("INVALID_ARGUMENT", f"table {entry.table}: the entry needs {wanted}")
        number, data = state.actions.pack(entry.action)
        return _WHAT.pack(TARGET_ACTION, number, 0), data

    def modify(self, entry: TableEntry) -> None:
        state, handle = self._located(entry)
        found = self._installed(state, handle)
        _refuse_const(state.table, found.entry)
        what, data = self._target(state, entry)
        self._handle.call("modify", state.number, handle, what, data, entry.idle_timeout_ns // 1000)
        self._profiles.hold(state.table.implementation, entry)
        self._profiles.release(state.table.implementation, found.entry)
        state.installed[handle] = Installed(_with_places(state.table, entry), found.meter)

    def delete(self, entry: TableEntry) -> None:
        state, handle = self._located(entry)
        found = state.installed.get(handle)
        _refuse_const(state.table, found.entry if found else None)
        self._handle.call("delete", state.number, handle)
        if found:
            del state.installed[handle]
            self._profiles.release(state.table.implementation, found.entry)

    def find(self, entry: TableEntry) -> TableEntry:
        return self._installed(*self._located(entry)).entry

    def handles(self, table: str) -> list[int]:
        """Return the handles of all entries; `entry` returns each."""
        return self._handles(self._state(table))

    def entry(self, table: str, handle: int) -> TableEntry | None:
        """Return the entry, None if it was deleted."""
        return self._entry(self._state(table), handle)

    def by_handle(self, number: int, handle: int) -> TableEntry | None:
        return self._entry(self._by_number[number], handle)

    def _entry(self, state: TableState, handle: int) -> TableEntry | None:
        known = state.installed.get(handle)
        return known.entry if known else self._unpack(state, handle)

    def has_idle_timeouts(self) -> bool:
        return any(state.table.idle_timeout and state.installed for state in self._by_number)

    def idle_time_ns(self, entry: TableEntry) -> int:
        state, handle = self._located(entry)
        return int(self._handle.call("idle_us", state.number, handle)) * 1000

    # --- default actions ------------------------------------------------------------------------

    def set_default(self, table: str, action: ActionCall | None) -> None:
        state = self._state(table)
        if state.table.default_is_const and action not in (None, state.table.default_action):
            raise DataPlaneError("PERMISSION_DENIED", f"table {table}: the default action is const")
        self._set_default(state, action)

    def _set_default(self, state: TableState, action: ActionCall | None) -> None:
        call = action or state.table.default_action
        number, data = state.actions.pack(call, is_default=True)
        what = _WHAT.pack(TARGET_ACTION, number, 0)
        self._handle.call("modify", state.number, NO_HANDLE, what, data, 0)
        state.default = action

    def default(self, table: str) -> ActionCall:
        state = self._state(table)
        return state.default or state.table.default_action

    # --- direct counters and meters ------------------------------------------------------------

    def _counted(self, entry: TableEntry) -> tuple[int, int]:
        """Return (table number, handle); an entry without matches in a table with keys is the default."""
        state = self._state(entry.table)
        if not entry.matches:
            return state.number, NO_HANDLE
        return state.number, self._located(entry)[1]

    def direct_counter(self, entry: TableEntry) -> CounterValue:
        value = (ctypes.c_uint64 * 2)()
        self._handle.call("entry_counter", *self._counted(entry), value)
        return CounterValue(value[0], value[1])

    def direct_counters(self, table: str) -> list[tuple[int, CounterValue]]:
        """Return the handles of all entries with their counts at one moment."""
        state = self._state(table)
        handles = self._handles(state)
        count = max(handles, default=-1) + 1
        values = (ctypes.c_uint64 * (2 * count))()
        self._handle.call("entry_counters", state.number, values, count)
        return [(handle, CounterValue(values[2 * handle], values[2 * handle + 1])) for handle in handles]

    def set_direct_counter(self, entry: TableEntry, value: CounterValue) -> None:
        self._handle.call("set_entry_counter", *self._counted(entry), value.packets, value.bytes)

    def direct_meter(self, entry: TableEntry) -> MeterConfig | None:
        if not entry.matches:
            return self._state(entry.table).default_meter
        return self._installed(*self._located(entry)).meter

    def direct_meter_counts(self, entry: TableEntry) -> MeterCounts:
        return read_counts(partial(self._handle.call, "entry_meter_counts", *self._counted(entry)))

    def set_direct_meter_counts(self, entry: TableEntry, counts: MeterCounts) -> None:
        write_counts(partial(self._handle.call, "entry_meter_counts", *self._counted(entry)), counts)

    def set_direct_meter(self, entry: TableEntry, config: MeterConfig | None) -> None:
        number, handle = self._counted(entry)
        if self._handle.call("set_entry_meter", number, handle, pack_rates(config)):
            raise DataPlaneError("RESOURCE_EXHAUSTED", f"table {entry.table}: no memory for a meter")
        if entry.matches:
            self._keep(*self._located(entry)).meter = config
        else:
            self._state(entry.table).default_meter = config


def read_counts(call: CountsCall) -> MeterCounts:
    """Return the counts of one of the runtime's *_meter_counts."""
    values = (ctypes.c_uint64 * 6)()
    call(values, 0)
    green, yellow, red = (CounterValue(values[at], values[at + 1]) for at in (0, 2, 4))
    return MeterCounts(green, yellow, red)


def write_counts(call: CountsCall, counts: MeterCounts) -> None:
    colours = (counts.green, counts.yellow, counts.red)
    values = [number for value in colours for number in (value.packets, value.bytes)]
    call((ctypes.c_uint64 * 6)(*values), 1)


def pack_rates(config: MeterConfig | None) -> bytes | None:
    if config is None:
        return None
    rates = config.cir, config.cburst, config.pir, config.pburst
    if any(rate < 0 or rate >= 1 << 63 for rate in rates):
        raise DataPlaneError("INVALID_ARGUMENT", "a meter's rates and bursts must not be negative")
    if config.cir > config.pir:
        raise DataPlaneError("INVALID_ARGUMENT", "a meter's committed rate must not exceed its peak rate")
    return METER_RATES.pack(*rates)


def _with_places(table: Table, entry: TableEntry) -> TableEntry:
    """Return the entry with empty matches for selector keys, which may be left out."""
    if len(entry.matches) == len(table.keys):
        return entry
    return entry._replace(matches=placed(table, entry.matches))


def _initial_entry(table: Table, entry: ConstEntry) -> TableEntry:
    return TableEntry(table.name, entry.matches, entry.action, entry.priority or 0, is_const=entry.is_const)


def _refuse_const(table: Table, entry: TableEntry | None = None) -> None:
    if table.entries_are_const or (entry is not None and entry.is_const):
        raise DataPlaneError("PERMISSION_DENIED", f"table {table.name}: the entries are const")
