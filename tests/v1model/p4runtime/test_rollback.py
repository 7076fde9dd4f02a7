"""Batches that are written as a whole or not at all (specification, "Batch Atomicity")."""

from __future__ import annotations

import random
import threading

import pytest

from tests.v1model.kept_programs import kept_program
from tests.v1model.p4runtime.controller import Controller
from tests.v1model.p4runtime.test_batch import make_update
from v1model.compile import compile_p4
from v1model.p4info import p4info
from v1model.p4runtime.pipeline import Pipeline
from v1model.protos.p4.v1 import p4runtime_pb2
from v1model.switch import Switch

ATOMICITIES = ["ROLLBACK_ON_ERROR", "DATAPLANE_ATOMIC"]
INSERT, MODIFY, DELETE = (
    p4runtime_pb2.Update.INSERT,
    p4runtime_pb2.Update.MODIFY,
    p4runtime_pb2.Update.DELETE,
)


def state(pipeline: Pipeline) -> list[bytes]:
    """All entries with counters and meters, and default entries, in any order."""
    wanted = p4runtime_pb2.Entity()
    wanted.table_entry.counter_data.SetInParent()
    wanted.table_entry.meter_config.SetInParent()
    defaults = p4runtime_pb2.Entity()
    defaults.table_entry.is_default_action = True
    return sorted(e.SerializeToString() for e in pipeline.read_entities([wanted, defaults]))


def test_a_batch_of_entries_is_done_or_leaves_nothing(pipelines: tuple[Pipeline, Pipeline]) -> None:
    """The other pipeline is sent the updates one by one, and so says which of them can be done."""
    one, other = pipelines
    source, longest = random.Random(7), 0
    for _ in range(40):
        updates = [make_update(one.config.p4info, source) for _ in range(60)]
        good = [update for update in updates if other.write([update]) == [None]]
        bad = updates[0]
        while other.write([bad]) == [None]:
            good.append(bad)
            bad = source.choice(updates)
        before = state(one)
        *undone, failed = one.write_atomically([*good, bad], pauses_packets=False)
        assert failed is not None
        assert failed.code != "ABORTED"
        assert [error.code for error in undone if error] == ["ABORTED"] * len(good)
        assert state(one) == before
        assert one.write_atomically(good, pauses_packets=False) == [None] * len(good)
        longest = max(longest, len(good))
        assert state(one) == state(other)
    assert longest > 3


@pytest.mark.parametrize("atomicity", ATOMICITIES)
def test_all_kinds_of_entities_are_brought_back(controller: Controller, atomicity: str) -> None:
    c = controller
    kept = c.entry("index", {"headers.flow.key": 5}, c.action("set_slot", base=3, generation=2))
    kept.table_entry.counter_data.packet_count = 7
    group = p4runtime_pb2.Entity()
    group.packet_replication_engine_entry.multicast_group_entry.multicast_group_id = 9
    group.packet_replication_engine_entry.multicast_group_entry.replicas.add(egress_port=1)
    c.insert(kept, group)
    request = p4runtime_pb2.WriteRequest(atomicity=atomicity)

    def add(update_type: p4runtime_pb2.Update.Type, entity: p4runtime_pb2.Entity) -> None:
        request.updates.add(type=update_type, entity=entity)

    add(DELETE, c.entry("index", {"headers.flow.key": 5}))
    add(INSERT, c.entry("index", {"headers.flow.key": 6}, c.action("set_slot", base=1, generation=1)))
    other = p4runtime_pb2.Entity()
    other.CopyFrom(group)
    other.packet_replication_engine_entry.multicast_group_entry.replicas.add(egress_port=2)
    add(MODIFY, other)
    member = p4runtime_pb2.Entity()
    member.action_profile_member.action_profile_id = c.id("action_profiles", "hops")
    member.action_profile_member.member_id = 4
    member.action_profile_member.action.CopyFrom(c.action("drop"))
    add(INSERT, member)
    cell = p4runtime_pb2.Entity()
    cell.register_entry.register_id = c.id("registers", "cells")
    cell.register_entry.index.index = 3
    cell.register_entry.data.bitstring = b"\x09"
    add(MODIFY, cell)
    add(DELETE, c.entry("index", {"headers.flow.key": 77}))

    codes = c.write_request(request)
    assert codes == ["ABORTED"] * 5 + ["NOT_FOUND"]
    wanted = c.entry("index")
    wanted.table_entry.counter_data.SetInParent()
    assert c.read(wanted) == [kept]
    assert c.read(group) == [group]
    member.action_profile_member.ClearField("action")
    assert c.read(member) == []
    cell.register_entry.ClearField("data")
    (read,) = c.read(cell)
    assert read.register_entry.data.bitstring in (b"", b"\0")

    del request.updates[-1]
    assert set(c.write_request(request)) == {"OK"}
    assert len(c.read(member)) == 1
    assert c.read(group) == [other]


def test_an_atomic_batch_is_bounded(controller: Controller) -> None:
    request = p4runtime_pb2.WriteRequest(atomicity="ROLLBACK_ON_ERROR")
    for _ in range(4097):
        request.updates.add(type=DELETE, entity=controller.entry("index", {"headers.flow.key": 77}))
    assert set(controller.write_request(request)) == {"RESOURCE_EXHAUSTED"}


TWO_TABLES = """
#include <core.p4>
#include <v1model.p4>
header seen_t { bit<8> first; bit<8> second; }
struct headers_t { seen_t seen; }
struct none_t { }
parser P(packet_in p, out headers_t h, inout none_t m, inout standard_metadata_t sm) {
    state start { p.extract(h.seen); transition accept; }
}
control C(inout headers_t h, inout none_t m) { apply { } }
control I(inout headers_t h, inout none_t m, inout standard_metadata_t sm) {
    action one(bit<8> n) { h.seen.first = n; }
    action two(bit<8> n) { h.seen.second = n; }
    table first { key = { sm.ingress_port: exact; } actions = { one; } }
    table second { key = { sm.ingress_port: exact; } actions = { two; } }
    apply { first.apply(); second.apply(); sm.egress_spec = 2; }
}
control E(inout headers_t h, inout none_t m, inout standard_metadata_t sm) { apply { } }
control D(packet_out p, in headers_t h) { apply { p.emit(h); } }
V1Switch(P(), C(), I(), E(), C(), D()) main;
"""


def test_each_packet_sees_all_of_a_batch_or_nothing() -> None:
    compiled = compile_p4(kept_program(TWO_TABLES), quick=True)
    info = p4info(compiled.program)
    with Switch(compiled) as switch:
        pipeline = Pipeline(p4runtime_pb2.ForwardingPipelineConfig(p4info=info), switch)

        def write(update_type: p4runtime_pb2.Update.Type, number: int) -> None:
            updates = []
            for table in info.tables:
                update = p4runtime_pb2.Update(type=update_type)
                entry = update.entity.table_entry
                entry.table_id = table.preamble.id
                entry.match.add(field_id=1).exact.value = b"\1"
                entry.action.action.action_id = table.action_refs[0].id
                entry.action.action.params.add(param_id=1, value=bytes([number]))
                updates.append(update)
            assert pipeline.write_atomically(updates, pauses_packets=True) == [None, None]

        write(INSERT, 1)
        seen: set[bytes] = set()
        stopped = threading.Event()

        def send() -> None:
            while not stopped.is_set():
                (output,) = switch.inject(1, b"\0\0")
                seen.add(output.data)

        sender = threading.Thread(target=send)
        sender.start()
        try:
            for number in range(2, 200):
                write(MODIFY, number)
        finally:
            stopped.set()
            sender.join()
        assert seen
        assert all(first == second for first, second in seen)
