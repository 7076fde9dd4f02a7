"""BMv2's Thrift services of a running weir-switch."""

from __future__ import annotations

import json
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.v1model.test_cli import ANY_PORT, running_switch
from tests.v1model.thrift.client import Client, Raised
from v1model.remote.own_calls import p4runtime_device
from v1model.thrift.binary import (
    BOOL,
    CALL,
    I16,
    I32,
    I64,
    STRING,
    ListOf,
    StructOf,
    Type,
    field,
    message,
    struct_of,
)
from v1model.thrift.tables import COUNTER_VALUE
from v1model.thrift.values import EXACT, LPM, MATCH_PARAMS, RANGE, RATES, TERNARY

ROOT = Path(__file__).parents[3]
PROGRAM = Path(__file__).parents[1] / "remote" / "commands.p4"
CONTEXT = (I32, 0)
DATA = ListOf(STRING)
OPTIONS = StructOf((I32,))
MIRRORING = StructOf((I32, I32))
CRC32 = StructOf((I32, I32, I32, BOOL, BOOL))
DUPLICATE, INVALID_HANDLE, INVALID_TABLE, INVALID_ACTION, WRONG_TYPE = 17, 2, 7, 8, 9
BAD_KEY, BAD_DATA, METERS_DISABLED, NO_SWAP = 18, 26, 5, 3


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with running_switch(PROGRAM, "--thrift-port", "0", *ANY_PORT) as (process, _):
        assert process.stdout
        line = process.stdout.readline()
        assert line.startswith("Thrift on 127.0.0.1:")
        yield int(line.rpartition(":")[2])


@pytest.fixture
def call(port: int) -> Iterator[Client]:
    client = Client(port)
    client("standard:bm_reset_state")
    yield client
    client.close()


def lpm(value: bytes, prefix: int) -> tuple[object, ...]:
    return LPM, None, (value, prefix), None, None, None


def add_route(call: Client, address: bytes, prefix: int, out: int) -> int:
    handle = call(
        "standard:bm_mt_add_entry",
        CONTEXT,
        (STRING, "In.route"),
        (MATCH_PARAMS, [lpm(address, prefix)]),
        (STRING, "In.to"),
        (DATA, [bytes([out]), bytes(5) + b"\x07"]),
        (OPTIONS, (None,)),
    )
    return int(handle)


def test_entries_have_handles(call: Client) -> None:
    assert [add_route(call, bytes([10, 0, n, 9]), 24, n) for n in (1, 2, 3)] == [0, 1, 2]
    with pytest.raises(Raised) as again:
        add_route(call, b"\x0a\0\1\0", 24, 4)
    assert again.value.code == DUPLICATE
    call("standard:bm_mt_delete_entry", CONTEXT, (STRING, "In.route"), (I32, 1))
    assert call("standard:bm_mt_get_num_entries", CONTEXT, (STRING, "In.route")) == 2
    assert add_route(call, b"\x0a\0\4\0", 24, 4) == 1
    call(
        "standard:bm_mt_modify_entry",
        CONTEXT,
        (STRING, "In.route"),
        (I32, 0),
        (STRING, "In.drop"),
        (DATA, []),
    )
    entries = call("standard:bm_mt_get_entries", CONTEXT, (STRING, "In.route"))
    assert all(one.pop(5)[1] == 0 for one in entries)  # no timeout
    assert [(one[3], one[1][0][3], one[4][2], one[4].get(3)) for one in entries] == [
        (0, {1: b"\x0a\0\1\0", 2: 24}, b"In.drop", []),
        (1, {1: b"\x0a\0\4\0", 2: 24}, b"In.to", [b"\0\4", bytes(5) + b"\7"]),
        (2, {1: b"\x0a\0\3\0", 2: 24}, b"In.to", [b"\0\3", bytes(5) + b"\7"]),
    ]
    key = (MATCH_PARAMS, [lpm(b"\x0a\0\3\0", 24)])
    found = call("standard:bm_mt_get_entry_from_key", CONTEXT, (STRING, "In.route"), key, (OPTIONS, (None,)))
    same = call("standard:bm_mt_get_entry", CONTEXT, (STRING, "In.route"), (I32, 2))
    assert found.pop(5)
    assert same.pop(5)
    assert found == entries[2] == same
    call("standard:bm_mt_clear_entries", CONTEXT, (STRING, "In.route"), (BOOL, False))
    assert call("standard:bm_mt_get_entries", CONTEXT, (STRING, "In.route")) == []


def test_matches_of_all_kinds_and_priorities(call: Client) -> None:
    match = [
        (TERNARY, None, None, (b"\x0a\0\0\0", b"\xff\0\0\0"), None, None),
        (RANGE, None, None, None, None, (b"\4\0", b"\7\xff")),
    ]
    table = (STRING, "In.acl")
    drop: tuple[tuple[Type, Any], ...] = ((STRING, "In.drop"), (DATA, []))
    call("standard:bm_mt_add_entry", CONTEXT, table, (MATCH_PARAMS, match), *drop, (OPTIONS, (10,)))
    (entry,) = call("standard:bm_mt_get_entries", CONTEXT, table)
    assert entry[1] == [
        {1: TERNARY, 4: {1: b"\x0a\0\0\0", 2: b"\xff\0\0\0"}},
        {1: RANGE, 6: {1: b"\4\0", 2: b"\7\xff"}},
    ]
    assert entry[2] == {1: 10}
    exact = [(EXACT, (b"\1\2\3\4",), None, None, None, None)] * 2
    with pytest.raises(Raised) as wrong:
        call("standard:bm_mt_add_entry", CONTEXT, table, (MATCH_PARAMS, exact), *drop, (OPTIONS, (1,)))
    assert wrong.value.code == BAD_KEY


@pytest.mark.parametrize(
    ("table", "action", "data", "code"),
    [
        ("In.nothing", "In.drop", [], INVALID_TABLE),
        ("In.route", "In.nothing", [], INVALID_ACTION),
        ("In.route", "In.to", [b"\1"], BAD_DATA),
        ("In.route", "In.to", [b"\2\0", b"\0"], BAD_DATA),
        ("In.balance", "In.drop", [], WRONG_TYPE),
    ],
)
def test_what_is_wrong_has_bmv2_s_code(
    call: Client, table: str, action: str, data: list[bytes], code: int
) -> None:
    with pytest.raises(Raised) as raised:
        call(
            "standard:bm_mt_add_entry",
            CONTEXT,
            (STRING, table),
            (MATCH_PARAMS, [lpm(bytes(4), 8)]),
            (STRING, action),
            (DATA, data),
            (OPTIONS, (None,)),
        )
    assert raised.value.code == code


def test_default_entries(call: Client) -> None:
    route = (STRING, "In.route")
    call("standard:bm_mt_set_default_action", CONTEXT, route, (STRING, "In.to"), (DATA, [b"\0\5", bytes(6)]))
    default = call("standard:bm_mt_get_default_entry", CONTEXT, route)
    assert (default[2], default[3]) == (b"In.to", [b"\0\5", bytes(6)])
    call("standard:bm_mt_reset_default_entry", CONTEXT, route)
    assert call("standard:bm_mt_get_default_entry", CONTEXT, route)[2] == b"In.drop"


def test_direct_counters_and_meters(call: Client) -> None:
    handle = (I32, add_route(call, b"\x0a\0\0\0", 8, 1))
    route = (STRING, "In.route")
    call("standard:bm_mt_write_counter", CONTEXT, route, handle, (COUNTER_VALUE, (500, 5)))
    assert call("standard:bm_mt_read_counter", CONTEXT, route, handle) == {1: 500, 2: 5}
    call("standard:bm_mt_reset_counters", CONTEXT, route)
    assert call("standard:bm_mt_read_counter", CONTEXT, route, handle) == {1: 0, 2: 0}
    call("standard:bm_mt_set_meter_rates", CONTEXT, route, handle, (RATES, [(0.5, 10), (1.0, 20)]))
    assert call("standard:bm_mt_get_meter_rates", CONTEXT, route, handle) == [
        {1: 0.5, 2: 10},
        {1: 1.0, 2: 20},
    ]
    with pytest.raises(Raised) as none:
        call("standard:bm_mt_get_meter_rates", CONTEXT, (STRING, "In.acl"), (I32, 0))
    assert none.value.code == METERS_DISABLED
    with pytest.raises(Raised) as gone:
        call("standard:bm_mt_read_counter", CONTEXT, route, (I32, 77))
    assert gone.value.code == INVALID_HANDLE


def test_counters_meters_and_registers(call: Client) -> None:
    """A name may be the end of the whole one."""
    call("standard:bm_counter_write", CONTEXT, (STRING, "seen"), (I32, 1), (COUNTER_VALUE, (500, 5)))
    assert call("standard:bm_counter_read", CONTEXT, (STRING, "In.seen"), (I32, 1)) == {1: 500, 2: 5}
    call("standard:bm_counter_reset_all", CONTEXT, (STRING, "In.seen"))
    assert call("standard:bm_counter_read", CONTEXT, (STRING, "In.seen"), (I32, 1)) == {1: 0, 2: 0}
    call("standard:bm_meter_array_set_rates", CONTEXT, (STRING, "In.rate"), (RATES, [(1.0, 5), (2.0, 6)]))
    assert call("standard:bm_meter_get_rates", CONTEXT, (STRING, "In.rate"), (I32, 3))[1] == {1: 2.0, 2: 6}
    cells = (STRING, "In.cells")
    call("standard:bm_register_write", CONTEXT, cells, (I32, 2), (I64, -1))
    call("standard:bm_register_write_range", CONTEXT, cells, (I32, 0), (I32, 2), (I64, 7))
    assert call("standard:bm_register_read_all", CONTEXT, cells) == [7, 7, 0xFFFFFFFF, 0]
    call("standard:bm_register_reset", CONTEXT, cells)
    assert call("standard:bm_register_read", CONTEXT, cells, (I32, 2)) == 0
    with pytest.raises(Raised) as outside:
        call("standard:bm_register_read", CONTEXT, cells, (I32, 4))
    assert outside.value.code == 2


def test_members_groups_and_indirect_entries(call: Client) -> None:
    paths, balance = (STRING, "In.paths"), (STRING, "In.balance")
    data = (DATA, [b"\1", bytes(6)])
    for action in ((STRING, "In.to"), data), ((STRING, "In.drop"), (DATA, [])):
        call("standard:bm_mt_act_prof_add_member", CONTEXT, paths, *action)
    assert call("standard:bm_mt_act_prof_create_group", CONTEXT, paths) == 0
    for member in (0, 1):
        call("standard:bm_mt_act_prof_add_member_to_group", CONTEXT, paths, (I32, member), (I32, 0))
    call("standard:bm_mt_act_prof_remove_member_from_group", CONTEXT, paths, (I32, 0), (I32, 0))
    assert call("standard:bm_mt_act_prof_get_groups", CONTEXT, paths) == [{1: 0, 2: [1]}]
    assert [one[2] for one in call("standard:bm_mt_act_prof_get_members", CONTEXT, paths)] == [
        b"In.to",
        b"In.drop",
    ]
    keys = [(MATCH_PARAMS, [(EXACT, (bytes([n]),), None, None, None, None)]) for n in (1, 2)]
    call("standard:bm_mt_indirect_add_entry", CONTEXT, balance, keys[0], (I32, 1), (OPTIONS, (None,)))
    call("standard:bm_mt_indirect_ws_add_entry", CONTEXT, balance, keys[1], (I32, 0), (OPTIONS, (None,)))
    call("standard:bm_mt_indirect_modify_entry", CONTEXT, balance, (I32, 0), (I32, 0))
    entries = call("standard:bm_mt_get_entries", CONTEXT, balance)
    assert [one[4] for one in entries] == [{1: 2, 4: 0}, {1: 3, 5: 0}]
    call("standard:bm_mt_indirect_delete_entry", CONTEXT, balance, (I32, 1))
    call("standard:bm_mt_act_prof_delete_group", CONTEXT, paths, (I32, 0))


def test_multicast_and_mirroring(call: Client) -> None:
    pre = "simple_pre_lag:bm_mc"
    call(f"{pre}_mgrp_create", CONTEXT, (I32, 5))
    assert call(f"{pre}_node_create", CONTEXT, (I32, 400), (STRING, "1110"), (STRING, "")) == 0
    call(f"{pre}_node_associate", CONTEXT, (I32, 5), (I32, 0))
    call(f"{pre}_node_update", CONTEXT, (I32, 0), (STRING, "110"), (STRING, ""))
    shown = json.loads(call(f"{pre}_get_entries", CONTEXT))
    assert shown["mgrps"] == [{"id": 5, "l1_handles": [0]}]
    assert shown["l2_handles"] == [{"handle": 0, "ports": [1, 2], "lags": []}]
    call("simple_switch:mirroring_session_add", (I32, 9), (MIRRORING, (None, 5)))
    assert call("simple_switch:mirroring_session_get", (I32, 9)) == {2: 5}
    call("simple_switch:mirroring_session_add", (I32, 9), (MIRRORING, (3, None)))
    assert call("simple_switch:mirroring_session_get", (I32, 9)) == {1: 3}
    call("simple_switch:mirroring_session_delete", (I32, 9))
    with pytest.raises(Raised):
        call("simple_switch:mirroring_session_get", (I32, 9))
    call(f"{pre}_node_dissociate", CONTEXT, (I32, 5), (I32, 0))
    call(f"{pre}_node_destroy", CONTEXT, (I32, 0))
    call(f"{pre}_mgrp_destroy", CONTEXT, (I32, 5))
    assert json.loads(call(f"{pre}_get_entries", CONTEXT))["mgrps"] == []


def test_value_sets(call: Client) -> None:
    known = (STRING, "Pa.known")
    call("standard:bm_parse_vset_add", CONTEXT, known, (STRING, b"\0\x50"))
    assert call("standard:bm_parse_vset_get", CONTEXT, known) == [b"\0\x50"]
    call("standard:bm_parse_vset_remove", CONTEXT, known, (STRING, b"\0\x50"))
    assert call("standard:bm_parse_vset_get", CONTEXT, known) == []


def test_the_config_is_described_as_bmv2_s_tools_read_it(call: Client) -> None:
    described = json.loads(call("standard:bm_get_config"))
    ingress = described["pipelines"][0]
    tables = {table["name"]: table for table in ingress["tables"]}
    assert {name: table["type"] for name, table in tables.items()} == {
        "In.route": "simple",
        "In.acl": "simple",
        "In.balance": "indirect_ws",
    }
    assert tables["In.acl"]["match_type"] == "range"
    assert ingress["source_info"]["source_fragment"] == "In"
    assert described["calculations"] == [{"name": "calc", "id": 0, "algo": "crc32_custom"}]
    actions = {action["name"]: action["runtime_data"] for action in described["actions"]}
    assert actions["In.to"] == [{"name": "port", "bitwidth": 9}, {"name": "mac", "bitwidth": 48}]


def test_a_config_is_loaded_and_swapped_in(call: Client) -> None:
    add_route(call, b"\x0a\0\0\0", 8, 1)
    config = call("standard:bm_get_config")
    call("standard:bm_load_new_config", (STRING, config))
    assert call("standard:bm_mt_get_num_entries", CONTEXT, (STRING, "In.route")) == 1  # it forwards still
    call("standard:bm_swap_configs")
    assert call("standard:bm_mt_get_num_entries", CONTEXT, (STRING, "In.route")) == 0
    with pytest.raises(Raised) as nothing:
        call("standard:bm_swap_configs")
    assert nothing.value.code == NO_SWAP


def test_custom_crcs(call: Client) -> None:
    """What they then compute: tests/v1model/switch/test_externs.py."""
    config = (CRC32, (0x04C11DB7, -1, -1, False, False))
    call("standard:bm_set_crc32_custom_parameters", CONTEXT, (STRING, "calc"), config)
    for name, code in (("calc_7", 1), ("calc", 2)):
        kind = StructOf((I16, I16, I16, BOOL, BOOL))
        with pytest.raises(Raised) as raised:
            call(
                "standard:bm_set_crc16_custom_parameters",
                CONTEXT,
                (STRING, name),
                (kind, (0x1021, -1, 0, False, False)),
            )
        assert raised.value.code == code


def test_the_device(call: Client, port: int) -> None:
    assert call("standard:bm_mgmt_get_info") == {1: 0, 2: port}
    assert call("standard:bm_dev_mgr_show_ports") == []
    assert call("simple_switch:get_time_elapsed_us") > 0
    with pytest.raises(Raised):
        call("standard:bm_dev_mgr_add_port", (STRING, "nowhere9"), (I32, 1), (STRING, ""))


def test_queues_have_limits(call: Client) -> None:
    """What they then do: tests/v1model/switch/test_queues.py."""
    assert call("simple_switch:set_egress_queue_depth", (I32, 2), (I32, 50)) == 0
    assert call("simple_switch:set_all_egress_queue_rates", (I64, 100)) == 0
    assert call("simple_switch:set_egress_priority_queue_rate", (I32, 2), (I32, 7), (I64, 100)) == 0
    wrong = struct_of(field(1, I32, 600), field(2, I32, 50))
    name = "simple_switch:set_egress_queue_depth"
    assert "port 600" in call.refused(message(name, CALL, 1, wrong))[1]


def test_a_device_of_another_number_is_found() -> None:
    arguments: list[str | Path] = [PROGRAM, "--device-id", "7", "--thrift-port", "0", *ANY_PORT]
    with running_switch(*arguments) as (process, address):
        assert process.stdout
        found = p4runtime_device(int(process.stdout.readline().rpartition(":")[2]))
        assert found == (7, address)


def test_weir_cli_finds_a_switch_by_its_thrift_port(call: Client, port: int) -> None:
    """As simple_switch_CLI is called."""
    add_route(call, b"\x0a\0\0\0", 8, 1)
    command = [sys.executable, "-m", "v1model", "cli", "--thrift-port", str(port)]
    done = subprocess.run(
        command, cwd=ROOT, input="table_num_entries route\n", capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "1\n", "")
    nowhere = subprocess.run([*command[:-1], "9"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert nowhere.returncode == 1
    assert "no weir-switch with --thrift-port 9" in nowhere.stderr


def test_strange_calls_are_answered_and_the_connection_goes_on(call: Client) -> None:
    assert call.refused(message("standard:bm_nothing", CALL, 1, struct_of()))[0] == "bm_nothing"
    for name in ("standard:__init__", "standard:_table", "nothing:bm_mt_get_entries", "bm_reset_state"):
        assert call.refused(message(name, CALL, 1, struct_of()))[1].startswith("no call")
    wrong = struct_of(field(2, I32, 5))
    assert call.refused(message("standard:bm_mt_get_entries", CALL, 1, wrong))[0] == "bm_mt_get_entries"
    assert call("standard:bm_mgmt_get_info")[1] == 0


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        struct.pack(">Ii", 0x80010001, -5),
        struct.pack(">Ii", 0x80010001, 1 << 30),
        message("standard:x", CALL, 1, b"\x0f\x00\x01\x08" + struct.pack(">i", 1 << 30)),
        message("standard:x", CALL, 1, b"\x0f\x00\x01\x0f\0\0\0\1" * 40),
        message("standard:x", CALL, 1, b"\x7f\x00\x01"),
    ],
    ids=["http", "negative", "long name", "long list", "deep", "no type"],
)
def test_what_is_no_message_ends_its_connection_alone(port: int, call: Client, data: bytes) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=60) as stranger:
        stranger.sendall(data)
        assert stranger.recv(100) == b""
    assert call("standard:bm_mgmt_get_info")[1] == 0
