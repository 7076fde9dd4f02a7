"""Table entries over gRPC: inserts, the errors of the specification, wildcard reads."""

from __future__ import annotations

from typing import Any

import pytest

from tests.v1model.p4runtime.conftest import BOTH
from tests.v1model.p4runtime.controller import DELETE, INSERT, MODIFY, Controller
from v1model.protos.p4.v1 import p4runtime_pb2

KEY = {"headers.flow.key": 0xABC}
ADDRESS = "headers.flow.address"


def index_entry(c: Controller, key: int, base: int = 1, **fields: Any) -> Any:
    return c.entry(
        "index", {"headers.flow.key": key}, c.action("set_slot", base=base, generation=2), **fields
    )


def acl_entry(c: Controller, matches: dict[str, Any], priority: int = 10, tag: int = 1) -> Any:
    return c.entry("acl", matches, c.action("tag", value=tag), priority=priority)


@BOTH
def test_insert_read_modify_delete(controller: Controller) -> None:
    c = controller
    entry = index_entry(c, 5, base=7)
    assert c.write(INSERT, entry) == ["OK"]
    assert c.read_table("index") == [entry]
    changed = index_entry(c, 5, base=8)
    assert c.write(MODIFY, changed) == ["OK"]
    assert c.read_table("index") == [changed]
    assert c.write(DELETE, c.entry("index", {"headers.flow.key": 5})) == ["OK"]
    assert c.read_table("index") == []


@BOTH
def test_a_batch_goes_on_after_errors(controller: Controller) -> None:
    c = controller
    entries = [index_entry(c, key) for key in (1, 2, 1, 3)]
    assert c.write(INSERT, *entries) == ["OK", "OK", "ALREADY_EXISTS", "OK"]
    assert len(c.read_table("index")) == 3


@BOTH
def test_what_does_not_exist(controller: Controller) -> None:
    c = controller
    assert c.write(MODIFY, index_entry(c, 1)) == ["NOT_FOUND"]
    assert c.write(DELETE, index_entry(c, 1)) == ["NOT_FOUND"]


@BOTH
@pytest.mark.parametrize(
    "matches",
    [
        {"kind": (0x1200, 0xFF00)},
        {"address": (10, 20)},
        {"operation": 3},
        {"kind": (1, 0xFFFF), "address": (0, 5), "operation": 0},
        {},
    ],
)
def test_match_kinds_are_read_as_written(controller: Controller, matches: dict[str, Any]) -> None:
    entry = acl_entry(controller, matches)
    controller.insert(entry)
    assert controller.read_table("acl") == [entry]


@pytest.mark.parametrize(
    ("matches", "priority"),
    [
        ({"kind": (0, 0)}, 1),
        ({"kind": (0x12FF, 0xFF00)}, 1),
        ({"address": (20, 10)}, 1),
        ({"address": (0, 0xFFFFFFFF)}, 1),
        ({"operation": 1}, 0),
        ({"operation": 1}, -1),
    ],
)
def test_forms_that_are_not_canonical(controller: Controller, matches: dict[str, Any], priority: int) -> None:
    assert controller.write(INSERT, acl_entry(controller, matches, priority)) == ["INVALID_ARGUMENT"]


@BOTH
@pytest.mark.parametrize("lpm", [(0, 0), (0x0A000001, 8), (0x0A000000, 33)])
def test_prefixes_that_are_not_canonical(controller: Controller, lpm: tuple[int, int]) -> None:
    entry = controller.entry("routes", {ADDRESS: lpm}, controller.action("drop"))
    assert controller.write(INSERT, entry) == ["INVALID_ARGUMENT"]


def test_malformed_entries(controller: Controller) -> None:
    c = controller
    twice, foreign, wrong_kind = index_entry(c, 1), index_entry(c, 1), index_entry(c, 1)
    twice.table_entry.match.add().CopyFrom(twice.table_entry.match[0])
    foreign.table_entry.match[0].field_id = 9
    wrong_kind.table_entry.match[0].optional.value = b"\1"
    missing_param, foreign_param, double_param = index_entry(c, 1), index_entry(c, 1), index_entry(c, 1)
    del missing_param.table_entry.action.action.params[0]
    foreign_param.table_entry.action.action.params[0].param_id = 7
    double_param.table_entry.action.action.params[0].param_id = 2
    no_key = c.entry("index", {}, c.action("set_slot", base=1, generation=1))
    priority = index_entry(c, 1, priority=3)
    foreign_action = c.entry("index", KEY, c.action("forward", port=1))
    no_action = c.entry("index", KEY)
    unknown_table = index_entry(c, 1)
    unknown_table.table_entry.table_id = 0x02000001
    malformed = (
        twice,
        foreign,
        wrong_kind,
        missing_param,
        foreign_param,
        double_param,
        no_key,
        priority,
        foreign_action,
        no_action,
        unknown_table,
        c.entry("index", KEY, is_const=True),
    )
    assert c.write(INSERT, *malformed) == ["INVALID_ARGUMENT"] * len(malformed)


@pytest.mark.parametrize("value", [b"", b"\1" + bytes(16)])
def test_values_that_do_not_fit(controller: Controller, value: bytes) -> None:
    c = controller
    entry = c.entry("index", {"headers.flow.key": value}, c.action("set_slot", base=1, generation=1))
    assert c.write(INSERT, entry) == ["OUT_OF_RANGE"]


@BOTH
def test_padded_values_are_read_in_their_shortest_form(controller: Controller) -> None:
    c = controller
    padded = c.entry(
        "index",
        {"headers.flow.key": bytes(15) + b"\5"},
        c.action("set_slot", base=b"\0\0\0\7", generation=b"\0\2"),
    )
    c.insert(padded)
    assert c.read_table("index") == [index_entry(c, 5, base=7)]


def test_action_scopes(controller: Controller) -> None:
    c = controller
    default_only = c.entry("index", KEY, c.action("NoAction"))
    table_only = c.entry("index", action=c.action("drop"), is_default_action=True)
    assert c.write(INSERT, default_only) == ["PERMISSION_DENIED"]
    assert c.write(MODIFY, table_only) == ["PERMISSION_DENIED"]


@BOTH
def test_default_entries(controller: Controller) -> None:
    c = controller
    initial = c.entry("routes", action=c.action("drop"), is_default_action=True)
    changed = c.entry("routes", action=c.action("forward", port=3), is_default_action=True)
    wildcard = c.entry("routes", is_default_action=True)
    assert c.read(wildcard) == [initial]
    assert c.write(MODIFY, changed) == ["OK"]
    assert c.read(wildcard) == [changed]
    assert c.write(MODIFY, wildcard) == ["OK"]
    assert c.read(wildcard) == [initial]
    assert c.write(INSERT, changed) == ["INVALID_ARGUMENT"]
    assert c.write(DELETE, changed) == ["INVALID_ARGUMENT"]


def test_default_entries_that_can_not_be_written(controller: Controller) -> None:
    c = controller
    const = c.entry("acl", action=c.action("drop"), is_default_action=True)
    assert c.write(MODIFY, const) == ["PERMISSION_DENIED"]
    with_match = c.entry("routes", {ADDRESS: (1, 32)}, c.action("drop"), is_default_action=True)
    assert c.write(MODIFY, with_match) == ["INVALID_ARGUMENT"]


def test_a_keyless_table_has_only_its_default(controller: Controller) -> None:
    c = controller
    assert c.write(INSERT, c.entry("keyless", action=c.action("drop"))) == ["INVALID_ARGUMENT"]
    assert c.write(MODIFY, c.entry("keyless", action=c.action("drop"), is_default_action=True)) == ["OK"]


def test_const_entries(controller: Controller) -> None:
    c = controller
    entries = c.read_table("fixed")
    assert [e.table_entry.is_const for e in entries] == [True, True]
    other = c.entry("fixed", {"headers.flow.operation": 7}, c.action("learn"))
    assert c.write(INSERT, other) == ["PERMISSION_DENIED"]
    known = c.entry("fixed", {"headers.flow.operation": 1}, c.action("learn"))
    assert c.write(MODIFY, known) == ["PERMISSION_DENIED"]
    assert c.write(DELETE, known) == ["PERMISSION_DENIED"]


def test_initial_entries_may_be_const_one_by_one(controller: Controller) -> None:
    c = controller
    kind = "headers.flow.kind"
    const, mutable = (c.entry("initial", {kind: value}, c.action("drop")) for value in (0xDEAD, 0xBEEF))
    assert len(c.read_table("initial")) == 2
    assert c.write(DELETE, const) == ["PERMISSION_DENIED"]
    assert c.write(MODIFY, const) == ["PERMISSION_DENIED"]
    assert c.write(DELETE, mutable) == ["OK"]
    assert c.write(INSERT, mutable) == ["OK"]


def test_a_full_table(controller: Controller) -> None:
    c = controller
    entries = [c.entry("aging", {ADDRESS: address}, c.action("NoAction")) for address in range(17)]
    assert c.write(INSERT, *entries) == ["OK"] * 16 + ["RESOURCE_EXHAUSTED"]  # BMv2: UNKNOWN


def test_wildcard_reads(controller: Controller) -> None:
    c = controller
    low, high = acl_entry(c, {"operation": 1}, 5), acl_entry(c, {"operation": 2}, 9)
    c.insert(low, high, index_entry(c, 1))
    assert c.read_table("acl", priority=9) == [high]
    assert c.read(c.entry("acl", {"operation": 1}, priority=5)) == [low]
    assert c.read(c.entry("acl", {"operation": 1})) == [low]
    assert c.read(c.entry("acl", {"operation": 3})) == []
    assert c.read(c.entry("acl", {"operation": 1}, priority=6)) == []
    assert c.read(c.entry("acl", action=c.action("tag"))) == [low, high]
    assert c.read(c.entry("acl", action=c.action("drop"))) == []
    everything = c.everything("table_entry")
    assert {e.table_entry.table_id for e in everything} == {
        c.id("tables", name) for name in ("acl", "index", "fixed", "initial")
    }
    defaults = c.everything("table_entry", is_default_action=True)
    assert len(defaults) == len(c.p4info.tables)


def test_metadata_is_kept(controller: Controller) -> None:
    c = controller
    entry = index_entry(c, 1, metadata=b"cookie", controller_metadata=77)
    c.insert(entry, index_entry(c, 2))
    assert c.read_table("index", metadata=b"cookie") == [entry]
    assert c.read_table("index", metadata=b"other") == []
    assert c.write(MODIFY, index_entry(c, 1)) == ["OK"]
    assert not any(e.table_entry.metadata for e in c.read_table("index"))


def test_modify_without_an_action_keeps_it(controller: Controller) -> None:
    c = controller
    address = {ADDRESS: 9}
    c.insert(c.entry("aging", address, c.action("color"), idle_timeout_ns=10**12))
    assert c.write(MODIFY, c.entry("aging", address, idle_timeout_ns=5 * 10**12)) == ["OK"]
    assert c.read_table("aging") == [c.entry("aging", address, c.action("color"), idle_timeout_ns=5 * 10**12)]


def test_idle_timeouts_only_where_the_table_has_them(controller: Controller) -> None:
    c = controller
    assert c.write(INSERT, index_entry(c, 1, idle_timeout_ns=5)) == ["INVALID_ARGUMENT"]
    assert c.read_code(c.entry("index", time_since_last_hit=True)) == "INVALID_ARGUMENT"
    c.insert(c.entry("aging", {ADDRESS: 9}, c.action("color")))
    (entry,) = c.read_table("aging", time_since_last_hit=True)
    assert entry.table_entry.time_since_last_hit.elapsed_ns >= 0


def test_translated_values(controller: Controller) -> None:
    c = controller
    named = c.entry("named_ports", {"port": b"uplink"}, c.action("tag", value=0x1234))
    numbered = c.entry("routes", {ADDRESS: (1, 32)}, c.action("forward_named", port=b"uplink"))
    c.insert(named, numbered)
    assert c.read_table("named_ports") == [named]
    assert c.read_table("routes") == [numbered]
    too_wide = c.entry("named_ports", {"port": b"other"}, c.action("tag", value=0x12345))
    assert c.write(INSERT, too_wide) == ["OUT_OF_RANGE"]


def test_empty_and_unknown_entities(controller: Controller) -> None:
    c = controller
    empty, value_set = c.entity(), c.entity()
    value_set.value_set_entry.value_set_id = 3
    assert c.write(INSERT, empty, value_set) == ["INVALID_ARGUMENT", "INVALID_ARGUMENT"]
    assert c.write(INSERT, c.entity("extern_entry", extern_id=1)) == ["UNIMPLEMENTED"]
    assert c.write(0, index_entry(c, 1)) == ["INVALID_ARGUMENT"]
    assert c.read_code(empty) == "INVALID_ARGUMENT"
    assert c.read_code(value_set) == "INVALID_ARGUMENT"


def test_a_role_has_everything_in_scope(controller: Controller) -> None:
    """Without role configs, which are refused, `ReadRequest.role` leaves nothing out."""
    c = controller
    entry = index_entry(c, 1)
    c.insert(entry)
    request = p4runtime_pb2.ReadRequest(device_id=c.client.device_id, role="telemetry")
    request.entities.add().CopyFrom(c.entry("index"))
    assert [found for answer in c.client.stub.Read(request) for found in answer.entities] == [entry]
