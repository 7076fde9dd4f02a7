"""Table entries with their default entries, direct counters and direct meters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from v1model.dataplane import DataPlaneError, TableEntry
from v1model.p4runtime.entity import (
    DELETE,
    INSERT,
    MODIFY,
    check_metadata,
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

    from v1model.dataplane import DataPlane, Matches
    from v1model.p4runtime.action_sets import ActionSets
    from v1model.p4runtime.entity import Answer
    from v1model.p4runtime.schema import Schema
    from v1model.p4runtime.tables import TableTranslator

    EntryKey = tuple[str, Matches, int]
    Cookies = tuple[int, bytes]  # controller_metadata (deprecated), metadata


def entry_key(entry: TableEntry) -> EntryKey:
    """Return a key that identifies an entry among all tables."""
    return entry.table, entry.matches, entry.priority


class TableHandler:
    """Handler of p4.v1.TableEntry."""

    def __init__(self, schema: Schema, data_plane: DataPlane, action_sets: ActionSets) -> None:
        self._schema, self._data_plane, self._action_sets = schema, data_plane, action_sets
        self._cookies: dict[EntryKey, Cookies] = {}  # only of entries that have some
        self._default_cookies: dict[str, Cookies] = {}

    # --- write

    def write(self, update_type: int, message: p4runtime_pb2.TableEntry) -> None:
        table = self._schema.table(message.table_id)
        if update_type != DELETE:
            _check_attributes(table, message)
        check_metadata(message.metadata)
        if message.is_const:
            raise invalid("is_const is for the server to set")
        if message.is_default_action:
            self._write_default(update_type, table, message)
            return
        if not table.fields:
            raise invalid(f"table {table.name} has no keys: only its default entry can be written")
        matches, priority = table.decode_key(message)
        key = TableEntry(table.name, matches, None, priority)
        if table.is_const:
            self._write_const(update_type, table, key, message)
        elif update_type == INSERT:
            self._insert(table, key, message)
        elif update_type == MODIFY:
            self._modify(table, key, message)
        else:
            self._delete(table, key)

    def _insert(self, table: TableTranslator, key: TableEntry, message: p4runtime_pb2.TableEntry) -> None:
        if not message.HasField("action"):
            raise invalid(f"table {table.name}: an entry to insert needs an action")
        table.check_restriction(key)
        entry = self._with_action(table, key, message)
        try:
            self._data_plane.insert(entry)
        except DataPlaneError:
            self._action_sets.discard(entry.group)
            raise
        self._action_sets.bind(entry_key(entry), entry.group)
        self._remember(entry, message)
        self._write_direct(table, entry, message, reset_meter=False)

    def _modify(self, table: TableTranslator, key: TableEntry, message: p4runtime_pb2.TableEntry) -> None:
        if message.HasField("action"):
            entry = self._with_action(table, key, message)
            try:
                self._data_plane.modify(entry)
            except DataPlaneError:
                self._action_sets.discard(entry.group)
                raise
            self._action_sets.bind(entry_key(entry), entry.group)
        else:
            found = self._data_plane.find(key)
            entry = _replaced(found, message.idle_timeout_ns)
            # With metadata too, so that the data plane does not delete or modify such an entry by itself.
            if entry != found or message.metadata or message.controller_metadata:
                self._data_plane.modify(entry)
        self._remember(entry, message)
        self._write_direct(table, entry, message, reset_meter=True)

    def _delete(self, table: TableTranslator, key: TableEntry) -> None:
        if table.references is not None:
            table.references.check_deletion(self._data_plane.find(key))
        self._data_plane.delete(key)
        self._action_sets.bind(entry_key(key), None)
        if self._cookies:
            self._cookies.pop(entry_key(key), None)

    def _write_const(
        self, update_type: int, table: TableTranslator, key: TableEntry, message: p4runtime_pb2.TableEntry
    ) -> None:
        if update_type != MODIFY or message.HasField("action"):
            raise DataPlaneError("PERMISSION_DENIED", f"the entries of {table.name} are const")
        self._write_direct(table, self._data_plane.find(key), message, reset_meter=True)

    def _write_default(
        self, update_type: int, table: TableTranslator, message: p4runtime_pb2.TableEntry
    ) -> None:
        require_modify(update_type, "default")
        if message.match or message.priority:
            raise invalid("a default entry has neither matches nor a priority")
        if table.default_is_const:
            raise DataPlaneError("PERMISSION_DENIED", f"the default action of {table.name} is const")
        if table.is_indirect:
            raise invalid(f"table {table.name} has an action profile: its default entry can't be changed")
        call = None
        if message.HasField("action"):
            if not message.action.HasField("action"):
                raise invalid(f"table {table.name}: the default entry needs an action")
            call = table.decode_action(message.action.action, as_default=True)
        self._data_plane.set_default(table.name, call)
        cookies = message.controller_metadata, message.metadata
        if call is not None and any(cookies):
            self._default_cookies[table.name] = cookies
        else:
            self._default_cookies.pop(table.name, None)

    def _with_action(
        self, table: TableTranslator, key: TableEntry, message: p4runtime_pb2.TableEntry
    ) -> TableEntry:
        """Return `key` with the action, member or group of `message`."""
        kind = message.action.WhichOneof("type")
        idle_timeout_ns = message.idle_timeout_ns
        if not table.is_indirect:
            if kind != "action":
                raise invalid(f"table {table.name} has no action profile: its entries have an action")
            call = table.decode_action(message.action.action)
            return TableEntry(table.name, key.matches, call, key.priority, idle_timeout_ns=idle_timeout_ns)
        member = group = None
        if kind == "action_profile_member_id":
            member = message.action.action_profile_member_id
        elif kind == "action_profile_group_id":
            group = message.action.action_profile_group_id
        elif kind == "action_profile_action_set":
            group = self._action_sets.create(table, message.action.action_profile_action_set)
        else:
            raise invalid(
                f"table {table.name} has an action profile: its entries have a member, group or action set"
            )
        return TableEntry(table.name, key.matches, None, key.priority, member, group, idle_timeout_ns)

    def _remember(self, entry: TableEntry, message: p4runtime_pb2.TableEntry) -> None:
        if message.metadata or message.controller_metadata:
            self._cookies[entry_key(entry)] = message.controller_metadata, message.metadata
        elif self._cookies:
            self._cookies.pop(entry_key(entry), None)

    def _write_direct(
        self,
        table: TableTranslator,
        entry: TableEntry,
        message: p4runtime_pb2.TableEntry,
        *,
        reset_meter: bool,
    ) -> None:
        if message.HasField("counter_data"):
            self._data_plane.set_direct_counter(entry, decode_counter(message.counter_data))
        if message.HasField("meter_config"):
            self._data_plane.set_direct_meter(entry, decode_meter(message.meter_config))
        elif reset_meter and table.has_direct_meter:
            self._data_plane.set_direct_meter(entry, None)
        if message.HasField("meter_counter_data"):
            counts = decode_meter_counts(message.meter_counter_data)
            self._data_plane.set_direct_meter_counts(entry, counts)

    # --- read

    def read(self, message: p4runtime_pb2.TableEntry, answer: Answer) -> Iterator[None]:
        tables = [self._schema.table(message.table_id)] if message.table_id else self._schema.tables.values()
        for table in tables:
            if message.table_id:
                _check_attributes(table, message)
            if message.is_default_action:
                self._encode_default(table, answer.add().table_entry)
                yield
            else:
                for entry in self.select(table, message):
                    if entry is not None:
                        self._encode(table, entry, message, answer.add().table_entry)
                    yield

    def select(
        self, table: TableTranslator, message: p4runtime_pb2.TableEntry
    ) -> Iterator[TableEntry | None]:
        """Yield the entries that a (wildcard) read, or a direct counter's or meter's entry, names.

        For each other entry of the table it yields None.
        """
        found: Iterable[TableEntry]
        wanted: Matches | None = None
        if message.match and (message.priority or not table.needs_priority):
            matches, priority = table.decode_key(message)
            try:
                found = [self._data_plane.find(TableEntry(table.name, matches, None, priority))]
            except DataPlaneError as error:
                if error.code != "NOT_FOUND":
                    raise
                return
        else:
            found = self._data_plane.entries(table.name)
            wanted = table.decode_matches(message.match) if message.match else None
        for entry in found:
            is_named = wanted in (None, entry.matches) and self._has_attributes(table, entry, message)
            yield entry if is_named else None

    def _has_attributes(
        self, table: TableTranslator, entry: TableEntry, message: p4runtime_pb2.TableEntry
    ) -> bool:
        """Return whether an entry has the priority, action and metadata that a read names."""
        action_id = message.action.action.action_id
        if message.priority and entry.priority != message.priority:
            return False
        if action_id and table.action_id(entry.action) != action_id:
            return False
        number, metadata = self._cookies.get(entry_key(entry), (0, b""))
        return message.controller_metadata in (0, number) and message.metadata in (b"", metadata)

    def encode_identity(
        self, table: TableTranslator, entry: TableEntry, message: p4runtime_pb2.TableEntry
    ) -> None:
        """Write key, cookies and idle timeout, which an IdleTimeoutNotification has of an entry."""
        table.encode_key(entry, message)
        if self._cookies and (cookies := self._cookies.get(entry_key(entry))):
            message.controller_metadata, message.metadata = cookies
        if entry.idle_timeout_ns:
            message.idle_timeout_ns = entry.idle_timeout_ns

    def _encode(
        self,
        table: TableTranslator,
        entry: TableEntry,
        request: p4runtime_pb2.TableEntry,
        message: p4runtime_pb2.TableEntry,
    ) -> None:
        self.encode_identity(table, entry, message)
        if entry.is_const:
            message.is_const = True
        self._encode_action(table, entry, message.action)
        if request.HasField("time_since_last_hit"):
            message.time_since_last_hit.SetInParent()
            message.time_since_last_hit.elapsed_ns = self._data_plane.idle_time_ns(entry)
        if request.HasField("counter_data") and table.has_direct_counter:
            encode_counter(self._data_plane.direct_counter(entry), message.counter_data)
        if request.HasField("meter_config") and table.has_direct_meter:
            config = self._data_plane.direct_meter(entry)
            if config is not None:
                encode_meter(config, message.meter_config)
        if request.HasField("meter_counter_data") and table.has_direct_meter:
            encode_meter_counts(self._data_plane.direct_meter_counts(entry), message.meter_counter_data)

    def _encode_action(
        self, table: TableTranslator, entry: TableEntry, message: p4runtime_pb2.TableAction
    ) -> None:
        if entry.action is not None:
            table.encode_action(entry.action, message.action)
        elif entry.member is not None:
            message.action_profile_member_id = entry.member
        elif entry.group is not None:
            action_set = self._action_sets.find(entry_key(entry))
            if action_set is None:
                message.action_profile_group_id = entry.group
            else:
                message.action_profile_action_set.CopyFrom(action_set)

    def _encode_default(self, table: TableTranslator, message: p4runtime_pb2.TableEntry) -> None:
        message.table_id = table.id
        message.is_default_action = True
        table.encode_action(self._data_plane.default(table.name), message.action.action)
        message.controller_metadata, message.metadata = self._default_cookies.get(table.name, (0, b""))


def _check_attributes(table: TableTranslator, message: p4runtime_pb2.TableEntry) -> None:
    if not table.has_idle_timeout and (message.idle_timeout_ns or message.HasField("time_since_last_hit")):
        raise invalid(f"table {table.name} does not support idle timeouts (support_timeout in the program)")
    if message.idle_timeout_ns < 0 or (message.is_default_action and message.idle_timeout_ns):
        raise invalid("idle_timeout_ns can't be negative, and a default entry has none")
    if message.HasField("counter_data") and not table.has_direct_counter:
        raise invalid(f"table {table.name} has no direct counter")
    if (message.HasField("meter_config") or message.HasField("meter_counter_data")) and not (
        table.has_direct_meter
    ):
        raise invalid(f"table {table.name} has no direct meter")


def _replaced(entry: TableEntry, idle_timeout_ns: int) -> TableEntry:
    return entry._replace(idle_timeout_ns=idle_timeout_ns, is_const=False)
