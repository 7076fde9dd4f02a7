"""Writing of table entries from P4Runtime's bytes directly into the runtime (runtime/write.h)."""

from __future__ import annotations

from ctypes import POINTER, Structure, byref, c_uint32
from typing import TYPE_CHECKING

from v1model.backend.layout import arguments_bytes, storage_bytes, value_width, wire_bytes
from v1model.backend.tables import data_bytes, key_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

    from v1model.binding.library import Handle
    from v1model.dataplane import WireTable
    from v1model.ir import Program, Table

# enum in runtime/write.h
MAX_FIELDS = 63
MAX_KEY_BYTES = 1024
MAX_DATA_BYTES = 4096
# The field of p4.v1.FieldMatch.
KINDS = {"exact": 2, "ternary": 3, "lpm": 4, "range": 6, "optional": 7}


class _Field(Structure):
    _fields_ = [(name, c_uint32) for name in ("id", "kind", "offset", "width")]


class _Param(Structure):
    _fields_ = [(name, c_uint32) for name in ("id", "offset", "bytes", "width")]


class _Action(Structure):
    _fields_ = [(name, c_uint32) for name in ("id", "number", "first_param", "params")]


class _Table(Structure):
    _fields_ = [
        (name, c_uint32)
        for name in (
            "id", "number", "needs_priority", "is_lpm", "may_modify",
            "first_field", "fields", "first_action", "actions",
        )
    ]  # fmt: skip


class _Schema(Structure):
    _fields_ = [
        ("tables", POINTER(_Table)),
        ("fields", POINTER(_Field)),
        ("actions", POINTER(_Action)),
        ("params", POINTER(_Param)),
        ("table_count", c_uint32),
    ]


class EntryWriter:
    """Writer of entries of these tables. `lock` is the switch's: one control call at a time."""

    def __init__(
        self,
        handle: Handle,
        lock: AbstractContextManager[object],
        program: Program,
        tables: Sequence[WireTable],
    ) -> None:
        self._handle, self._lock = handle, lock
        self._fields: list[_Field] = []
        self._params: list[_Param] = []
        self._actions: list[_Action] = []
        self._tables: list[_Table] = []
        numbers = {table.name: (number, table) for number, table in enumerate(program.tables)}
        for wire in tables:
            number, table = numbers[wire.name]
            if _is_plain(program, table, wire):
                self._describe(program, number, table, wire)
        self._schema = _Schema(
            (_Table * len(self._tables))(*self._tables),
            (_Field * len(self._fields))(*self._fields),
            (_Action * len(self._actions))(*self._actions),
            (_Param * len(self._params))(*self._params),
            len(self._tables),
        )

    def write(self, request: bytes, cursor: int, most: int) -> tuple[int, int]:
        """Write entries, see `dataplane.EntryWriter.write`."""
        at = c_uint32(cursor)
        with self._lock:
            done = self._handle.call("write", byref(self._schema), request, len(request), byref(at), most)
        return done, at.value

    def skip(self, request: bytes, cursor: int) -> int:
        """Skip an update, see `dataplane.EntryWriter.skip`."""
        return int(self._handle.library.skip_update(request, len(request), cursor))

    def _describe(self, program: Program, number: int, table: Table, wire: WireTable) -> None:
        kinds = {key.match_kind for key in table.keys}
        needs_priority = bool(kinds & {"ternary", "range", "optional"})
        first_field, offset = len(self._fields), 0
        for key, (field_id, kind) in zip(table.keys, wire.fields, strict=True):
            width = value_width(key.expression.type)
            self._fields.append(_Field(field_id, KINDS[kind], offset, width))
            offset += wire_bytes(width)
        first_action = len(self._actions)
        places = {use.action: place for place, use in enumerate(table.actions)}
        params = {action.name: action.params for action in program.actions}
        for action_id, name, param_ids in wire.actions:
            first_param, offset = len(self._params), 0
            for param, param_id in zip(params[name], param_ids, strict=True):
                width = param.type.width
                self._params.append(_Param(param_id, offset, storage_bytes(width), width))
                offset += storage_bytes(width)
            self._actions.append(_Action(action_id, places[name], first_param, len(param_ids)))
        is_lpm = "lpm" in kinds and not needs_priority
        self._tables.append(
            _Table(
                wire.id, number, needs_priority, is_lpm, wire.may_modify,
                first_field, len(wire.fields), first_action, len(wire.actions),
            )
        )  # fmt: skip


def _is_plain(program: Program, table: Table, wire: WireTable) -> bool:
    """Return whether the runtime's checks suffice for a table's entries, and its limits hold."""
    params = {action.name: action.params for action in program.actions}
    return (
        not table.implementation
        and not table.entries_are_const
        and 0 < len(table.keys) <= MAX_FIELDS
        and tuple(kind for _, kind in wire.fields) == tuple(key.match_kind for key in table.keys)
        and key_bytes(table) <= MAX_KEY_BYTES
        and data_bytes(program, table) <= MAX_DATA_BYTES
        and all(len(params[name]) <= MAX_FIELDS for _, name, _ in wire.actions)
        and all(arguments_bytes(params[name]) <= data_bytes(program, table) for _, name, _ in wire.actions)
    )
