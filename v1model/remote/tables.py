"""Table commands of simple_switch_CLI."""

from __future__ import annotations

from typing import TYPE_CHECKING

from v1model.dataplane import MAX_PRIORITY, DataPlaneError, TableEntry, matched, placed
from v1model.ir import ActionCall
from v1model.remote.handles import has_priority
from v1model.remote.values import parse_match, parse_value, show_match
from v1model.stf.names import find_whole
from v1model.stf.parser import parse_number
from v1model.thrift.values import FIRST_ID, NS_PER_MS, entry_key

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from v1model import ir
    from v1model.dataplane import Matches
    from v1model.remote.data_plane import RemoteDataPlane
    from v1model.remote.handles import SessionHandles, SwitchHandles


class TableCommands:
    """Table commands. P4Runtime identifies entries by their keys; `handles` gives them numbers."""

    def __init__(
        self,
        data_plane: RemoteDataPlane,
        say: Callable[[str], None],
        handles: SessionHandles | SwitchHandles,
    ) -> None:
        self._data_plane, self._say, self._handles = data_plane, say, handles
        self.commands: dict[str, Callable[[Sequence[str]], None]] = {
            "show_tables": self._show,
            "table_info": self._info,
            "table_add": self._add,
            "table_set_default": self._set_default,
            "table_reset_default": self._reset_default,
            "table_modify": self._modify,
            "table_delete": self._delete,
            "table_clear": self._clear,
            "table_dump": self._dump,
            "table_num_entries": self._count,
            "table_show_actions": self._info,
            "table_set_timeout": self._set_timeout,
            "table_dump_entry": self._dump_entry,
            "table_dump_entry_from_key": self._dump_entry_from_key,
            "table_indirect_reset_default": self._reset_default,
        }

    def _table(self, name: str) -> ir.Table:
        return find_whole(self._data_plane.program.tables, name, "table")

    def call(self, table: ir.Table, name: str, texts: Sequence[str]) -> ActionCall:
        names = {action.action for action in table.actions}
        action = find_whole([a for a in self._data_plane.program.actions if a.name in names], name, "action")
        if len(texts) != len(action.params):
            wanted = ", ".join(param.name for param in action.params) or "none"
            raise ValueError(
                f"{action.name} takes {len(action.params)} parameters ({wanted}), not {len(texts)}"
            )
        values = [parse_value(text, p.type.width) for text, p in zip(texts, action.params, strict=True)]
        return ActionCall(action.name, tuple(values))

    def _show(self, _: Sequence[str]) -> None:
        for table in self._data_plane.program.tables:
            keys = ", ".join(f"{key.name}({key.match_kind})" for key in table.keys)
            self._say(f"{table.name:30} [{keys}]")

    def _info(self, words: Sequence[str]) -> None:
        table = self._table(words[0])
        params = {action.name: action.params for action in self._data_plane.program.actions}
        for action in table.actions:
            given = ", ".join(f"{param.name}({param.type.width})" for param in params[action.action])
            self._say(f"{action.action:30} [{given}]")

    def _add(self, words: Sequence[str]) -> None:
        """Run table_add TABLE ACTION MATCH... => PARAMETER... [PRIORITY]."""
        table = self._table(words[0])
        matches, params, priority = self._split(table, words[2:])
        try:
            call = self.call(table, words[1], params)
        except ValueError as error:
            is_last = f"; the last number, {words[-1]}, is the priority" if priority else ""
            raise ValueError(f"{error}{is_last}") from None
        self._insert(table, TableEntry(table.name, matches, call, priority))

    def add_indirect(self, words: Sequence[str], kind: str) -> None:
        """Run table_indirect_add TABLE MATCH... => HANDLE [PRIORITY]; `kind` is member or group."""
        table = self._table(words[0])
        if not table.implementation:
            raise ValueError(f"table {table.name} has no action profile: table_add is for it")
        matches, handles, priority = self._split(table, words[1:])
        if len(handles) != 1:
            raise ValueError(f"one handle of a {kind} is expected behind =>, not {len(handles)}")
        own_id = parse_number(handles[0]) + FIRST_ID
        if kind == "member":
            self._insert(table, TableEntry(table.name, matches, None, priority, member=own_id))
        else:
            self._insert(table, TableEntry(table.name, matches, None, priority, group=own_id))

    def _split(self, table: ir.Table, words: Sequence[str]) -> tuple[Matches, list[str], int]:
        """Split MATCH... => WORD... [PRIORITY] into matches, words and P4Runtime's priority."""
        rest = list(words)
        split = rest.index("=>") if "=>" in rest else len(rest)
        matches, params = rest[:split], rest[split + 1 :]
        keys = _match_keys(table)
        if len(matches) != len(keys):
            raise ValueError(f"table {table.name} has {len(keys)} keys, {len(matches)} matches are given")
        priority = 0
        if has_priority(table):
            if not params:
                raise ValueError("this table's entries need a priority, behind the parameters")
            priority = MAX_PRIORITY - parse_number(params.pop())
        parsed = [parse_match(key, text) for key, text in zip(keys, matches, strict=True)]
        return placed(table, parsed), params, priority

    def _insert(self, table: ir.Table, entry: TableEntry) -> None:
        self._data_plane.insert(entry)
        self._say(f"Entry has been added with handle {self._handles.of(table, entry)}")

    def _set_default(self, words: Sequence[str]) -> None:
        table = self._table(words[0])
        params = [word for word in words[2:] if word != "=>"]
        self._data_plane.set_default(table.name, self.call(table, words[1], params))

    def _reset_default(self, words: Sequence[str]) -> None:
        self._data_plane.set_default(self._table(words[0]).name, None)

    def entries(self, table: str) -> list[TableEntry]:
        """Return the current entries of a table."""
        return list(self._data_plane.entries(table))

    def located(self, name: str, text: str) -> tuple[int, TableEntry]:
        """Return the handle of `text`, and its current entry."""
        table, handle = self._table(name), parse_number(text)
        try:
            matches, priority = self._handles.key(table, handle)
        except DataPlaneError:
            message = f"table {table.name} has no entry with handle {handle}; table_dump shows them"
            raise ValueError(message) from None
        return handle, self._data_plane.find(TableEntry(table.name, matches, None, priority))

    def _modify(self, words: Sequence[str]) -> None:
        """Run table_modify TABLE ACTION HANDLE [=> PARAMETER...]."""
        table = self._table(words[0])
        _, entry = self.located(table.name, words[2])
        call = self.call(table, words[1], [word for word in words[3:] if word != "=>"])
        self._data_plane.modify(entry._replace(action=call, member=None, group=None))

    def _delete(self, words: Sequence[str]) -> None:
        table = self._table(words[0])
        handle, entry = self.located(table.name, words[1])
        self._handles.delete(table, handle, entry)

    def _clear(self, words: Sequence[str]) -> None:
        table = self._table(words[0])
        for entry in self.entries(table.name):
            if not entry.is_const:
                self._data_plane.delete(entry)
        self._handles.by_handle(table)  # frees the handles

    def _dump(self, words: Sequence[str]) -> None:
        table = self._table(words[0])
        for handle, entry in self._handles.by_handle(table).items():
            self._say_entry(table, handle, entry)
        if (default := self._data_plane.default(table.name)) is not None:
            self._say(f"default => {_shown_call(default)}")

    def _say_entry(self, table: ir.Table, handle: int, entry: TableEntry) -> None:
        shown = ", ".join(f"{key.name}: {show_match(match)}" for key, match in matched(table, entry.matches))
        priority = f", priority {MAX_PRIORITY - entry.priority}" if entry.priority else ""
        self._say(f"{handle}: {shown}{priority} => {_shown_action(entry)}")

    def _dump_entry(self, words: Sequence[str]) -> None:
        table = self._table(words[0])
        self._say_entry(table, *self.located(table.name, words[1]))

    def _dump_entry_from_key(self, words: Sequence[str]) -> None:
        """Run table_dump_entry_from_key TABLE MATCH... [PRIORITY]."""
        table = self._table(words[0])
        count = len(_match_keys(table))
        matches, _, priority = self._split(table, [*words[1 : count + 1], "=>", *words[count + 1 :]])
        wanted = entry_key(table, matches, priority)
        for handle, entry in self._handles.by_handle(table).items():
            if entry_key(table, entry.matches, entry.priority) == wanted:
                self._say_entry(table, handle, entry)
                return
        raise ValueError(f"table {table.name} has no such entry; table_dump shows them")

    def _set_timeout(self, words: Sequence[str]) -> None:
        """Run table_set_timeout TABLE HANDLE MILLISECONDS."""
        table = self._table(words[0])
        _, entry = self.located(table.name, words[1])
        self._data_plane.modify(entry._replace(idle_timeout_ns=parse_number(words[2]) * NS_PER_MS))

    def _count(self, words: Sequence[str]) -> None:
        self._say(str(len(self.entries(self._table(words[0]).name))))


def _match_keys(table: ir.Table) -> list[ir.Key]:
    return [key for key in table.keys if key.match_kind != "selector"]


def _shown_call(call: ActionCall) -> str:
    return f"{call.action}({', '.join(map(hex, call.arguments))})"


def _shown_action(entry: TableEntry) -> str:
    if entry.action is not None:
        return _shown_call(entry.action)
    if entry.member is not None:
        return f"member {entry.member - FIRST_ID}"
    return f"group {entry.group - FIRST_ID}" if entry.group is not None else "an action set"
