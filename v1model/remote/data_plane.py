"""A switch behind P4Runtime as a `dataplane.DataPlane`, as far as simple_switch_CLI's commands need it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from v1model.dataplane import (
    CloneSession,
    CounterValue,
    DataPlaneError,
    Group,
    Member,
    MeterConfig,
    Replica,
    TableEntry,
)
from v1model.frontend import load, load_text
from v1model.midend import lower
from v1model.p4info import p4info
from v1model.p4runtime.device_config import DeviceConfig
from v1model.p4runtime.entity import decode_counter, decode_meter, encode_counter, encode_meter
from v1model.p4runtime.schema import ArrayInfo, ProfileInfo, Schema, ValueSetInfo
from v1model.p4runtime.values import encode_uint
from v1model.protos.p4.v1 import p4runtime_pb2
from v1model.thrift.values import entry_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from v1model.dataplane import Matches
    from v1model.ir import ActionCall, Program
    from v1model.remote.session import Session

INSERT, MODIFY, DELETE = (
    p4runtime_pb2.Update.INSERT,
    p4runtime_pb2.Update.MODIFY,
    p4runtime_pb2.Update.DELETE,
)


def running_program(session: Session, source: Path | None) -> tuple[Program, Schema]:
    """Return the switch's program, from its device config or from the P4 file `source`.

    `source` is for switches with a device config of another kind (BMv2). Raises DataPlaneError or
    CompileError.
    """
    config = session.pipeline()
    if source is not None:
        program = lower(load(source), str(source), has_custom_externs=True)
    else:
        sent = DeviceConfig.decode(config.p4_device_config)
        program = lower(load_text(sent.source, sent.name), sent.name, has_custom_externs=True)
    return program, Schema(config.p4info or p4info(program), program)


class RemoteDataPlane:
    """Data plane in which every call is a request. Errors are DataPlaneError."""

    def __init__(self, session: Session, program: Program, schema: Schema) -> None:
        self._session, self.program, self._schema = session, program, schema

    def statistics(self) -> dict[str, Any]:
        """Return the switch's counts of its ports and of dropped packets."""
        return self._session.statistics()

    def limit_queues(self, limits: Mapping[str, int], port: int | None, priority: int | None) -> None:
        """Limit queues, see `Switch.limit_queues`."""
        self._session.limit_queues(limits, port, priority)

    # --- tables

    def insert(self, entry: TableEntry) -> None:
        self._session.write(INSERT, self._entity(entry))

    def modify(self, entry: TableEntry) -> None:
        self._session.write(MODIFY, self._entity(entry))

    def delete(self, entry: TableEntry) -> None:
        self._session.write(
            DELETE, self._entity(TableEntry(entry.table, entry.matches, None, entry.priority))
        )

    def _entity(self, entry: TableEntry) -> p4runtime_pb2.Entity:
        entity = p4runtime_pb2.Entity()
        table = self._schema.tables_by_name[entry.table]
        table.encode_key(entry, entity.table_entry)
        entity.table_entry.idle_timeout_ns = entry.idle_timeout_ns
        if entry.action is not None:
            table.encode_action(entry.action, entity.table_entry.action.action)
        if entry.member is not None:
            entity.table_entry.action.action_profile_member_id = entry.member
        if entry.group is not None:
            entity.table_entry.action.action_profile_group_id = entry.group
        return entity

    def entries(self, name: str) -> Iterator[TableEntry]:
        entity = p4runtime_pb2.Entity()
        entity.table_entry.table_id = self._schema.tables_by_name[name].id
        return self._entries(name, entity)

    def find(self, entry: TableEntry) -> TableEntry:
        """Return the current entry with the same matches and priority."""
        table = next(table for table in self.program.tables if table.name == entry.table)
        wanted = entry_key(table, entry.matches, entry.priority)
        entity = self._entity(TableEntry(entry.table, entry.matches, None, entry.priority))
        for found in self._entries(entry.table, entity):
            if entry_key(table, found.matches, found.priority) == wanted:
                return found
        raise DataPlaneError("NOT_FOUND", f"table {entry.table} has no such entry any more")

    def _entries(self, name: str, entity: p4runtime_pb2.Entity) -> Iterator[TableEntry]:
        """Read entries of a table, without the default entry."""
        table = self._schema.tables_by_name[name]
        for read in self._session.read(entity):
            message = read.table_entry
            if message.is_default_action:
                continue
            matches, priority = table.decode_key(message)
            action, does = None, message.action
            kind = does.WhichOneof("type")
            if kind == "action":
                action = table.decode_action(does.action)
            member = does.action_profile_member_id if kind == "action_profile_member_id" else None
            group = does.action_profile_group_id if kind == "action_profile_group_id" else None
            timeout_ns = message.idle_timeout_ns
            yield TableEntry(name, matches, action, priority, member, group, timeout_ns, message.is_const)

    def default(self, name: str) -> ActionCall | None:
        """Return the default action; None if the switch does not give it."""
        table, entity = self._schema.tables_by_name[name], p4runtime_pb2.Entity()
        entity.table_entry.table_id, entity.table_entry.is_default_action = table.id, True
        for read in self._session.read(entity):
            if read.table_entry.action.WhichOneof("type") == "action":
                return table.decode_action(read.table_entry.action.action, as_default=True)
        return None

    def set_default(self, name: str, action: ActionCall | None) -> None:
        entity = p4runtime_pb2.Entity()
        table = self._schema.tables_by_name[name]
        entity.table_entry.table_id, entity.table_entry.is_default_action = table.id, True
        if action is not None:
            table.encode_action(action, entity.table_entry.action.action)
        self._session.write(MODIFY, entity)

    # --- action profiles and selectors

    def insert_member(self, profile: str, member: Member) -> None:
        self._session.write(INSERT, self._member(profile, member.member_id, member.action))

    def modify_member(self, profile: str, member: Member) -> None:
        self._session.write(MODIFY, self._member(profile, member.member_id, member.action))

    def delete_member(self, profile: str, member_id: int) -> None:
        self._session.write(DELETE, self._member(profile, member_id, None))

    def members(self, profile: str) -> Iterator[Member]:
        table = self._profile(profile).table
        for read in self._session.read(self._member(profile, 0, None)):
            message = read.action_profile_member
            yield Member(message.member_id, table.decode_action(message.action))

    def _member(self, name: str, member_id: int, action: ActionCall | None) -> p4runtime_pb2.Entity:
        entity, profile = p4runtime_pb2.Entity(), self._profile(name)
        message = entity.action_profile_member
        message.action_profile_id, message.member_id = profile.id, member_id
        if action is not None:
            profile.table.encode_action(action, message.action)
        return entity

    def insert_group(self, profile: str, group: Group) -> None:
        limit = self._profile(profile).limits.max_group_size  # 0: none
        self._session.write(INSERT, self._group(profile, replace(group, max_size=limit)))

    def modify_group(self, profile: str, group: Group) -> None:
        self._session.write(MODIFY, self._group(profile, group))

    def delete_group(self, profile: str, group_id: int) -> None:
        self._session.write(DELETE, self._group(profile, Group(group_id)))

    def groups(self, profile: str) -> Iterator[Group]:
        if not self._profile(profile).has_selector:
            return
        for read in self._session.read(self._group(profile, Group(0))):
            message = read.action_profile_group
            members = tuple((member.member_id, member.weight) for member in message.members)
            watched = tuple(
                (member.member_id, int.from_bytes(member.watch_port, "big"))
                for member in message.members
                if member.watch_port
            )
            yield Group(message.group_id, members, message.max_size, watched)

    def _group(self, name: str, group: Group) -> p4runtime_pb2.Entity:
        entity = p4runtime_pb2.Entity()
        message = entity.action_profile_group
        message.action_profile_id, message.group_id = self._profile(name).id, group.group_id
        message.max_size = group.max_size
        watched = dict(group.watched)
        for member_id, weight in group.members:
            member = message.members.add(member_id=member_id, weight=weight)
            if member_id in watched:
                member.watch_port = encode_uint(watched[member_id])
        return entity

    def _profile(self, name: str) -> ProfileInfo:
        for profile in self._schema.profiles.values():
            if profile.name == name:
                return profile
        raise DataPlaneError("NOT_FOUND", f"no table uses {name}")

    # --- parser value sets

    def value_set(self, name: str) -> tuple[Matches, ...]:
        info = self._value_set(name)
        entity = p4runtime_pb2.Entity()
        entity.value_set_entry.value_set_id = info.id
        members = self._read_one(entity).value_set_entry.members
        return tuple(info.keys.decode(member.match) for member in members)

    def set_value_set(self, name: str, members: Iterable[Matches]) -> None:
        info = self._value_set(name)
        entity = p4runtime_pb2.Entity()
        entity.value_set_entry.value_set_id = info.id
        for member in members:
            info.keys.encode(member, entity.value_set_entry.members.add().match)
        self._session.write(MODIFY, entity)

    def _value_set(self, name: str) -> ValueSetInfo:
        return next(info for info in self._schema.value_sets.values() if info.name == name)

    # --- counters, meters, registers

    def counter(self, name: str, index: int) -> CounterValue:
        return decode_counter(self._read_one(self._counter(name, index)).counter_entry.data)

    def set_counter(self, name: str, index: int, value: CounterValue) -> None:
        entity = self._counter(name, index)
        encode_counter(value, entity.counter_entry.data)
        self._session.write(MODIFY, entity)

    def _counter(self, name: str, index: int) -> p4runtime_pb2.Entity:
        entity = p4runtime_pb2.Entity()
        entity.counter_entry.counter_id = _array(self._schema.counters, name).id
        entity.counter_entry.index.index = index
        return entity

    def direct_counter(self, entry: TableEntry) -> CounterValue:
        entity = p4runtime_pb2.Entity()
        table = self._schema.tables_by_name[entry.table]
        table.encode_key(entry, entity.direct_counter_entry.table_entry)
        return decode_counter(self._read_one(entity).direct_counter_entry.data)

    def set_direct_counter(self, entry: TableEntry, value: CounterValue) -> None:
        entity = p4runtime_pb2.Entity()
        table = self._schema.tables_by_name[entry.table]
        table.encode_key(entry, entity.direct_counter_entry.table_entry)
        encode_counter(value, entity.direct_counter_entry.data)
        self._session.write(MODIFY, entity)

    def direct_meter(self, entry: TableEntry) -> MeterConfig | None:
        message = self._read_one(self._direct_meter(entry)).direct_meter_entry
        return decode_meter(message.config) if message.HasField("config") else None

    def set_direct_meter(self, entry: TableEntry, config: MeterConfig | None) -> None:
        entity = self._direct_meter(entry)
        if config is not None:
            encode_meter(config, entity.direct_meter_entry.config)
        self._session.write(MODIFY, entity)

    def _direct_meter(self, entry: TableEntry) -> p4runtime_pb2.Entity:
        entity = p4runtime_pb2.Entity()
        table = self._schema.tables_by_name[entry.table]
        table.encode_key(entry, entity.direct_meter_entry.table_entry)
        return entity

    def meter(self, name: str, index: int) -> MeterConfig | None:
        message = self._read_one(self._meter(name, index)).meter_entry
        return decode_meter(message.config) if message.HasField("config") else None

    def set_meter(self, name: str, index: int, config: MeterConfig | None) -> None:
        entity = self._meter(name, index)
        if config is not None:
            encode_meter(config, entity.meter_entry.config)
        self._session.write(MODIFY, entity)

    def _meter(self, name: str, index: int) -> p4runtime_pb2.Entity:
        entity = p4runtime_pb2.Entity()
        entity.meter_entry.meter_id = _array(self._schema.meters, name).id
        entity.meter_entry.index.index = index
        return entity

    def register(self, name: str, index: int) -> int:
        array = _array(self._schema.registers, name)
        assert array.data is not None
        return array.data.decode(self._read_one(_register(array, index)).register_entry.data)[0]

    def set_register(self, name: str, index: int, value: int) -> None:
        array = _array(self._schema.registers, name)
        assert array.data is not None
        entity = _register(array, index)
        array.data.encode([value], entity.register_entry.data)
        self._session.write(MODIFY, entity)

    def _read_one(self, entity: p4runtime_pb2.Entity) -> p4runtime_pb2.Entity:
        found = list(self._session.read(entity))
        if len(found) != 1:
            raise DataPlaneError("NOT_FOUND", "the switch has no such cell")
        return found[0]

    # --- packet replication

    def set_multicast_group(self, group: int, replicas: Iterable[Replica] | None) -> None:
        entity = p4runtime_pb2.Entity()
        message = entity.packet_replication_engine_entry.multicast_group_entry
        message.multicast_group_id = group
        exists = group in self.multicast_groups()
        for replica in replicas or ():
            message.replicas.add(egress_port=replica.port, instance=replica.instance)
        self._put(entity, exists=exists, wanted=replicas is not None)

    def multicast_groups(self) -> dict[int, tuple[Replica, ...]]:
        entity = p4runtime_pb2.Entity()
        entity.packet_replication_engine_entry.multicast_group_entry.SetInParent()
        read = [e.packet_replication_engine_entry for e in self._session.read(entity)]
        return {
            one.multicast_group_entry.multicast_group_id: _replicas(one.multicast_group_entry.replicas)
            for one in read
        }

    def set_clone_session(self, session: int, config: CloneSession | None) -> None:
        entity = p4runtime_pb2.Entity()
        message = entity.packet_replication_engine_entry.clone_session_entry
        message.session_id = session
        exists = session in self.clone_sessions()
        if config is not None:
            message.packet_length_bytes = config.packet_length_bytes
            for replica in config.replicas:
                message.replicas.add(egress_port=replica.port, instance=replica.instance)
        self._put(entity, exists=exists, wanted=config is not None)

    def clone_sessions(self) -> dict[int, CloneSession]:
        entity = p4runtime_pb2.Entity()
        entity.packet_replication_engine_entry.clone_session_entry.SetInParent()
        read = [e.packet_replication_engine_entry.clone_session_entry for e in self._session.read(entity)]
        return {
            one.session_id: CloneSession(_replicas(one.replicas), one.packet_length_bytes) for one in read
        }

    def _put(self, entity: p4runtime_pb2.Entity, *, exists: bool, wanted: bool) -> None:
        if not wanted:
            self._session.write(DELETE, entity)
        else:
            self._session.write(MODIFY if exists else INSERT, entity)


def _array(arrays: dict[int, ArrayInfo], name: str) -> ArrayInfo:
    return next(array for array in arrays.values() if array.name == name)


def _register(array: ArrayInfo, index: int) -> p4runtime_pb2.Entity:
    entity = p4runtime_pb2.Entity()
    entity.register_entry.register_id = array.id
    entity.register_entry.index.index = index
    return entity


def _replicas(messages: Sequence[p4runtime_pb2.Replica]) -> tuple[Replica, ...]:
    return tuple(
        Replica(
            int.from_bytes(one.port, "big") if one.WhichOneof("port_kind") == "port" else one.egress_port,
            one.instance,
        )
        for one in messages
    )
