"""BMv2 as the other side of a comparison: what it has put out, counted and reported."""

from __future__ import annotations

import queue
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import grpc

from tests.conformance.bmv2 import PACKET_TIMEOUT_S, Bmv2Target, PacketStream
from tests.v1model.p4runtime.client import error_text
from v1model import ir
from v1model.dataplane import CounterValue, DataPlaneError, DigestConfig, Replica, TableEntry
from v1model.p4runtime.entity import decode_counter
from v1model.p4runtime.packet_io import PacketHeader
from v1model.p4runtime.schema import Schema
from v1model.p4runtime.tables import TableTranslator
from v1model.protos.p4.v1 import p4runtime_pb2

Outputs = dict[int, list[bytes]]  # port -> packets
Digests = dict[str, list[tuple[int, ...]]]  # samples by digest
Matches = tuple[ir.KeyMatch | None, ...]
Entries = dict[tuple[str, "Matches", int], ir.ActionCall | None]  # by table, matches and priority
DirectCounters = dict[tuple[str, Matches, int], CounterValue]  # by table, matches and priority


MESSAGE_TIMEOUT_S = 5.0
LATE_S = 0.2  # nothing tells that no digest and no PacketIn is on its way any more


class PacketExchange(PacketStream):
    def run(self, packets: Sequence[tuple[int, bytes]]) -> list[Any]:
        for port, data in packets:
            self.send(port, data)
        responses = self._run(time.monotonic() + PACKET_TIMEOUT_S)
        self._waiting.clear()
        return responses


class Reference(Bmv2Target):
    """`data_plane` writes; the rest of the control plane is read here."""

    def __init__(self, program: Path) -> None:
        super().__init__(program)
        assert self._client
        self.stream_messages = self._client.stream_in_q
        p4info = self._client.get_p4info()
        self.program = self.data_plane.program
        self.schema = Schema(p4info, self.program)
        infos = [info for info in p4info.controller_packet_metadata if info.preamble.name == "packet_in"]
        headers = [header for header, role, _ in self.program.controller_headers if role == "packet_in"]
        self._packet_in = PacketHeader(
            infos[0] if infos else None, headers[0] if headers else None, self.schema.codecs
        )
        self._exchange = PacketExchange(f"127.0.0.1:{self._packets}")
        self._counter_names = {info.preamble.id: info.preamble.name for info in p4info.counters}

    def __enter__(self) -> Reference:
        return self

    def __exit__(self, *details: object) -> None:
        self._exchange.close()
        super().__exit__(*details)

    # --- packets and digests

    def exchange(self, packets: Sequence[tuple[int, bytes]]) -> list[Outputs]:
        """What each of the packets, given with their ports, made come out of other ports than the CPU's.
        BMv2 says when all are through, and for each packet from which it came."""
        outputs: list[Outputs] = [defaultdict(list) for _ in packets]
        for response in self._exchange.run(packets):
            outputs[response.id - 1][response.port].append(response.packet)
        return outputs

    def take_packet_ins(self, expected: int) -> list[bytes]:
        """Packets for the controller: as many as expected, and what more there is."""
        return [
            self._packet_in.pack(message.packet.metadata) + message.packet.payload
            for message in self._messages("packet", expected)
        ]

    def take_digests(self, expected: int) -> Digests:
        """The samples of `expected` lists of one, and of what more there is. Different digests have no order
        in BMv2: each has a thread."""
        digests: Digests = defaultdict(list)
        for message in self._messages("digest", expected):
            info = self.schema.digest(message.digest.digest_id)
            digests[info.name] += [info.data.decode(sample) for sample in message.digest.data]
        return digests

    def _messages(self, kind: str, expected: int) -> Iterator[p4runtime_pb2.StreamMessageResponse]:
        deadline = time.monotonic() + MESSAGE_TIMEOUT_S
        while True:
            try:
                if expected > 0:
                    yield self.stream_messages[kind].get(timeout=max(0.001, deadline - time.monotonic()))
                else:
                    yield self.stream_messages[kind].get_nowait()
            except queue.Empty:
                return
            expected -= 1

    def wait_for_late_messages(self) -> None:
        time.sleep(LATE_S)

    # --- control plane

    def set_digest(self, digest: str, config: DigestConfig) -> None:
        entity = p4runtime_pb2.Entity()
        entity.digest_entry.digest_id = self.schema.digests_by_name[digest].id
        entity.digest_entry.config.max_list_size = config.max_list_size
        entity.digest_entry.config.max_timeout_ns = config.max_timeout_ns
        entity.digest_entry.config.ack_timeout_ns = config.ack_timeout_ns
        self._write_one(p4runtime_pb2.Update.INSERT, entity)

    def delete(self, entry: TableEntry) -> None:
        entity = p4runtime_pb2.Entity()
        self.schema.tables_by_name[entry.table].encode_key(entry, entity.table_entry)
        self._write_one(p4runtime_pb2.Update.DELETE, entity)

    def counters(self) -> dict[tuple[str, int], CounterValue]:
        """All indirect counters by name and index."""
        entity = p4runtime_pb2.Entity()
        entity.counter_entry.SetInParent()
        return {
            (self._counter_names[read.counter_entry.counter_id], read.counter_entry.index.index): (
                decode_counter(read.counter_entry.data)
            )
            for read in self._read(entity)
        }

    def direct_counters(self) -> DirectCounters:
        counters = {}
        for table in self.schema.tables.values():
            if not table.has_direct_counter:
                continue
            entity = p4runtime_pb2.Entity()
            entity.direct_counter_entry.table_entry.table_id = table.id
            for read in self._read(entity):
                key = table.decode_key(read.direct_counter_entry.table_entry)
                counters[table.name, *key] = decode_counter(read.direct_counter_entry.data)
        return counters

    def entries(self, table: TableTranslator) -> Entries | None:
        """What P4Runtime reads of a table; None where BMv2 can't: two entries that differ in their priority
        alone are one to what it keeps of them, and then "out-of-sync"."""
        entity, entries = p4runtime_pb2.Entity(), {}
        entity.table_entry.table_id = table.id
        try:
            for read in self._read(entity):
                message = read.table_entry
                if message.is_default_action:
                    continue
                is_action = message.action.WhichOneof("type") == "action"
                action = table.decode_action(message.action.action) if is_action else None
                entries[table.name, *table.decode_key(message)] = action
        except grpc.RpcError as error:
            if "out-of-sync" in str(error.details()):
                return None
            raise
        return self._without_own_priorities(table.name, entries)

    def _without_own_priorities(self, name: str, entries: Entries) -> Entries:
        """The priorities of a program's own entries are numbered by each engine in its own way."""
        if not next(table for table in self.program.tables if table.name == name).entries:
            return entries
        return {(table, matches, 0): action for (table, matches, _), action in entries.items()}

    def normal_entries(self, name: str, entries: Iterable[TableEntry]) -> Entries:
        """Entries of the other engine, to be compared with."""
        found: Entries = {self.normal(entry): entry.action for entry in entries}
        return self._without_own_priorities(name, found)

    def multicast_groups(self) -> dict[int, tuple[Replica, ...]]:
        entity = p4runtime_pb2.Entity()
        entity.packet_replication_engine_entry.multicast_group_entry.SetInParent()
        groups = {}
        for read in self._read(entity):
            message = read.packet_replication_engine_entry.multicast_group_entry
            replicas = (Replica(one.egress_port, one.instance) for one in message.replicas)
            groups[message.multicast_group_id] = tuple(replicas)
        return groups

    def normal(self, entry: TableEntry) -> tuple[str, Matches, int]:
        """What identifies an entry, as it is after a way over the wire."""
        table, message = self.schema.tables_by_name[entry.table], p4runtime_pb2.TableEntry()
        table.encode_key(entry, message)
        return (table.name, *table.decode_key(message))

    def _read(self, entity: p4runtime_pb2.Entity) -> Iterator[p4runtime_pb2.Entity]:
        assert self._client
        yield from self._client.read(entity)

    def _write_one(self, update_type: p4runtime_pb2.Update.Type, entity: p4runtime_pb2.Entity) -> None:
        assert self._client
        try:
            self._client.write(p4runtime_pb2.Update(type=update_type, entity=entity))
        except grpc.RpcError as error:
            raise DataPlaneError("UNKNOWN", error_text(error)) from error
