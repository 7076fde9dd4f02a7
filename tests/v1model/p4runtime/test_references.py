"""@refers_to: entries that refer to others, which must be there and stay there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.v1model.kept_programs import kept_program
from v1model.compile import compile_p4
from v1model.dataplane import Replica
from v1model.p4info import p4info
from v1model.p4runtime.batch import Batch
from v1model.p4runtime.pipeline import Pipeline
from v1model.p4runtime.reconcile import carry_over
from v1model.protos.p4.v1 import p4runtime_pb2
from v1model.switch import Switch

PROGRAM = """
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> vrf; bit<8> dst; bit<8> nexthop; bit<8> neighbour; bit<8> wcmp; }
struct headers_t { h_t h; }
struct none_t { }
parser P(packet_in p, out headers_t h, inout none_t m, inout standard_metadata_t sm) {
    state start { p.extract(h.h); transition accept; }
}
control C(inout headers_t h, inout none_t m) { apply { } }
control I(inout headers_t h, inout none_t m, inout standard_metadata_t sm) {
    action drop() { mark_to_drop(sm); }
    action set_nexthop(@refers_to(nexthops, id) bit<8> nexthop) { h.h.nexthop = nexthop; }
    action set_neighbour(@refers_to(neighbours, port) bit<8> port, @refers_to(neighbours, id) bit<8> id) {
        h.h.neighbour = id;
    }
    action set_group(@refers_to(builtin::multicast_group_table, multicast_group_id) bit<16> group) {
        sm.mcast_grp = group;
    }
    table vrfs { key = { h.h.vrf: exact @name("id"); } actions = { NoAction; } }
    table routes {
        key = { h.h.vrf: exact @name("vrf") @refers_to(vrfs, id); h.h.dst: lpm @name("dst"); }
        actions = { drop; set_nexthop; set_group; }
    }
    table nexthops { key = { h.h.nexthop: exact @name("id"); } actions = { drop; set_neighbour; } }
    table neighbours {
        key = { h.h.neighbour: exact @name("port"); h.h.dst: exact @name("id"); }
        actions = { drop; }
    }
    action_selector(HashAlgorithm.crc16, 16, 8) paths;
    table wcmp {
        key = { h.h.wcmp: exact @name("id") @refers_to(nowhere, id); h.h.dst: selector; }
        actions = { set_nexthop; }
        implementation = paths;
    }
    apply { vrfs.apply(); routes.apply(); nexthops.apply(); neighbours.apply(); wcmp.apply(); }
}
control E(inout headers_t h, inout none_t m, inout standard_metadata_t sm) { apply { } }
control D(packet_out p, in headers_t h) { apply { } }
V1Switch(P(), C(), I(), E(), C(), D()) main;
"""
INSERT, MODIFY, DELETE = (
    p4runtime_pb2.Update.INSERT,
    p4runtime_pb2.Update.MODIFY,
    p4runtime_pb2.Update.DELETE,
)


class Controller:
    """Writes of a few words: each says what code it came back with."""

    def __init__(self) -> None:
        compiled = compile_p4(kept_program(PROGRAM), quick=True)
        self.info = p4info(compiled.program)
        self.switch = Switch(compiled)
        self.pipeline = Pipeline(p4runtime_pb2.ForwardingPipelineConfig(p4info=self.info), self.switch)
        parts: list[Any] = [*self.info.tables, *self.info.actions, *self.info.action_profiles]
        self.ids = {part.preamble.alias: part.preamble.id for part in parts}

    def __call__(self, kind: int, table: str, keys: list[int], action: str, *arguments: int) -> str:
        update = p4runtime_pb2.Update(type=kind)  # type: ignore[arg-type]  # it is one of the enum's
        entry = update.entity.table_entry
        entry.table_id = self.ids[table]
        for field, value in enumerate(keys, start=1):
            if (table, field) == ("routes", 2):
                entry.match.add(field_id=field).lpm.MergeFrom(
                    p4runtime_pb2.FieldMatch.LPM(value=bytes([value]), prefix_len=8)
                )
            else:
                entry.match.add(field_id=field).exact.value = bytes([value])
        self._fill(entry.action.action, action, arguments)
        return self.written(update)

    def member(self, number: int, nexthop: int) -> str:
        update = p4runtime_pb2.Update(type=INSERT)
        member = update.entity.action_profile_member
        member.action_profile_id, member.member_id = self.ids["paths"], number
        self._fill(member.action, "set_nexthop", (nexthop,))
        return self.written(update)

    def group(self, kind: int, number: int) -> str:
        update = p4runtime_pb2.Update(type=kind)  # type: ignore[arg-type]  # it is one of the enum's
        update.entity.packet_replication_engine_entry.multicast_group_entry.multicast_group_id = number
        return self.written(update)

    def _fill(self, message: p4runtime_pb2.Action, action: str, arguments: tuple[int, ...]) -> None:
        message.action_id = self.ids[action]
        for number, value in enumerate(arguments, start=1):
            message.params.add(param_id=number, value=bytes([value]))

    def written(self, update: p4runtime_pb2.Update) -> str:
        """As a request's bytes, which the data plane may write by itself."""
        batch = Batch(p4runtime_pb2.WriteRequest(updates=[update]))
        self.pipeline.write_batch(batch, 1)
        return batch.results[0].code if batch.results[0] else "OK"


@pytest.fixture
def write() -> Iterator[Controller]:
    controller = Controller()
    with controller.switch:
        yield controller


def test_what_is_referred_to_must_be_there(write: Controller) -> None:
    assert write(INSERT, "routes", [1, 5], "drop") == "INVALID_ARGUMENT"
    assert write(INSERT, "vrfs", [1], "NoAction") == "OK"
    assert write(INSERT, "routes", [1, 5], "drop") == "OK"
    assert write(INSERT, "routes", [1, 6], "set_nexthop", 7) == "INVALID_ARGUMENT"
    assert write(MODIFY, "routes", [1, 5], "set_nexthop", 7) == "INVALID_ARGUMENT"
    assert write(INSERT, "nexthops", [7], "drop") == "OK"
    assert write(INSERT, "routes", [1, 6], "set_nexthop", 7) == "OK"
    assert write(MODIFY, "routes", [1, 5], "set_nexthop", 7) == "OK"


def test_what_is_referred_to_stays(write: Controller) -> None:
    write(INSERT, "vrfs", [1], "NoAction")
    write(INSERT, "nexthops", [7], "drop")
    write(INSERT, "routes", [1, 6], "set_nexthop", 7)
    assert write(DELETE, "vrfs", [1], "NoAction") == "FAILED_PRECONDITION"
    assert write(DELETE, "nexthops", [7], "drop") == "FAILED_PRECONDITION"
    assert write(DELETE, "nexthops", [8], "drop") == "NOT_FOUND"
    assert write(DELETE, "routes", [1, 6], "drop") == "OK"
    assert write(DELETE, "nexthops", [7], "drop") == "OK"
    assert write(DELETE, "vrfs", [1], "NoAction") == "OK"


def test_two_values_are_of_one_entry(write: Controller) -> None:
    write(INSERT, "neighbours", [1, 2], "drop")
    write(INSERT, "neighbours", [3, 4], "drop")
    assert write(INSERT, "nexthops", [7], "set_neighbour", 1, 4) == "INVALID_ARGUMENT"
    assert write(INSERT, "nexthops", [7], "set_neighbour", 3, 4) == "OK"
    assert write(DELETE, "neighbours", [1, 2], "drop") == "OK"
    assert write(DELETE, "neighbours", [3, 4], "drop") == "FAILED_PRECONDITION"


def test_members_and_multicast_groups(write: Controller) -> None:
    assert write.member(1, 7) == "INVALID_ARGUMENT"
    write(INSERT, "nexthops", [7], "drop")
    assert write.member(1, 7) == "OK"
    assert write(DELETE, "nexthops", [7], "drop") == "FAILED_PRECONDITION"
    write(INSERT, "vrfs", [1], "NoAction")
    assert write(INSERT, "routes", [1, 6], "set_group", 9) == "INVALID_ARGUMENT"
    write.switch.set_multicast_group(9, [Replica(1, 0)])
    assert write(INSERT, "routes", [1, 6], "set_group", 9) == "OK"
    assert write.group(DELETE, 9) == "FAILED_PRECONDITION"
    write(DELETE, "routes", [1, 6], "drop")
    assert write.group(DELETE, 9) == "OK"


def test_state_is_carried_over_in_whatever_order(write: Controller) -> None:
    write(INSERT, "vrfs", [1], "NoAction")
    write(INSERT, "nexthops", [7], "drop")
    write(INSERT, "routes", [1, 6], "set_nexthop", 7)
    write.member(1, 7)
    successor = Controller()
    with successor.switch:
        carry_over(write.pipeline, successor.pipeline)
        assert successor(DELETE, "nexthops", [7], "drop") == "FAILED_PRECONDITION"


def test_a_reference_that_is_not_understood_is_told_of(caplog: pytest.LogCaptureFixture) -> None:
    with Controller().switch:
        assert "of id of I.wcmp is not enforced: there is no table nowhere" in caplog.text
