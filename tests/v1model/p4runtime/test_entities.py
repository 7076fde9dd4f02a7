"""Counters, meters, registers, replication, digests, profiles: entities that are no table entries."""

from __future__ import annotations

from typing import Any

import pytest

from tests.v1model.p4runtime.conftest import BOTH
from tests.v1model.p4runtime.controller import CONTROL, DELETE, INSERT, MODIFY, Controller, Entity
from v1model.p4runtime import array_entities
from v1model.protos.p4.v1 import p4runtime_pb2

ADDRESS = "headers.flow.address"


def indexed(c: Controller, kind: str, ids: str, name: str, index: int | None = None) -> tuple[Entity, Any]:
    """(entity, its counter, meter or register entry)."""
    entity = c.entity(kind)
    message = getattr(entity, kind)
    setattr(message, kind.replace("entry", "id"), c.id(ids, CONTROL + name))
    if index is not None:
        message.index.SetInParent()
        message.index.index = index
    return entity, message


def counter(c: Controller, index: int | None = None, packets: int | None = None) -> Entity:
    entity, message = indexed(c, "counter_entry", "counters", "kinds", index)
    if packets is not None:
        message.data.packet_count, message.data.byte_count = packets, 64 * packets
    return entity


@BOTH
def test_counters(controller: Controller) -> None:
    c = controller
    assert c.write(MODIFY, counter(c, 3, packets=5)) == ["OK"]
    (entity,) = c.read(counter(c, 3))
    assert (entity.counter_entry.data.packet_count, entity.counter_entry.data.byte_count) == (5, 320)
    values = [e.counter_entry.data.packet_count for e in c.read(counter(c))]
    assert values == [0, 0, 0, 5] + [0] * 12
    assert c.write(INSERT, counter(c, 3, packets=1)) == ["INVALID_ARGUMENT"]


def test_counters_by_wildcard_and_bad_index(controller: Controller) -> None:
    c = controller
    assert c.write(MODIFY, counter(c, packets=2), counter(c, 4)) == ["OK", "OK"]
    assert {e.counter_entry.data.packet_count for e in c.everything("counter_entry")} == {2}
    assert c.write(MODIFY, counter(c, 16), counter(c, -1)) == ["OUT_OF_RANGE", "INVALID_ARGUMENT"]
    assert c.read_code(counter(c, 16)) == "OUT_OF_RANGE"
    assert c.write(MODIFY, counter(c, 0, packets=-1)) == ["INVALID_ARGUMENT"]


def test_an_update_of_too_many_elements(controller: Controller, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything else waits for it."""
    monkeypatch.setattr(array_entities, "MAX_ELEMENTS_OF_UPDATE", 8)
    assert controller.write(MODIFY, counter(controller, packets=1)) == ["RESOURCE_EXHAUSTED"]
    assert controller.write(MODIFY, counter(controller, 3, packets=1)) == ["OK"]


def meter(c: Controller, index: int | None = None, *rates: int) -> Entity:
    entity, message = indexed(c, "meter_entry", "meters", "limits", index)
    if rates:
        message.config.cir, message.config.cburst, message.config.pir, message.config.pburst = rates
    return entity


@BOTH
def test_meters(controller: Controller) -> None:
    c = controller
    config = meter(c, 2, 100, 10, 200, 20)
    assert c.write(MODIFY, config) == ["OK"]
    assert c.read(meter(c, 2)) == [config]


def test_meters_are_checked(controller: Controller) -> None:
    c = controller
    assert c.read(meter(c, 1)) == [meter(c, 1)]  # unset: every packet is green
    assert c.write(MODIFY, meter(c, None, 100, 10, 200, 20), meter(c, 3)) == ["OK", "OK"]
    assert c.read(meter(c)) == [meter(c, i) if i == 3 else meter(c, i, 100, 10, 200, 20) for i in range(8)]
    peak_below = meter(c, 0, 200, 10, 100, 10)
    single_rate = meter(c, 0, 1, 1, 1, 1)
    single_rate.meter_entry.config.eburst = 1
    bad = [peak_below, single_rate, meter(c, 8, 1, 1, 1, 1)]
    codes = ["INVALID_ARGUMENT", "INVALID_ARGUMENT", "OUT_OF_RANGE"]
    assert c.write(MODIFY, *bad) == codes


def test_meters_count_by_colour(controller: Controller) -> None:
    """The counters are there where the request names them, and a write sets them."""
    c = controller
    counted, asked = meter(c, 2, 100, 10, 200, 20), meter(c, 2)
    counted.meter_entry.counter_data.yellow.packet_count = 7
    counted.meter_entry.counter_data.red.byte_count = 99
    asked.meter_entry.counter_data.SetInParent()
    assert c.write(MODIFY, counted) == ["OK"]
    (seen,) = c.read(asked)
    assert seen.meter_entry.counter_data.yellow.packet_count == 7
    assert seen.meter_entry.counter_data.red.byte_count == 99
    assert c.read(meter(c, 2)) == [meter(c, 2, 100, 10, 200, 20)]
    entry = c.entry("aging", {"headers.flow.address": 9}, c.action("color"))
    entry.table_entry.meter_counter_data.green.packet_count = 3
    assert c.write(INSERT, entry) == ["OK"]
    entry.table_entry.ClearField("action")
    (seen,) = c.read(entry)
    assert seen.table_entry.meter_counter_data.green.packet_count == 3
    direct = c.entity("direct_meter_entry", table_entry=seen.table_entry, counter_data=True)
    (seen,) = c.read(direct)
    assert seen.direct_meter_entry.counter_data.green.packet_count == 3


def test_registers(controller: Controller) -> None:
    c = controller

    def cell(index: int | None, value: bytes | None = None) -> Entity:
        entity, message = indexed(c, "register_entry", "registers", "cells", index)
        if value is not None:
            message.data.bitstring = value
        return entity

    assert c.write(MODIFY, cell(3, b"\1\2\3\4\5\6")) == ["OK"]
    assert c.read(cell(3)) == [cell(3, b"\1\2\3\4\5\6")]
    assert len(c.read(cell(None))) == 32
    assert c.write(MODIFY, cell(0, b"\1" + bytes(6)), cell(32, b"\1")) == ["OUT_OF_RANGE"] * 2
    assert c.write(MODIFY, cell(0)) == ["INVALID_ARGUMENT"]


def group(c: Controller, group_id: int, *replicas: tuple[int, int], metadata: bytes = b"") -> Entity:
    entity = c.entity()
    message = entity.packet_replication_engine_entry.multicast_group_entry
    message.multicast_group_id, message.metadata = group_id, metadata
    for port, instance in replicas:
        message.replicas.add(egress_port=port, instance=instance)
    return entity


def session(c: Controller, session_id: int, *ports: int, length: int = 0) -> Entity:
    entity = c.entity()
    message = entity.packet_replication_engine_entry.clone_session_entry
    message.session_id, message.packet_length_bytes = session_id, length
    for port in ports:
        message.replicas.add(egress_port=port, instance=1)
    return entity


@BOTH
def test_multicast_groups(controller: Controller) -> None:
    c = controller
    entity = group(c, 7, (1, 0), (2, 0), (3, 0))
    assert c.write(INSERT, entity) == ["OK"]
    assert c.read(group(c, 7)) == [entity]
    changed = group(c, 7, (3, 0))
    assert c.write(MODIFY, changed) == ["OK"]
    assert c.read(group(c, 0)) == [changed]
    assert c.write(DELETE, group(c, 7)) == ["OK"]
    assert c.read(group(c, 0)) == []


@pytest.mark.parametrize(
    ("update_type", "make", "code"),
    [
        (INSERT, lambda c: group(c, 7, (1, 0)), "ALREADY_EXISTS"),
        (MODIFY, lambda c: group(c, 8, (1, 0)), "NOT_FOUND"),
        (DELETE, lambda c: group(c, 8), "NOT_FOUND"),
        (INSERT, lambda c: group(c, 0, (1, 0)), "INVALID_ARGUMENT"),
        (INSERT, lambda c: group(c, 8, (1, 0), (1, 0)), "INVALID_ARGUMENT"),
        (INSERT, lambda c: group(c, 8, (512, 0)), "INVALID_ARGUMENT"),
        (INSERT, lambda c: group(c, 8, (1, 65536)), "INVALID_ARGUMENT"),
        (INSERT, lambda c: session(c, 0, 1), "INVALID_ARGUMENT"),
        (INSERT, lambda c: session(c, 3, 1, length=-1), "INVALID_ARGUMENT"),
        (MODIFY, lambda c: session(c, 3, 1), "NOT_FOUND"),
    ],
)
def test_bad_replication_entries(controller: Controller, update_type: int, make: Any, code: str) -> None:
    controller.insert(group(controller, 7, (1, 0)))
    assert controller.write(update_type, make(controller)) == [code]


def test_ports_as_bytes_and_metadata_are_read_as_written(controller: Controller) -> None:
    c = controller
    entity = group(c, 9, metadata=b"note")
    entity.packet_replication_engine_entry.multicast_group_entry.replicas.add(port=b"\1\2", instance=3)
    c.insert(entity)
    assert c.read(group(c, 9)) == [entity]


def test_clone_sessions(controller: Controller) -> None:
    c = controller
    entity = session(c, 5, 3, length=64)
    assert c.write(INSERT, entity) == ["OK"]
    assert c.read(session(c, 5)) == [entity]
    assert c.write(DELETE, session(c, 5)) == ["OK"]
    assert c.read(session(c, 0)) == []


def digest(c: Controller, *config: int) -> Entity:
    entity = c.entity("digest_entry", digest_id=c.id("digests", "learned_t"))
    if config:
        message = entity.digest_entry.config
        message.max_timeout_ns, message.max_list_size, message.ack_timeout_ns = config
    return entity


def test_digest_configs(controller: Controller) -> None:
    c = controller
    entity = digest(c, 10**6, 1, 10**9)
    assert c.write(INSERT, entity) == ["OK"]
    assert c.read(digest(c)) == [entity]
    assert c.write(DELETE, digest(c)) == ["OK"]
    assert c.everything("digest_entry") == []


def test_digest_configs_that_do_not_exist(controller: Controller) -> None:
    c = controller
    assert c.write(MODIFY, digest(c, 1, 1, 1)) == ["NOT_FOUND"]
    assert c.write(DELETE, digest(c)) == ["NOT_FOUND"]
    assert c.write(INSERT, digest(c, -1, 1, 1)) == ["INVALID_ARGUMENT"]
    c.insert(digest(c, 1, 1, 1))
    assert c.write(INSERT, digest(c, 1, 1, 1)) == ["ALREADY_EXISTS"]


@BOTH
def test_direct_counters(controller: Controller) -> None:
    c = controller
    entries = [
        c.entry("index", {"headers.flow.key": key}, c.action("set_slot", base=1, generation=1))
        for key in (1, 2)
    ]
    c.insert(*entries)
    one = c.entity("direct_counter_entry")
    one.direct_counter_entry.table_entry.CopyFrom(c.entry("index", {"headers.flow.key": 2}).table_entry)
    one.direct_counter_entry.data.packet_count = 7
    one.direct_counter_entry.data.byte_count = 700
    assert c.write(MODIFY, one) == ["OK"]
    assert c.read(one) == [one]
    table = c.entity("direct_counter_entry")
    table.direct_counter_entry.table_entry.table_id = c.id("tables", "index")
    assert sorted(e.direct_counter_entry.data.packet_count for e in c.read(table)) == [0, 7]
    read = c.read_table("index", counter_data=True)
    assert sorted(e.table_entry.counter_data.packet_count for e in read) == [0, 7]


def test_direct_counters_of_what_does_not_exist(controller: Controller) -> None:
    c = controller
    absent, uncounted = c.entity("direct_counter_entry"), c.entity("direct_counter_entry")
    absent.direct_counter_entry.table_entry.CopyFrom(c.entry("index", {"headers.flow.key": 2}).table_entry)
    uncounted.direct_counter_entry.table_entry.table_id = c.id("tables", "routes")
    assert c.write(MODIFY, absent, uncounted) == ["NOT_FOUND", "INVALID_ARGUMENT"]
    assert (c.read_code(absent), c.read_code(uncounted)) == ("NOT_FOUND", "INVALID_ARGUMENT")
    assert c.write(DELETE, absent) == ["INVALID_ARGUMENT"]


def test_direct_meters(controller: Controller) -> None:
    c = controller
    config = p4runtime_pb2.MeterConfig(cir=10, cburst=5, pir=20, pburst=10)
    entry = c.entry("aging", {ADDRESS: 1}, c.action("color"), meter_config=config)
    c.insert(entry)
    assert c.read_table("aging", meter_config=True) == [entry]
    meter_entity = c.entity("direct_meter_entry")
    meter_entity.direct_meter_entry.table_entry.CopyFrom(c.entry("aging", {ADDRESS: 1}).table_entry)
    (read,) = c.read(meter_entity)
    assert read.direct_meter_entry.config == config
    assert c.write(MODIFY, meter_entity) == ["OK"]  # unset: the default
    (read,) = c.read(meter_entity)
    assert not read.direct_meter_entry.HasField("config")
    wrong = c.entry("routes", {ADDRESS: (1, 32)}, c.action("drop"), meter_config=config)
    assert c.write(INSERT, wrong) == ["INVALID_ARGUMENT"]


def member(c: Controller, member_id: int, port: int | None, profile: str = "spread") -> Entity:
    entity = c.entity(
        "action_profile_member",
        action_profile_id=c.id("action_profiles", CONTROL + profile),
        member_id=member_id,
    )
    if port is not None:
        entity.action_profile_member.action.CopyFrom(c.action("forward", port=port))
    return entity


def profile_group(c: Controller, group_id: int, *members: tuple[int, int], max_size: int = 8) -> Entity:
    entity = c.entity(
        "action_profile_group",
        action_profile_id=c.id("action_profiles", CONTROL + "spread"),
        group_id=group_id,
        max_size=max_size,
    )
    for member_id, weight in members:
        entity.action_profile_group.members.add(member_id=member_id, weight=weight)
    return entity


def test_watched_ports_are_kept(controller: Controller) -> None:
    """As bytes or as the number of older versions, and a read answers in kind."""
    c = controller
    c.insert(member(c, 1, 5), member(c, 2, 6))
    by_bytes, by_number = profile_group(c, 3, (1, 1), (2, 1)), profile_group(c, 4, (1, 1))
    by_bytes.action_profile_group.members[1].watch_port = b"\x06"
    by_number.action_profile_group.members[0].watch = 5
    c.insert(by_bytes, by_number)
    assert c.read(profile_group(c, 3, max_size=0)) == [by_bytes]
    assert c.read(profile_group(c, 4, max_size=0)) == [by_number]
    by_number.action_profile_group.members[0].watch = 512
    assert c.write(MODIFY, by_number) == ["INVALID_ARGUMENT"]


@BOTH
def test_members_and_groups(controller: Controller) -> None:
    c = controller
    first, second = member(c, 1, 1), member(c, 2, 2)
    c.insert(first, second)
    assert c.read(member(c, 0, None)) == [first, second]
    both = profile_group(c, 3, (1, 1), (2, 1))
    c.insert(both)
    assert c.read(profile_group(c, 3, max_size=0)) == [both]
    entry = c.entry("balanced", {"headers.flow.kind": 1})
    entry.table_entry.action.action_profile_group_id = 3
    c.insert(entry)
    assert c.read_table("balanced") == [entry]
    assert c.write(DELETE, c.entry("balanced", {"headers.flow.kind": 1})) == ["OK"]
    assert c.write(DELETE, profile_group(c, 3)) == ["OK"]
    assert c.write(DELETE, member(c, 1, None), member(c, 2, None)) == ["OK", "OK"]


def test_what_is_in_use_can_not_be_deleted(controller: Controller) -> None:
    c = controller
    c.insert(member(c, 1, 1))
    c.insert(profile_group(c, 3, (1, 1)))
    entry = c.entry("balanced", {"headers.flow.kind": 1})
    entry.table_entry.action.action_profile_group_id = 3
    c.insert(entry)
    assert c.write(DELETE, member(c, 1, None)) == ["FAILED_PRECONDITION"]
    assert c.write(DELETE, profile_group(c, 3)) == ["FAILED_PRECONDITION"]


def test_bad_members_and_groups(controller: Controller) -> None:
    c = controller
    c.insert(member(c, 1, 1))
    foreign = member(c, 2, None)
    foreign.action_profile_member.action.CopyFrom(c.action("learn"))
    assert c.write(INSERT, member(c, 1, 1), member(c, 0, 1), member(c, 2, None), foreign) == [
        "ALREADY_EXISTS",
        "INVALID_ARGUMENT",
        "INVALID_ARGUMENT",
        "INVALID_ARGUMENT",
    ]
    assert c.write(MODIFY, member(c, 9, 1)) == ["NOT_FOUND"]
    assert c.write(DELETE, member(c, 9, None)) == ["NOT_FOUND"]
    assert c.write(
        INSERT,
        profile_group(c, 1, (9, 1)),
        profile_group(c, 1, (1, 0)),
        profile_group(c, 1, (1, 1), (1, 1)),
        profile_group(c, 1, (1, 9)),
    ) == ["NOT_FOUND", "INVALID_ARGUMENT", "INVALID_ARGUMENT", "RESOURCE_EXHAUSTED"]
    c.insert(profile_group(c, 1, (1, 1), max_size=4))
    assert c.write(MODIFY, profile_group(c, 1, (1, 1), max_size=5)) == ["INVALID_ARGUMENT"]
    not_there = c.entry("next_hop", {ADDRESS: 1})
    not_there.table_entry.action.action_profile_member_id = 77
    direct = c.entry("next_hop", {ADDRESS: 1}, c.action("drop"))
    assert c.write(INSERT, not_there, direct) == ["NOT_FOUND", "INVALID_ARGUMENT"]


def test_one_shot_action_sets(controller: Controller) -> None:
    c = controller

    def one_shot(kind: int, *ports: int) -> Entity:
        entry = c.entry("balanced", {"headers.flow.kind": kind})
        actions = entry.table_entry.action.action_profile_action_set.action_profile_actions
        for port in ports:
            actions.add(action=c.action("forward", port=port), weight=2)
        return entry

    c.insert(one_shot(1, 1, 2), one_shot(2, 3))
    assert c.read_table("balanced") == [one_shot(1, 1, 2), one_shot(2, 3)]
    assert c.everything("action_profile_member") == c.everything("action_profile_group") == []
    assert c.write(INSERT, one_shot(1, 4)) == ["ALREADY_EXISTS"]
    assert c.write(MODIFY, one_shot(1, 5)) == ["OK"]
    assert c.read_table("balanced")[0] == one_shot(1, 5)
    assert c.write(INSERT, member(c, 1, 1)) == ["INVALID_ARGUMENT"]  # no mixing
    assert c.write(DELETE, one_shot(1), one_shot(2)) == ["OK", "OK"]
    assert c.write(INSERT, member(c, 1, 1)) == ["OK"]  # nothing of the sets is left
    assert c.write(INSERT, one_shot(1, 1)) == ["INVALID_ARGUMENT"]
