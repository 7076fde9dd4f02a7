"""simple_switch_CLI's table commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from v1model.dataplane import MAX_PRIORITY, TableEntry
from v1model.ir import ActionCall
from v1model.remote.values import parse_match, parse_value, show_match
from v1model.stf.names import find
from v1model.stf.parser import parse_number

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from v1model import ir
    from v1model.dataplane import Matches
    from v1model.remote.data_plane import RemoteDataPlane

PRIORITY_KINDS = ("ternary", "range", "optional")
NS_PER_MS = 1_000_000
FIRST_ID = 1  # P4Runtime's smallest id of a member or group; BMv2's handles count from 0


class TableCommands:
    """P4Runtime knows entries by their keys; handles count here, what the table holds when it is first
    named, then what is added."""

    def __init__(self, data_plane: RemoteDataPlane, say: Callable[[str], None]) -> None:
        self._data_plane, self._say = data_plane, say
        self._handles: dict[str, dict[int, TableEntry]] = {}
        self._next: dict[str, int] = {}
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
        return find(self._data_plane.program.tables, name, "table")

    def _entries(self, table: str) -> dict[int, TableEntry]:
        if table not in self._handles:
            self._handles[table] = dict(enumerate(self._data_plane.entries(table)))
            self._next[table] = len(self._handles[table])
        return self._handles[table]

    def call(self, table: ir.Table, name: str, texts: Sequence[str]) -> ActionCall:
        names = {action.action for action in table.actions}
        action = find([a for a in self._data_plane.program.actions if a.name in names], name, "action")
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
        """table_add TABLE ACTION MATCH... => PARAMETER... [PRIORITY]"""
        table = self._table(words[0])
        matches, params, priority = self._split(table, words[2:])
        try:
            call = self.call(table, words[1], params)
        except ValueError as error:
            is_last = f"; the last number, {words[-1]}, is the priority" if priority else ""
            raise ValueError(f"{error}{is_last}") from None
        self._insert(TableEntry(table.name, matches, call, priority))

    def add_indirect(self, words: Sequence[str], kind: str) -> None:
        """table_indirect_add TABLE MATCH... => HANDLE [PRIORITY]; `kind`: the handle's, member or group."""
        table = self._table(words[0])
        if not table.implementation:
            raise ValueError(f"table {table.name} has no action profile: table_add is for it")
        matches, handles, priority = self._split(table, words[1:])
        if len(handles) != 1:
            raise ValueError(f"one handle of a {kind} is expected behind =>, not {len(handles)}")
        own_id = parse_number(handles[0]) + FIRST_ID
        if kind == "member":
            self._insert(TableEntry(table.name, matches, None, priority, member=own_id))
        else:
            self._insert(TableEntry(table.name, matches, None, priority, group=own_id))

    def _split(self, table: ir.Table, words: Sequence[str]) -> tuple[Matches, list[str], int]:
        """MATCH... => WORD... [PRIORITY]: what stands before, behind, and P4Runtime's priority."""
        rest = list(words)
        split = rest.index("=>") if "=>" in rest else len(rest)
        matches, params = rest[:split], rest[split + 1 :]
        keys = _match_keys(table)
        if len(matches) != len(keys):
            raise ValueError(f"table {table.name} has {len(keys)} keys, {len(matches)} matches are given")
        priority = 0
        if any(key.match_kind in PRIORITY_KINDS for key in keys):
            if not params:
                raise ValueError("this table's entries need a priority, behind the parameters")
            priority = MAX_PRIORITY - parse_number(params.pop())
        parsed = tuple(parse_match(key, text) for key, text in zip(keys, matches, strict=True))
        return parsed, params, priority

    def _insert(self, entry: TableEntry) -> None:
        known = self._entries(entry.table)
        self._data_plane.insert(entry)
        handle = self._next[entry.table]
        self._next[entry.table], known[handle] = handle + 1, entry
        self._say(f"Entry has been added with handle {handle}")

    def _set_default(self, words: Sequence[str]) -> None:
        table = self._table(words[0])
        params = [word for word in words[2:] if word != "=>"]
        self._data_plane.set_default(table.name, self.call(table, words[1], params))

    def _reset_default(self, words: Sequence[str]) -> None:
        self._data_plane.set_default(self._table(words[0]).name, None)

    def entries(self, table: str) -> list[TableEntry]:
        """The entries of a table that have handles."""
        return list(self._entries(table).values())

    def located(self, table: str, text: str) -> tuple[int, TableEntry]:
        handle, known = parse_number(text), self._entries(table)
        if handle not in known:
            raise ValueError(f"table {table} has no entry with handle {handle}; table_dump shows them")
        return handle, known[handle]

    def _modify(self, words: Sequence[str]) -> None:
        """table_modify TABLE ACTION HANDLE [=> PARAMETER...]"""
        table = self._table(words[0])
        handle, entry = self.located(table.name, words[2])
        call = self.call(table, words[1], [word for word in words[3:] if word != "=>"])
        changed = TableEntry(table.name, entry.matches, call, entry.priority)
        self._data_plane.modify(changed)
        self._handles[table.name][handle] = changed

    def _delete(self, words: Sequence[str]) -> None:
        table = self._table(words[0])
        handle, entry = self.located(table.name, words[1])
        self._data_plane.delete(entry)
        del self._handles[table.name][handle]

    def _clear(self, words: Sequence[str]) -> None:
        table = self._table(words[0])
        for handle, entry in list(self._entries(table.name).items()):
            if not entry.is_const:
                self._data_plane.delete(entry)
                del self._handles[table.name][handle]

    def _dump(self, words: Sequence[str]) -> None:
        table = self._table(words[0])
        for handle, entry in self._entries(table.name).items():
            self._say_entry(table, handle, entry)

    def _say_entry(self, table: ir.Table, handle: int, entry: TableEntry) -> None:
        keys = zip(_match_keys(table), entry.matches, strict=True)
        shown = ", ".join(f"{key.name}: {show_match(match)}" for key, match in keys)
        priority = f", priority {MAX_PRIORITY - entry.priority}" if entry.priority else ""
        self._say(f"{handle}: {shown}{priority} => {_shown_action(entry)}")

    def _dump_entry(self, words: Sequence[str]) -> None:
        table = self._table(words[0])
        self._say_entry(table, *self.located(table.name, words[1]))

    def _dump_entry_from_key(self, words: Sequence[str]) -> None:
        """table_dump_entry_from_key TABLE MATCH... [PRIORITY]"""
        table = self._table(words[0])
        count = len(_match_keys(table))
        matches, _, priority = self._split(table, [*words[1 : count + 1], "=>", *words[count + 1 :]])
        for handle, entry in self._entries(table.name).items():
            if (entry.matches, entry.priority) == (matches, priority):
                self._say_entry(table, handle, entry)
                return
        raise ValueError(f"table {table.name} has no such entry; table_dump shows them")

    def _set_timeout(self, words: Sequence[str]) -> None:
        """table_set_timeout TABLE HANDLE MILLISECONDS"""
        table = self._table(words[0])
        handle, entry = self.located(table.name, words[1])
        changed = entry._replace(idle_timeout_ns=parse_number(words[2]) * NS_PER_MS)
        self._data_plane.modify(changed)
        self._handles[table.name][handle] = changed

    def _count(self, words: Sequence[str]) -> None:
        self._say(str(len(self._entries(self._table(words[0]).name))))


def _match_keys(table: ir.Table) -> list[ir.Key]:
    return [key for key in table.keys if key.match_kind != "selector"]


def _shown_action(entry: TableEntry) -> str:
    if entry.action is not None:
        return f"{entry.action.action}({', '.join(map(hex, entry.action.arguments))})"
    if entry.member is not None:
        return f"member {entry.member - FIRST_ID}"
    return f"group {entry.group - FIRST_ID}" if entry.group is not None else "an action set"
