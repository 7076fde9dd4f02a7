"""Handles of table entries, by which simple_switch_CLI's commands name them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from v1model.dataplane import MAX_PRIORITY, DataPlaneError, TableEntry
from v1model.thrift.binary import I32, STRING, StructOf
from v1model.thrift.calls import ThriftError
from v1model.thrift.handles import Handles
from v1model.thrift.values import FIRST_ID, MATCH_PARAMS, NS_PER_MS, action_call, match_params, matches_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from v1model import ir
    from v1model.dataplane import Matches
    from v1model.remote.data_plane import RemoteDataPlane
    from v1model.remote.own_calls import OwnCalls

Result = TypeVar("Result")

ENTRIES_AT_ONCE = 4096  # some 500 KB
_CONTEXT = (I32, 0)
_OPTIONS = StructOf((I32,))
# Fields of BMv2's entries: the key, the options (whose first field is the priority), the handle, the action,
# member or group, and the life (whose first field is the timeout).
_KEY, _PRIORITY_IN, _HANDLE, _DOES, _LIFE = 1, 2, 3, 4, 5
_ACTION, _DATA, _MEMBER, _GROUP = 2, 3, 4, 5


class SessionHandles:
    """Handles that are valid as long as this object."""

    def __init__(self, data_plane: RemoteDataPlane) -> None:
        self._data_plane = data_plane
        self._tables: dict[str, Handles] = {}

    def of(self, table: ir.Table, entry: TableEntry) -> int:
        """Return the handle of an entry that was inserted."""
        return self._known(table).of(entry)

    def key(self, table: ir.Table, handle: int) -> tuple[Matches, int]:
        """Return matches and priority of the entry with this handle. Raises DataPlaneError."""
        self.by_handle(table)
        try:
            return self._known(table).key(handle)
        except ThriftError as error:
            raise DataPlaneError("NOT_FOUND", str(error)) from None

    def by_handle(self, table: ir.Table) -> dict[int, TableEntry]:
        """Return all entries of a table by their handles, also those of other clients."""
        entries, known = list(self._data_plane.entries(table.name)), self._known(table)
        known.synchronise(entries)
        return {known.of(entry): entry for entry in entries}

    def delete(self, table: ir.Table, handle: int, entry: TableEntry) -> None:
        """Delete an entry and free its handle."""
        self._data_plane.delete(entry)
        self._known(table).release(handle)

    def _known(self, table: ir.Table) -> Handles:
        return self._tables.setdefault(table.name, Handles())


class SwitchHandles:
    """Handles that a weir-switch stores, which are valid in other sessions; else those of this session."""

    def __init__(self, calls: OwnCalls, own: SessionHandles, actions: Sequence[ir.Action]) -> None:
        self._calls, self._own, self._actions = calls, own, actions

    def of(self, table: ir.Table, entry: TableEntry) -> int:
        """Return the handle of an entry that was inserted."""
        priority = MAX_PRIORITY - entry.priority if entry.priority else 0
        key = (MATCH_PARAMS, match_params(table, entry.matches)), (_OPTIONS, (priority,))

        def read() -> int:
            return int(self._call("bm_mt_get_entry_from_key", table, *key)[_HANDLE])

        return self._or_own(read, lambda: self._own.of(table, entry))

    def key(self, table: ir.Table, handle: int) -> tuple[Matches, int]:
        """Return matches and priority of the entry with this handle. Raises DataPlaneError."""
        return self._or_own(
            lambda: _key(table, self._call("bm_mt_get_entry", table, (I32, handle))),
            lambda: self._own.key(table, handle),
        )

    def by_handle(self, table: ir.Table) -> dict[int, TableEntry]:
        """Return all entries of a table by their handles, also those of other clients."""

        def read() -> dict[int, TableEntry]:
            return {shown[_HANDLE]: self._entry(table, shown) for shown in self._shown(table)}

        return self._or_own(read, lambda: self._own.by_handle(table))

    def delete(self, table: ir.Table, handle: int, entry: TableEntry) -> None:
        """Delete an entry and free its handle."""
        self._or_own(
            lambda: self._call("bm_mt_delete_entry", table, (I32, handle)),
            lambda: self._own.delete(table, handle, entry),
        )

    def _shown(self, table: ir.Table) -> Iterator[dict[int, Any]]:
        """Yield all entries in the order of their handles, read in parts that fit a message."""
        last = -1
        while part := self._call("bm_mt_get_entries", table, (I32, last), (I32, ENTRIES_AT_ONCE)):
            yield from part
            last = part[-1][_HANDLE]

    def _entry(self, table: ir.Table, shown: dict[int, Any]) -> TableEntry:
        """Return an entry of BMv2's calls. One with its own action set has neither action nor group."""
        matches, priority = _key(table, shown)
        does, action, member, group = shown[_DOES], None, None, None
        if _ACTION in does:
            action = action_call(self._actions, does[_ACTION], does.get(_DATA, ()))
        elif _MEMBER in does:
            member = does[_MEMBER] + FIRST_ID
        elif 0 <= does[_GROUP] < MAX_PRIORITY:
            group = does[_GROUP] + FIRST_ID
        timeout_ns = shown.get(_LIFE, {}).get(1, 0) * NS_PER_MS
        return TableEntry(table.name, matches, action, priority, member, group, timeout_ns)

    def _call(self, name: str, table: ir.Table, *arguments: Any) -> Any:
        return self._calls(f"standard:{name}", _CONTEXT, (STRING, table.name), *arguments)

    @staticmethod
    def _or_own(do: Callable[[], Result], instead: Callable[[], Result]) -> Result:
        """Return the result of `do`, or that of `instead` if the switch does not know the call."""
        try:
            return do()
        except DataPlaneError as error:
            if error.code != "UNIMPLEMENTED":
                raise
        return instead()


def _key(table: ir.Table, shown: dict[int, Any]) -> tuple[Matches, int]:
    """Return matches and P4Runtime's priority of an entry of BMv2's calls."""
    given = shown.get(_PRIORITY_IN, {}).get(1, -1)
    matches = matches_of(table, shown[_KEY])
    return matches, MAX_PRIORITY - given if given >= 0 and has_priority(table) else 0


def has_priority(table: ir.Table) -> bool:
    """Return whether the entries of a table have priorities."""
    return any(key.match_kind in ("ternary", "range", "optional") for key in table.keys)
