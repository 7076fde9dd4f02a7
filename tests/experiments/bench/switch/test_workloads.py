"""The frames of the workloads are those of the protocol, in the sizes that the ratios speak of."""

import pytest
from scapy.layers.inet import IP
from scapy.layers.l2 import Ether

from experiments.bench.switch.workloads import (
    BLOCKS,
    FRAGMENTS,
    GET_BYTES,
    WORKLOADS,
    Workload,
    fill_plan,
    key_of,
)
from hostlib.protocol import wire


def by_name(name: str) -> Workload:
    (workload,) = (one for one in WORKLOADS if one.name == name)
    return workload


def test_sizes() -> None:
    assert (GET_BYTES, wire.VALUE_FRAME_BYTES) == (122, 634)


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.name)
def test_requests_have_one_length_and_their_ipv4_checksum_is_right(workload: Workload) -> None:
    plan = workload.make_plan(1)
    assert plan.ports == len(workload.cables)
    request_bytes = wire.VALUE_FRAME_BYTES if workload.name == "puts" else GET_BYTES
    assert {len(frame.data) for frame in plan.frames} == {request_bytes}
    packet = Ether(plan.frames[0].data)
    given = packet[IP].chksum
    del packet[IP].chksum
    assert Ether(bytes(packet))[IP].chksum == given


def test_hits_ask_once_for_every_fragment_of_the_pool() -> None:
    plan = by_name("hits").make_plan(1)
    asked = set()
    for frame in plan.frames:
        message = wire.decode(frame.data[wire.FRAME_HEADER_BYTES :])
        assert message.op == wire.OP_GET
        asked.add((message.key, message.fragment))
    assert asked == {(key_of(block), fragment) for block in range(BLOCKS) for fragment in range(FRAGMENTS)}


def test_the_seed_decides_the_order() -> None:
    hits = by_name("hits")
    assert hits.make_plan(1).frames == hits.make_plan(1).frames
    assert hits.make_plan(1).frames != hits.make_plan(2).frames


def test_values_that_fill_the_pool_pass_their_check() -> None:
    frames = fill_plan().frames
    assert len(frames) == 2 * BLOCKS * FRAGMENTS
    message = wire.decode(frames[-1].data[wire.FRAME_HEADER_BYTES :])
    assert (message.op, message.key, message.fragment) == (wire.OP_VALUE, key_of(BLOCKS - 1), FRAGMENTS - 1)


@pytest.mark.parametrize("name", ["misses", "merges"])
def test_the_number_makes_a_new_key_and_a_new_sequence(name: str) -> None:
    plan = by_name(name).make_plan(1)
    frame = bytearray(plan.frames[0].data)
    for offset in (plan.number_offset, plan.key_offset):
        frame[offset : offset + 4] = (77).to_bytes(4, "big")
    message = wire.decode(bytes(frame[wire.FRAME_HEADER_BYTES :]))
    assert message.sequence == 77
    assert message.key[:4] == (77).to_bytes(4, "big")
