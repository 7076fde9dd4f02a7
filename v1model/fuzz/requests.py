"""Hostile P4Runtime requests against the server's code, without a socket.

They have entities of every kind, filled at random with ids that exist. The bytes of some requests are changed
at random.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError

from v1model.dataplane import DataPlaneError
from v1model.p4info import p4info
from v1model.p4runtime.batch import Batch
from v1model.p4runtime.pipeline import Pipeline
from v1model.p4runtime.schema import Schema
from v1model.protos.p4.v1 import p4runtime_pb2

if TYPE_CHECKING:
    import random

    from v1model.dataplane import DataPlane
    from v1model.protos.p4.config.v1 import p4info_pb2

MAX_DEPTH = 7
UPDATES = 8  # in a request
NUMBERS = (0, 1, 2, 3, 7, 16, 510, 512, 65535, 1 << 16, (1 << 31) - 1)
BYTES = (b"", b"\0", b"\1", b"\xff\xff", b"uplink", bytes(17))
STRUCTURED = 0.7  # share of the requests; the others have changed bytes
KNOWN = 0.5  # share of entities that the switch holds, unchanged or with a field changed
ENTITY_KINDS = tuple(p4runtime_pb2.Entity.DESCRIPTOR.fields_by_name)
HELD = ("table_entry", "action_profile_member", "action_profile_group", "packet_replication_engine_entry")


class MessageMaker:
    """Maker of random messages; ids are often those of the P4Info, to get past more checks."""

    def __init__(self, info: p4info_pb2.P4Info, source: random.Random) -> None:
        kinds: tuple[Any, ...] = (
            info.tables, info.actions, info.counters, info.direct_counters, info.meters, info.direct_meters,
            info.registers, info.digests, info.action_profiles, info.value_sets,
        )  # fmt: skip
        self._ids = [item.preamble.id for kind in kinds for item in kind] or [1]
        self._tables = list(info.tables)
        self._random = source
        self.known: list[p4runtime_pb2.Entity] = []

    def entity(self) -> p4runtime_pb2.Entity:
        entity = p4runtime_pb2.Entity()
        if self.known and self._random.random() < KNOWN:
            entity.CopyFrom(self._random.choice(self.known))
            if self._random.random() < KNOWN:
                self._change(entity)
            return entity
        kind = self._random.choice(ENTITY_KINDS)
        self._fill(getattr(entity, kind), 0)
        if kind == "table_entry" and self._tables:
            self._make_plausible(entity.table_entry)
        return entity

    def request(self) -> p4runtime_pb2.WriteRequest:
        request = p4runtime_pb2.WriteRequest()
        for _ in range(self._random.randint(1, UPDATES)):
            request.updates.add(type=self._random.randrange(4), entity=self.entity())
        return request

    def stream_message(self) -> p4runtime_pb2.StreamMessageRequest:
        """Return a PacketOut or an acknowledgement."""
        message = p4runtime_pb2.StreamMessageRequest()
        self._fill(getattr(message, self._random.choice(("packet", "digest_ack"))), 0)
        return message

    def changed(self, message: p4runtime_pb2.WriteRequest) -> bytes:
        """Return the message's bytes after a few changes, perhaps no message any more."""
        data = bytearray(message.SerializeToString())
        for _ in range(self._random.randint(1, 6)):
            data[self._random.randrange(len(data))] = self._random.getrandbits(8)
        return bytes(data)

    def _make_plausible(self, entry: p4runtime_pb2.TableEntry) -> None:
        table = self._random.choice(self._tables)
        entry.table_id = table.preamble.id
        if table.action_refs:
            entry.action.action.action_id = self._random.choice(table.action_refs).id
        for match, field in zip(entry.match, table.match_fields, strict=False):
            match.field_id = field.id

    def _change(self, message: Any) -> None:
        """Change one scalar somewhere in the message."""
        field, value = self._random.choice(message.ListFields() or [(None, None)])
        if field is None or (field.is_repeated and field.type != FieldDescriptor.TYPE_MESSAGE):
            return
        if field.type == FieldDescriptor.TYPE_MESSAGE:
            self._change(self._random.choice(value) if field.is_repeated else value)
        else:
            setattr(message, field.name, self._scalar(field))

    def _fill(self, message: Any, depth: int) -> None:
        message.SetInParent()
        for field in message.DESCRIPTOR.fields:
            if self._random.random() < 0.4 or depth > MAX_DEPTH:
                continue
            if field.type != FieldDescriptor.TYPE_MESSAGE:
                value = self._scalar(field)
                if field.is_repeated:
                    getattr(message, field.name).append(value)
                else:
                    setattr(message, field.name, value)
            elif field.is_repeated:
                for _ in range(self._random.randrange(3)):
                    self._fill(getattr(message, field.name).add(), depth + 1)
            elif not field.message_type.full_name.startswith("google."):
                self._fill(getattr(message, field.name), depth + 1)

    def _scalar(self, field: FieldDescriptor) -> Any:
        if field.type == FieldDescriptor.TYPE_BYTES:
            return self._random.choice(BYTES)
        if field.type == FieldDescriptor.TYPE_STRING:
            return self._random.choice(("", "x"))
        if field.type == FieldDescriptor.TYPE_BOOL:
            return self._random.random() < 0.3
        if field.name.endswith("_id") and self._random.random() < 0.7:
            return self._random.choice(self._ids)
        signed = field.type in (FieldDescriptor.TYPE_INT32, FieldDescriptor.TYPE_INT64)
        return self._random.choice((*NUMBERS, -1) if signed else NUMBERS)


class RequestFuzzer:
    """Sender of requests to a data plane's pipeline. An exception that is no P4Runtime error is a report."""

    def __init__(self, data_plane: DataPlane, source: random.Random) -> None:
        info = p4info(data_plane.program)
        self._pipeline = Pipeline(p4runtime_pb2.ForwardingPipelineConfig(p4info=info), data_plane)
        self._writer = data_plane.entry_writer(Schema(info, data_plane.program).wire_tables())
        self._maker, self._random = MessageMaker(info, source), source
        self._maker.known = list(self._pipeline.read_entities(map(_wildcard, HELD)))

    def run(self, count: int) -> int:
        """Write and read back `count` requests; returns how many of their updates were accepted."""
        accepted = 0
        for _ in range(count):
            request: p4runtime_pb2.WriteRequest | None = self._maker.request()
            if request is not None and self._random.random() > STRUCTURED:
                data = self._maker.changed(request)
                self._writer.write(data, 0, self._writer.skip(data, 0))
                request = _parsed(data)
            if request is not None:
                batch = Batch(request)
                self._pipeline.write_batch(batch, len(batch.updates))
                accepted += batch.results.count(None)
                self._read([update.entity for update in request.updates])
            self._converse()
        return accepted

    def _converse(self) -> None:
        """Send one message of a controller's stream."""
        message = self._maker.stream_message()
        try:
            if message.HasField("packet"):
                self._pipeline.packet_out(message.packet)
            else:
                self._pipeline.acknowledge_digest(message.digest_ack)
        except DataPlaneError:
            pass

    def _read(self, entities: list[p4runtime_pb2.Entity]) -> None:
        for entity in entities:
            try:
                for response in self._pipeline.read([entity]):
                    assert response.IsInitialized()
            except DataPlaneError:
                continue


def _parsed(data: bytes) -> p4runtime_pb2.WriteRequest | None:
    try:
        return p4runtime_pb2.WriteRequest.FromString(data)
    except DecodeError:
        return None


def _wildcard(kind: str) -> p4runtime_pb2.Entity:
    entity = p4runtime_pb2.Entity()
    getattr(entity, kind).SetInParent()
    return entity
