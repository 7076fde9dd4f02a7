"""What is written over P4Runtime is what packets meet: packets go in at the CPU port."""

from __future__ import annotations

import pytest

from tests.v1model.p4runtime.conftest import BOTH
from tests.v1model.p4runtime.controller import INSERT, MODIFY, Controller, Entity
from tests.v1model.p4runtime.engines import CPU_PORT
from tests.v1model.p4runtime.test_entities import group, member, profile_group, session
from tests.v1model.p4runtime.test_stream import flow
from v1model.protos.p4.v1 import p4runtime_pb2

ADDRESS = "headers.flow.address"
BY_MEMBER, BY_GROUP = 8, 9


def next_hop(c: Controller, address: int, own_member: int) -> Entity:
    entry = c.entry("next_hop", {ADDRESS: address})
    entry.table_entry.action.action_profile_member_id = own_member
    return entry


def balanced(c: Controller, kind: int, own_group: int) -> Entity:
    entry = c.entry("balanced", {"headers.flow.kind": kind})
    entry.table_entry.action.action_profile_group_id = own_group
    return entry


def comes_back(c: Controller, payload: bytes) -> bool:
    """Whether a packet is sent to the CPU; one that certainly is follows it."""
    marker = flow(2, address=0xFFFFFFFF)
    c.send_packet(payload)
    c.send_packet(marker)
    first = c.receive("packet").payload
    return bool(first != marker and c.receive("packet").payload == marker)


@BOTH
def test_members(controller: Controller) -> None:
    c = controller
    c.insert(member(c, 1, CPU_PORT, "hops"), member(c, 2, 3, "hops"))
    c.insert(next_hop(c, 1, 1), next_hop(c, 2, 2))
    assert comes_back(c, flow(BY_MEMBER, address=1))
    assert not comes_back(c, flow(BY_MEMBER, address=2))
    assert c.write(MODIFY, member(c, 2, CPU_PORT, "hops")) == ["OK"]
    assert comes_back(c, flow(BY_MEMBER, address=2))


@BOTH
def test_groups_spread_flows(controller: Controller) -> None:
    c = controller
    c.insert(member(c, 1, CPU_PORT), member(c, 2, 3))
    c.insert(profile_group(c, 5, (1, 1), (2, 1)))
    c.insert(balanced(c, 7, 5))
    fates = [comes_back(c, flow(BY_GROUP, address=number, kind=7)) for number in range(32)]
    assert 4 < sum(fates) < 28
    again = [comes_back(c, flow(BY_GROUP, address=number, kind=7)) for number in range(32)]
    assert again == fates  # a flow stays where it is
    assert c.write(MODIFY, profile_group(c, 5, (1, 1))) == ["OK"]
    assert all(comes_back(c, flow(BY_GROUP, address=number, kind=7)) for number in range(8))


@BOTH
def test_default_actions_and_priorities(controller: Controller) -> None:
    c = controller
    to_cpu = c.entry("routes", action=c.action("to_cpu"), is_default_action=True)
    assert not comes_back(c, flow(0, address=5))
    assert c.write(MODIFY, to_cpu) == ["OK"]
    assert comes_back(c, flow(0, address=5))
    drops = c.entry("acl", {ADDRESS.rpartition(".")[2]: (5, 5)}, c.action("drop"), priority=1)
    passes = c.entry("acl", {"operation": 0}, c.action("NoAction"), priority=2)
    c.insert(drops)
    assert not comes_back(c, flow(0, address=5))
    c.insert(passes)
    assert comes_back(c, flow(0, address=5))


@BOTH
def test_multicast_and_clones(controller: Controller) -> None:
    c = controller
    c.insert(group(c, 7, (CPU_PORT, 1), (3, 1)))
    assert c.write(INSERT, session_to_cpu(c)) == ["OK"]
    flood = c.entry("routes", {ADDRESS: (1, 32)}, c.action("flood"))
    mirror = c.entry("routes", {ADDRESS: (2, 32)}, c.action("mirror"))
    c.insert(flood, mirror)
    assert comes_back(c, flow(0, address=1))
    assert comes_back(c, flow(0, address=2))


def session_to_cpu(c: Controller) -> Entity:
    entity = session(c, 5, CPU_PORT)
    entity.packet_replication_engine_entry.clone_session_entry.replicas[0].instance = 1
    return entity


@BOTH
def test_direct_counters_count_hits(controller: Controller) -> None:
    c = controller
    entry = c.entry("index", {"headers.flow.key": 0}, c.action("set_slot", base=1, generation=1))
    c.insert(entry)
    for _ in range(3):
        c.send_packet(flow(2))
        c.receive("packet")
    read = c.entity("direct_counter_entry")
    read.direct_counter_entry.table_entry.CopyFrom(c.entry("index", {"headers.flow.key": 0}).table_entry)
    (answer,) = c.read(read)
    data = answer.direct_counter_entry.data
    length = len(flow(2)) + 2  # with the packet-out header in front
    assert (data.packet_count, data.byte_count) == (3, 3 * length)


def test_direct_meters_color(controller: Controller) -> None:
    c = controller
    c.insert(c.entry("aging", {ADDRESS: 1}, c.action("color"), meter_config=p4runtime_pb2.MeterConfig()))
    config = p4runtime_pb2.MeterConfig(cir=0, cburst=1, pir=0, pburst=2)
    assert c.write(MODIFY, c.entry("aging", {ADDRESS: 1}, c.action("color"), meter_config=config)) == ["OK"]
    (read,) = c.read_table("aging", meter_config=True)
    assert read.table_entry.meter_config == config


@pytest.mark.parametrize("count", [300, 1000])
def test_large_reads_come_in_parts(controller: Controller, count: int) -> None:
    c = controller
    entries = [
        c.entry("index", {"headers.flow.key": key}, c.action("set_slot", base=key, generation=1))
        for key in range(count)
    ]
    c.insert(*entries)
    responses = list(c.client.stub.Read(p4runtime_pb2.ReadRequest(entities=[c.entry("index")])))
    assert len(responses) > 1
    assert sum(len(response.entities) for response in responses) == count
