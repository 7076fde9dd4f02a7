"""Forwarding pipeline: a loaded program together with the P4Info that names its parts."""

from __future__ import annotations

import threading
import time
from contextlib import nullcontext
from typing import TYPE_CHECKING

from v1model.dataplane import DataPlaneError, DigestList, Output, TableEntry
from v1model.p4runtime.action_sets import ActionSets
from v1model.p4runtime.array_entities import CounterHandler, MeterHandler, RegisterHandler
from v1model.p4runtime.digest_entities import DigestHandler
from v1model.p4runtime.direct_entities import DirectCounterHandler, DirectMeterHandler
from v1model.p4runtime.entity import Answer, EntityHandler, invalid
from v1model.p4runtime.packet_io import PacketHeader
from v1model.p4runtime.profile_entities import GroupHandler, MemberHandler
from v1model.p4runtime.references import References
from v1model.p4runtime.replication_entities import ReplicationHandler
from v1model.p4runtime.rollback import write_all_or_none
from v1model.p4runtime.schema import Schema
from v1model.p4runtime.table_entities import TableHandler
from v1model.p4runtime.value_set_entities import ValueSetHandler
from v1model.protos.p4.v1 import p4runtime_pb2

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from v1model import ir
    from v1model.dataplane import DataPlane
    from v1model.p4runtime.batch import Batch
    from v1model.protos.p4.config.v1 import p4info_pb2

    Event = Output | DigestList | TableEntry

ENTITIES_AT_ONCE = 256  # read without a pause, in some 5 ms
PIECE_S = 0.01  # limit of a piece, unless a single update or entity takes longer

_UPDATE_TYPES = frozenset(
    (p4runtime_pb2.Update.INSERT, p4runtime_pb2.Update.MODIFY, p4runtime_pb2.Update.DELETE)
)


class Pipeline:
    """Writes, reads and stream messages of one program.

    Methods raise DataPlaneError, also for a P4Info that is not the program's.
    """

    def __init__(self, config: p4runtime_pb2.ForwardingPipelineConfig, data_plane: DataPlane) -> None:
        self.config = config
        self.data_plane = data_plane
        schema = Schema(config.p4info, data_plane.program)
        self._schema = schema
        self.references = References(config.p4info, data_plane)
        for table in data_plane.program.tables:
            if self.references.concerns(table):
                schema.tables_by_name[table.name].references = self.references
        self._lock = threading.Lock()  # batches don't interleave, and no read sees half of one
        self._retired = False
        action_sets = ActionSets(data_plane)
        self._tables = TableHandler(schema, data_plane, action_sets)
        self._digests = DigestHandler(schema, data_plane)
        self._handlers: dict[str, EntityHandler] = {
            "table_entry": self._tables,
            "action_profile_member": MemberHandler(schema, data_plane, action_sets),
            "action_profile_group": GroupHandler(schema, data_plane, action_sets),
            "meter_entry": MeterHandler(schema, data_plane),
            "direct_meter_entry": DirectMeterHandler(schema, data_plane, self._tables),
            "counter_entry": CounterHandler(schema, data_plane),
            "direct_counter_entry": DirectCounterHandler(schema, data_plane, self._tables),
            "packet_replication_engine_entry": ReplicationHandler(data_plane, self.references),
            "register_entry": RegisterHandler(schema, data_plane),
            "value_set_entry": ValueSetHandler(schema, data_plane),
            "digest_entry": self._digests,
        }
        self._writer = data_plane.entry_writer(schema.wire_tables())
        self._packet_in = _packet_header("packet_in", config.p4info, data_plane.program, schema)
        self._packet_out = _packet_header("packet_out", config.p4info, data_plane.program, schema)

    def write(self, updates: Iterable[p4runtime_pb2.Update]) -> list[DataPlaneError | None]:
        """Do updates with CONTINUE_ON_ERROR; returns the result of each, in order. Others wait meanwhile."""
        with self._lock:
            self._check_in_use()
            return [self._write_one(update) for update in updates]

    def write_batch(self, batch: Batch, most: int) -> None:
        """Do the next `most` updates of a request, or fewer if they take long.

        The data plane does plain updates itself.
        """
        with self._lock:
            self._check_in_use()
            results, end = batch.results, min(len(batch.results) + most, len(batch.updates))
            until_s = time.monotonic() + PIECE_S
            while len(results) < end:
                done, batch.cursor = self._writer.write(batch.serialized, batch.cursor, end - len(results))
                results += [None] * done
                if len(results) < end:
                    results.append(self._write_one(batch.updates[len(results)]))
                    batch.cursor = self._writer.skip(batch.serialized, batch.cursor)
                if time.monotonic() >= until_s:
                    break

    def write_atomically(
        self, updates: Sequence[p4runtime_pb2.Update], *, pauses_packets: bool
    ) -> list[DataPlaneError | None]:
        """Do all updates or none of them; returns ABORTED for those that another one's error undid.

        With `pauses_packets` no packet is processed meanwhile, so each sees the state before or after.
        """
        pause = self.data_plane.paused() if pauses_packets else nullcontext()
        with self._lock:
            self._check_in_use()
            with pause:
                tables = self._schema.tables.values()
                direct = {table.id: (table.has_direct_counter, table.has_direct_meter) for table in tables}
                return write_all_or_none(updates, self._handler, self._write_one, direct)

    def read(
        self,
        entities: Iterable[p4runtime_pb2.Entity],
        turn: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> Iterator[p4runtime_pb2.ReadResponse]:
        """Yield everything that the given entities, which may be wildcards, stand for.

        Each piece of some hundred is read at one moment, in a `turn`. Writes between two pieces may be in the
        answer or not.
        """
        answer = Answer()
        for entity in entities:
            kind = entity.WhichOneof("entity")
            reading = self._handler(kind).read(getattr(entity, kind), answer)
            is_done = False
            while not is_done:
                with turn(), self._lock:
                    self._check_in_use()
                    is_done = _read_piece(reading)
                yield from answer.take_full()
        yield answer.take_rest()

    def read_entities(self, entities: Iterable[p4runtime_pb2.Entity]) -> Iterator[p4runtime_pb2.Entity]:
        """Return an iterator over the single entities of a read."""
        return (entity for response in self.read(entities) for entity in response.entities)

    def packet_out(self, message: p4runtime_pb2.PacketOut) -> None:
        data = self._packet_out.pack(message.metadata) + message.payload
        with self._lock:
            self._check_in_use()
            self.data_plane.packet_out(data)

    def acknowledge_digest(self, message: p4runtime_pb2.DigestListAck) -> None:
        with self._lock:
            self._check_in_use()
            self._digests.acknowledge(message)

    def retire(self) -> None:
        """Wait for running calls; later calls fail. The data plane can then be discarded."""
        with self._lock:
            self._retired = True

    def encode_event(self, event: Event, now_ns: int) -> p4runtime_pb2.StreamMessageResponse:
        """Return the stream message for an event of the data plane."""
        if isinstance(event, DigestList):
            return self._digests.encode_list(event)
        message = p4runtime_pb2.StreamMessageResponse()
        if isinstance(event, Output):
            self._packet_in.unpack(event.data, message.packet)
        else:
            message.idle_timeout_notification.timestamp = now_ns
            entry = message.idle_timeout_notification.table_entry.add()
            self._tables.encode_identity(self._schema.tables_by_name[event.table], event, entry)
        return message

    def _check_in_use(self) -> None:
        if self._retired:
            raise DataPlaneError("ABORTED", "the forwarding pipeline was replaced meanwhile")

    def _write_one(self, update: p4runtime_pb2.Update) -> DataPlaneError | None:
        try:
            if update.type not in _UPDATE_TYPES:
                raise invalid("the type of the update is not set")
            kind = update.entity.WhichOneof("entity")
            self._handler(kind).write(update.type, getattr(update.entity, kind))
        except DataPlaneError as error:
            return error
        return None

    def _handler(self, kind: str | None) -> EntityHandler:
        if kind is None:
            raise invalid("the entity is empty")
        if kind not in self._handlers:
            raise DataPlaneError("UNIMPLEMENTED", f"{kind} is not supported by v1model")
        return self._handlers[kind]


def _read_piece(reading: Iterator[None]) -> bool:
    """Read the next entities; returns whether they were the last."""
    until_s = time.monotonic() + PIECE_S
    for count, _ in enumerate(reading, start=1):
        if count == ENTITIES_AT_ONCE or time.monotonic() >= until_s:
            return False
    return True


def _packet_header(name: str, p4info: p4info_pb2.P4Info, program: ir.Program, schema: Schema) -> PacketHeader:
    infos = [info for info in p4info.controller_packet_metadata if info.preamble.name == name]
    headers = [header for header, role, _ in program.controller_headers if role == name]
    return PacketHeader(infos[0] if infos else None, headers[0] if headers else None, schema.codecs)
