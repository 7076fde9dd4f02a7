"""Look-ups in the program's P4Info, and what is said of a program that is not ours."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from controller import p4_constants
from controller.errors import P4InfoError
from controller.p4runtime.p4info import Prefix, Program, canonical, load_p4info
from v1model.protos.p4.config.v1 import p4info_pb2

if TYPE_CHECKING:
    from topologies.engines import Artifacts, Engine


@pytest.fixture
def program(compiled: tuple[Engine, Artifacts]) -> Program:
    """P4Info of p4/weir.p4."""
    return Program(load_p4info(compiled[1].p4info))


def test_the_program_has_all_that_the_controller_names(program: Program) -> None:
    for name in (
        p4_constants.PORT_ROLES, p4_constants.PORT_TENANTS, p4_constants.RECEIVERS, p4_constants.ROUTES,
        p4_constants.HOSTS, *p4_constants.STORES, p4_constants.BLOCKS, p4_constants.MISS_SETTINGS,
        p4_constants.MERGE_SETTINGS,
    ):  # fmt: skip
        assert program.table_id(name) >> 24 == 0x02
    for name in (p4_constants.OUTCOMES, p4_constants.BLOCK_HITS):
        assert program.counter_id(name) >> 24 == 0x12
    for name in (
        p4_constants.REQUEST_METER, p4_constants.SPECIAL_METER, p4_constants.PUT_METER,
        p4_constants.CONTROLLER_METER,
    ):  # fmt: skip
        assert program.meter_id(name) >> 24 == 0x14
    assert program.digest_id(p4_constants.HOT_MISS) >> 24 == 0x17
    assert program.register_size(p4_constants.SLOT_CHECK) == 2 * program.table_size(p4_constants.BLOCKS)


def test_an_entry_has_ids_and_the_shortest_bytestrings(program: Program) -> None:
    entry = program.entry(
        p4_constants.ROUTES, {"dst_addr": Prefix(0x0A000001, 32)}, "forward", next_hop=2, port=510
    )
    assert entry.match[0].lpm.value == b"\x0a\x00\x00\x01"
    assert entry.match[0].lpm.prefix_len == 32
    assert [param.value for param in entry.action.action.params] == [b"\x02", b"\x01\xfe"]
    assert not entry.is_default_action
    assert program.parameters(entry) == {"next_hop": 2, "port": 510}


def test_a_prefix_of_length_0_is_no_match(program: Program) -> None:
    entry = program.entry(p4_constants.ROUTES, {"dst_addr": Prefix(0, 0)}, "forward", next_hop=2, port=1)
    assert not entry.match
    assert not entry.is_default_action


def test_what_does_not_exist_is_answered_with_what_does(program: Program) -> None:
    with pytest.raises(
        P4InfoError, match=r"tables: 'nothing' does not exist: there are .*ingress\.routing\.routes"
    ):
        program.table_id("nothing")
    with pytest.raises(P4InfoError, match=r"action 'fly' does not exist: there are .*forward, .*no_route"):
        program.entry(p4_constants.ROUTES, {"dst_addr": Prefix(1, 32)}, "fly")
    with pytest.raises(P4InfoError, match="parameter 'speed' does not exist: there are next_hop, port"):
        program.entry(p4_constants.ROUTES, {"dst_addr": Prefix(1, 32)}, "forward", speed=1)
    with pytest.raises(P4InfoError, match="match field 'colour' does not exist: there are dst_addr"):
        program.entry(p4_constants.ROUTES, {"colour": 1}, "forward")
    with pytest.raises(P4InfoError, match="counters: 'x' does not exist: there are none"):
        Program(p4info_pb2.P4Info()).counter_id("x")


def test_a_file_that_is_no_p4info_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "x.txtpb"
    file.write_bytes(b"\xff{")
    with pytest.raises(P4InfoError, match=r"x\.txtpb: not a P4Info text file"):
        load_p4info(file)
    with pytest.raises(P4InfoError, match="nothing: No such file"):
        load_p4info(tmp_path / "nothing")


@pytest.mark.parametrize(("value", "data"), [(0, b"\0"), (255, b"\xff"), (256, b"\x01\0")])
def test_canonical_bytestrings(value: int, data: bytes) -> None:
    assert canonical(value) == data
