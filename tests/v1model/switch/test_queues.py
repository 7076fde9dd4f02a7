"""The traffic manager in virtual time: who leaves when, what is dropped, marked and told to the program."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest

from tests.v1model.kept_programs import kept_program
from tests.v1model.switch.conftest import frame
from v1model.dataplane import DataPlaneError, Output, Replica
from v1model.switch import Switch

Make = Callable[..., Switch]
PORT = 2
# The header carries the priority in; egress writes the depths and the wait into it.
TELLS = {
    "ingress": f"std.egress_spec = {PORT}; std.priority = (bit<3>) hdr.h.a;",
    "egress": "hdr.h.b = (bit<8>) std.enq_qdepth; hdr.h.c = (bit<16>) std.deq_qdepth;"
    "hdr.h.d = std.deq_timedelta;",
}


def told(output: Output) -> tuple[int, int, int]:
    """(enq_qdepth, deq_qdepth, deq_timedelta)."""
    b, c, d = struct.unpack_from("!BHI", output.data, 1)
    return b, c, d


def sent(switch: Switch, *packets: bytes, at_us: int = 0) -> list[Output]:
    """What leaves, until nothing waits, of packets that all come at once."""
    outputs = [output for packet in packets for output in switch.inject(1, packet, at_us)]
    return outputs + switch.advance()


@pytest.fixture
def switch(make: Make) -> Switch:
    return make(**TELLS)


def test_without_limits_nothing_waits(switch: Switch) -> None:
    switch.enable_queues()
    (output,) = switch.inject(1, frame(), 7)
    assert (output.time_us, told(output)) == (7, (0, 0, 0))
    assert switch.advance() == []


def test_packets_leave_at_the_rate_of_the_port_and_are_told_so(switch: Switch) -> None:
    switch.limit_queues({"packets_per_s": 100}, PORT)
    outputs = sent(switch, *[frame()] * 4)
    assert [output.time_us for output in outputs] == [0, 10_000, 20_000, 30_000]
    assert [told(output) for output in outputs] == [(0, 0, 0), (0, 2, 10_000), (1, 1, 20_000), (2, 0, 30_000)]


def test_a_packet_that_need_not_wait_is_counted_and_takes_its_time(switch: Switch) -> None:
    switch.limit_queues({"bits_per_s": 8_000, "depth_bytes": 100}, PORT)
    first, second = switch.inject(1, frame(7), 5), switch.inject(1, frame(7), 6)
    assert [output.time_us for output in first] == [5]
    assert second == []
    length_ms = len(frame(7))  # at 8 bits a millisecond
    assert [output.time_us for output in switch.advance()] == [5 + length_ms * 1000]
    assert switch.inject(1, frame(7) + bytes(100), 10_000_000) == []
    state = switch.queue_state(PORT, 7)
    assert (state.sent, state.dropped) == (2, 1)


def test_other_ports_do_not_wait(make: Make) -> None:
    switch = make(ingress="std.egress_spec = (bit<9>) hdr.h.a;")
    switch.limit_queues({"packets_per_s": 1}, PORT)
    assert len(sent(switch, frame(PORT), frame(PORT))) == 2
    assert [output.time_us for output in sent(switch, frame(3), frame(3), at_us=5)] == [5, 5]


def test_a_rate_in_bits_counts_the_frame_as_it_came(switch: Switch) -> None:
    switch.limit_queues({"bits_per_s": 8_000_000}, PORT)
    outputs = sent(switch, *[frame(payload=bytes(992))] * 3)
    assert [output.time_us for output in outputs] == [0, 1000, 2000]


def test_what_finds_no_room_is_dropped_and_counted(switch: Switch) -> None:
    switch.limit_queues({"packets_per_s": 100, "depth_packets": 5}, PORT)
    outputs = sent(switch, *[frame()] * 10)
    assert len(outputs) == 1 + 5  # one left at once
    assert max(told(output)[0] for output in outputs) == 4
    assert switch.statistics()["drops"]["queue_full"] == 4
    state = switch.queue_state(PORT, 0)
    assert (state.packets, state.sent, state.dropped) == (0, 6, 4)


def test_a_depth_in_bytes(switch: Switch) -> None:
    switch.limit_queues({"packets_per_s": 100, "depth_packets": 0, "depth_bytes": 250}, PORT)
    assert len(sent(switch, *[frame(payload=bytes(92))] * 10)) == 1 + 2
    assert switch.queue_state(PORT, 0).bytes == 0


def test_the_higher_priority_overtakes(switch: Switch) -> None:
    switch.limit_queues({"packets_per_s": 100}, PORT)
    outputs = sent(switch, frame(0), frame(0), frame(0), frame(7), frame(3), frame(7))
    assert [output.data[0] for output in outputs] == [0, 7, 7, 3, 0, 0]


def test_fewer_queues_than_priorities(switch: Switch) -> None:
    switch.enable_queues(2)
    switch.limit_queues({"packets_per_s": 100}, PORT)
    outputs = sent(switch, frame(0), frame(0), frame(3), frame(7))
    assert [output.data[0] for output in outputs] == [0, 3, 7, 0]


def test_weights_are_packets_in_turn(switch: Switch) -> None:
    switch.limit_queues({"packets_per_s": 1000}, PORT)
    for priority, weight in ((0, 1), (1, 3)):
        switch.limit_queues({"weight": weight}, PORT, priority)
    packets = [frame(0)] * 6 + [frame(1)] * 6
    order = [output.data[0] for output in sent(switch, *packets)]
    assert order == [0, 1, 1, 1, 0, 1, 1, 1, 0, 0, 0, 0]


def test_a_queue_without_packets_loses_its_turn(switch: Switch) -> None:
    switch.limit_queues({"packets_per_s": 1000}, PORT)
    for priority, weight in ((1, 2), (4, 1), (6, 1)):
        switch.limit_queues({"weight": weight}, PORT, priority)
    packets = [frame(1)] * 5 + [frame(6)] * 2
    assert [output.data[0] for output in sent(switch, *packets)] == [1, 1, 6, 1, 1, 6, 1]


def test_ports_with_packets_are_served_in_the_order_of_their_times(make: Make) -> None:
    switch = make(ingress="std.egress_spec = (bit<9>) hdr.h.a;")
    for port, rate in ((3, 1000), (4, 400), (5, 250)):
        switch.limit_queues({"packets_per_s": rate}, port)
    outputs = sent(switch, *[frame(port) for port in (5, 4, 3)] * 3)
    assert [(output.time_us, output.port) for output in outputs if output.time_us] == [
        *((1000, 3), (2000, 3), (2500, 4)),
        *((4000, 5), (5000, 4), (8000, 5)),
    ]


def test_a_rate_that_is_raised_holds_for_what_waits(switch: Switch) -> None:
    switch.limit_queues({"packets_per_s": 10}, PORT)
    for _ in range(3):
        switch.inject(1, frame(), 0)
    switch.limit_queues({"packets_per_s": 1000}, PORT)
    assert [output.time_us for output in switch.advance(2000)] == [0, 1000]


def test_strict_priority_stands_before_weights(switch: Switch) -> None:
    switch.limit_queues({"packets_per_s": 1000}, PORT)
    switch.limit_queues({"weight": 1}, PORT, 0)
    switch.limit_queues({"weight": 1}, PORT, 1)
    order = [o.data[0] for o in sent(switch, frame(0), frame(0), frame(1), frame(0), frame(1), frame(5))]
    assert order == [0, 5, 1, 0, 1, 0]


def test_the_rate_of_a_queue_leaves_the_others_alone(switch: Switch) -> None:
    switch.limit_queues({"packets_per_s": 100}, PORT, 7)
    outputs = sent(switch, frame(7), frame(7), frame(0), frame(0))
    assert [(output.data[0], output.time_us) for output in outputs] == [(7, 0), (0, 0), (0, 0), (7, 10_000)]


def test_time_goes_on_as_far_as_is_said(switch: Switch) -> None:
    switch.limit_queues({"packets_per_s": 100}, PORT)
    assert len(switch.inject(1, frame(), 0) + switch.inject(1, frame(), 0)) == 1
    assert switch.advance(9_999) == []
    (output,) = switch.advance(10_000)
    assert output.time_us == 10_000


def test_what_was_due_leaves_before_the_next_packet_comes(switch: Switch) -> None:
    switch.limit_queues({"packets_per_s": 100}, PORT)
    for _ in range(3):
        switch.inject(1, frame(), 0)
    outputs = switch.inject(1, frame(), 15_000)
    assert [output.time_us for output in outputs] == [10_000]
    assert [told(output) for output in switch.advance()] == [(1, 1, 20_000), (1, 0, 15_000)]


def test_limits_are_taken_back(switch: Switch) -> None:
    switch.limit_queues({"packets_per_s": 1}, PORT)
    for _ in range(3):
        switch.inject(1, frame(), 0)
    switch.limit_queues({"packets_per_s": 0}, PORT)
    assert [output.time_us for output in switch.advance(5)] == [0, 0]
    assert [output.time_us for output in switch.inject(1, frame(), 6)] == [6]


def test_replicas_and_clones_wait_as_others_do(make: Make) -> None:
    switch = make(ingress="std.mcast_grp = 1;")
    switch.set_multicast_group(1, (Replica(PORT), Replica(PORT), Replica(3)))
    switch.limit_queues({"packets_per_s": 100}, PORT)
    outputs = sent(switch, frame())
    assert [(output.port, output.time_us) for output in outputs] == [(2, 0), (3, 0), (2, 10_000)]


def test_recirculated_packets_wait_again(make: Make) -> None:
    again = "if (hdr.h.a == 0) { hdr.h.a = 1; recirculate_preserving_field_list(0); }"
    switch = make(ingress=f"std.egress_spec = {PORT};", egress=again)
    switch.limit_queues({"packets_per_s": 100}, PORT)
    (output,) = sent(switch, frame())
    assert (output.data[0], output.time_us) == (1, 10_000)


def test_all_queues_together_leave_room_for_others(switch: Switch) -> None:
    """Whatever depths say: packets in queues hold at most 1,536 of the switch's 2,048 buffers."""
    switch.limit_queues({"packets_per_s": 1, "depth_packets": 0}, PORT)
    for _ in range(2000):
        switch.inject(1, frame(), 0)
    assert switch.queue_state(PORT, 0).packets == 2048 - 512
    assert switch.statistics()["drops"]["no_buffer"] == 0


def test_a_reset_empties_queues_and_keeps_limits(switch: Switch) -> None:
    switch.limit_queues({"packets_per_s": 100}, PORT)
    for _ in range(3):
        switch.inject(1, frame(), 0)
    switch.reset()
    assert switch.advance() == []
    assert [output.time_us for output in sent(switch, frame(), frame(), at_us=50_000)] == [50_000, 60_000]


@pytest.mark.parametrize(
    ("limits", "port", "priority", "word"),
    [
        ({"depth": 1}, 1, None, "queues have no depth"),
        ({"depth_packets": -1}, 1, None, "depth_packets -1"),
        ({"depth_packets": 1}, 512, None, "port 512"),
        ({"depth_packets": 1}, 1, 8, "priority 8"),
    ],
)
def test_limits_that_make_no_sense(
    switch: Switch, limits: dict[str, int], port: int, priority: int | None, word: str
) -> None:
    with pytest.raises(DataPlaneError, match=word):
        switch.limit_queues(limits, port, priority)


# --- ECN -------------------------------------------------------------------------------------------


def ipv4(ecn: int) -> bytes:
    header = bytearray(
        struct.pack("!BBHHHBBH4s4s", 0x45, 0xA0 | ecn, 20, 1, 0, 64, 17, 0, b"\x0a\0\0\1", b"\x0a\0\0\2")
    )
    header[10:12] = checksum(header).to_bytes(2, "big")
    return bytes(header)


def checksum(header: bytes | bytearray) -> int:
    total: int = sum(struct.unpack("!10H", header))
    total = (total & 0xFFFF) + (total >> 16)
    return ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF


ETHERNET = bytes(12)
KINDS = {
    "ipv4": lambda ecn: ETHERNET + b"\x08\x00" + ipv4(ecn),
    "tagged": lambda ecn: ETHERNET + b"\x81\x00\x00\x01\x08\x00" + ipv4(ecn),
    "ipv6": lambda ecn: ETHERNET + b"\x86\xdd" + bytes((0x6A, ecn << 4)) + bytes(38),
}
FORWARDS = {"ingress": f"std.egress_spec = {PORT};", "parser": "state start { transition accept; }"}


@pytest.mark.parametrize("kind", KINDS)
def test_marks_by_threshold(make: Make, kind: str) -> None:
    switch = make(**FORWARDS)
    switch.limit_queues({"packets_per_s": 100, "ecn_packets": 2}, PORT)
    switch.limit_queues({"ecn_packets": 2}, PORT, 0)
    outputs = sent(switch, *[KINDS[kind](2)] * 5)
    assert [output.data == KINDS[kind](3) for output in outputs] == [False, False, False, True, True]
    assert [output.data == KINDS[kind](2) for output in outputs] == [True, True, True, False, False]
    assert switch.queue_state(PORT, 0).marked == 2


def test_marks_by_bytes(make: Make) -> None:
    switch = make(**FORWARDS)
    switch.limit_queues({"packets_per_s": 100, "ecn_bytes": 60}, PORT)
    outputs = sent(switch, *[KINDS["ipv4"](1)] * 5)  # 34 bytes each
    assert [output.data[15] & 3 for output in outputs] == [1, 1, 1, 3, 3]
    assert all(checksum(output.data[14:34]) == 0 for output in outputs)


@pytest.mark.parametrize("packet", [KINDS["ipv4"](0), ETHERNET + b"\x08\x06" + bytes(40), bytes(10)])
def test_what_cannot_be_marked_is_left_alone(make: Make, packet: bytes) -> None:
    switch = make(**FORWARDS)
    switch.limit_queues({"packets_per_s": 100, "ecn_packets": 1}, PORT)
    assert [output.data for output in sent(switch, *[packet] * 4)] == [packet] * 4
    assert switch.queue_state(PORT, 0).marked == 0


def test_the_program_of_bmv2_s_users() -> None:
    """Rate 100, depth 50: a hundred packets a second leave, depths rise to about 50, priority 7 overtakes."""
    from v1model.compile import compile_p4

    path = kept_program(
        """#include <core.p4>
#include <v1model.p4>
header k_t { bit<8> prio; bit<24> enq; bit<24> deq; bit<32> delta; }
struct headers_t { k_t k; }
struct meta_t { }
parser P(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start { p.extract(h.k); transition accept; }
}
control V(inout headers_t h, inout meta_t m) { apply { } }
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply { s.egress_spec = 2; s.priority = (bit<3>) h.k.prio; }
}
control E(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply { h.k.enq = (bit<24>) s.enq_qdepth; h.k.deq = (bit<24>) s.deq_qdepth; h.k.delta = s.deq_timedelta; }
}
control C(inout headers_t h, inout meta_t m) { apply { } }
control D(packet_out p, in headers_t h) { apply { p.emit(h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"""
    )
    with Switch(compile_p4(path, quick=True)) as switch:
        switch.limit_queues({"packets_per_s": 100}, PORT)
        switch.limit_queues({"depth_packets": 50})
        slow, urgent = bytes((0,)) + bytes(10), bytes((7,)) + bytes(10)
        outputs = [o for i in range(200) for o in switch.inject(1, slow, i * 1000)]  # a thousand a second
        outputs += switch.inject(1, urgent, 200_000)
        before = len(outputs)
        outputs += switch.advance()
    within = [output for output in outputs if output.time_us <= 200_000]
    assert len(within) == 21
    assert 45 <= max(int.from_bytes(output.data[1:4], "big") for output in outputs) <= 51
    assert next(output.data[0] for output in outputs[before:]) == 7
