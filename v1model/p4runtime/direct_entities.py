"""Direct counter and direct meter entries, identified by their table entry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from v1model.dataplane import DataPlaneError, TableEntry
from v1model.p4runtime.entity import (
    decode_counter,
    decode_meter,
    decode_meter_counts,
    encode_counter,
    encode_meter,
    encode_meter_counts,
    invalid,
    require_modify,
)
from v1model.protos.p4.v1 import p4runtime_pb2

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from v1model.dataplane import CounterValue, DataPlane
    from v1model.p4runtime.entity import Answer
    from v1model.p4runtime.schema import Schema
    from v1model.p4runtime.table_entities import TableHandler
    from v1model.p4runtime.tables import TableTranslator


class _DirectHandler:
    """Base of both handlers."""

    def __init__(self, schema: Schema, data_plane: DataPlane, tables: TableHandler) -> None:
        self._schema, self._data_plane, self._tables = schema, data_plane, tables

    def _entry(self, table: TableTranslator, message: p4runtime_pb2.TableEntry) -> TableEntry:
        """Return the one entry that a write names."""
        if message.is_default_action:
            raise DataPlaneError(
                "UNIMPLEMENTED", f"table {table.name}: the default entry has no direct resources"
            )
        matches, priority = table.decode_key(message)
        return self._data_plane.find(TableEntry(table.name, matches, None, priority))


class DirectCounterHandler(_DirectHandler):
    """Handler of p4.v1.DirectCounterEntry."""

    def write(self, update_type: int, message: p4runtime_pb2.DirectCounterEntry) -> None:
        require_modify(update_type, "direct counter")
        table = self._table(message.table_entry)
        entry = self._entry(table, message.table_entry)
        if message.HasField("data"):
            self._data_plane.set_direct_counter(entry, decode_counter(message.data))

    def read(self, message: p4runtime_pb2.DirectCounterEntry, answer: Answer) -> Iterator[None]:
        key = message.table_entry
        if key.match:
            table = self._table(key)
            entry = self._entry(table, key)
            _encode(table, entry, self._data_plane.direct_counter(entry), answer)
            return
        tables = [self._table(key)] if key.table_id else self._schema.tables.values()
        for table in tables:
            if table.has_direct_counter:
                for entry, value in self._data_plane.direct_counters(table.name):
                    if key.priority in (0, entry.priority):
                        _encode(table, entry, value, answer)
                    yield

    def _table(self, key: p4runtime_pb2.TableEntry) -> TableTranslator:
        table = self._schema.table(key.table_id)
        if not table.has_direct_counter:
            raise invalid(f"table {table.name} has no direct counter")
        return table


class DirectMeterHandler(_DirectHandler):
    """Handler of p4.v1.DirectMeterEntry."""

    def write(self, update_type: int, message: p4runtime_pb2.DirectMeterEntry) -> None:
        require_modify(update_type, "direct meter")
        table = self._table(message.table_entry)
        entry = self._entry(table, message.table_entry)
        config = decode_meter(message.config) if message.HasField("config") else None
        self._data_plane.set_direct_meter(entry, config)
        if message.HasField("counter_data"):
            self._data_plane.set_direct_meter_counts(entry, decode_meter_counts(message.counter_data))

    def read(self, message: p4runtime_pb2.DirectMeterEntry, answer: Answer) -> Iterator[None]:
        key = message.table_entry
        if key.table_id:
            tables = [self._table(key)]
        else:
            tables = [table for table in self._schema.tables.values() if table.has_direct_meter]
        for table in tables:
            entries: Iterable[TableEntry | None] = self._tables.select(table, key)
            if key.match:
                entries = [self._entry(table, key)]
            for entry in entries:
                if entry is not None:
                    self._read_entry(table, entry, message, answer)
                yield

    def _read_entry(
        self,
        table: TableTranslator,
        entry: TableEntry,
        request: p4runtime_pb2.DirectMeterEntry,
        answer: Answer,
    ) -> None:
        message = answer.add().direct_meter_entry
        table.encode_key(entry, message.table_entry)
        config = self._data_plane.direct_meter(entry)
        if config is not None:
            encode_meter(config, message.config)
        if request.HasField("counter_data"):
            encode_meter_counts(self._data_plane.direct_meter_counts(entry), message.counter_data)

    def _table(self, key: p4runtime_pb2.TableEntry) -> TableTranslator:
        table = self._schema.table(key.table_id)
        if not table.has_direct_meter:
            raise invalid(f"table {table.name} has no direct meter")
        return table


def _encode(table: TableTranslator, entry: TableEntry, value: CounterValue, answer: Answer) -> None:
    message = answer.add().direct_counter_entry
    table.encode_key(entry, message.table_entry)
    encode_counter(value, message.data)
