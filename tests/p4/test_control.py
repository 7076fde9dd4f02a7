"""Misses reported to the controller, and its control operations in band."""

import pytest
from scapy.layers.inet import IP, UDP

from controller import p4_constants as p4
from hostlib.protocol import wire
from hostlib.tools.scapy_layer import KV
from tests.p4.rig import (
    CONTROLLER_IP,
    FRAGMENTS,
    NODES,
    STORE,
    TENANT,
    Rig,
    checksums_right,
    ip,
    key_of,
    number,
    value_of,
)
from v1model.dataplane import Replica

KEY = key_of("block")
NODE, OTHER, _ = NODES
EPOCH_US = 1 << 26
COUNT = 8  # its place in the digest


def miss(rig: Rig, key: bytes, times: int) -> None:
    for _ in range(times):
        rig.send(NODE, rig.get(NODE, key))
        rig.send(STORE, rig.value(NODE, key))


def test_a_hot_miss_is_reported_once_and_then_at_powers_of_two(rig: Rig) -> None:
    rig.report_from(3)
    counts = []
    for _ in range(17):
        miss(rig, KEY, 1)
        counts += [sample[COUNT] for sample in rig.digests()]
    assert counts == [3, 4, 8, 16]


def test_a_report_says_what_the_controller_needs(rig: Rig) -> None:
    rig.report_from(1)
    place = {"tenant": TENANT, "parent_key": 0xABCD, "depth": 5, "chain_blocks": 9}
    rig.send(STORE, rig.value(NODE, KEY, **place, backlog_ms=33, recompute_ms=44))
    (sample,) = rig.digests()
    key = int.from_bytes(KEY, "big")
    assert sample == (TENANT, key, 0xABCD, 5, 9, FRAGMENTS, 33, 44, 1, 0, number(ip(STORE)))


def test_threshold_zero_reports_nothing(rig: Rig) -> None:
    rig.report_from(0)
    miss(rig, KEY, 4)
    assert rig.digests() == []


@pytest.mark.parametrize(
    "fields",
    [{"fragment": 1}, {"flags": wire.FLAG_BYPASS}, {"flags": wire.FLAG_FROM_POOL}],
    ids=str,
)
def test_only_first_fragments_from_homes_count(rig: Rig, fields: dict[str, int]) -> None:
    rig.report_from(1)
    rig.send(STORE, rig.value(NODE, KEY, **fields))
    assert rig.digests() == []


def test_requests_and_what_is_not_found_do_not_count(rig: Rig) -> None:
    rig.report_from(1)
    rig.send(NODE, rig.get(NODE, KEY))
    rig.send(STORE, rig.frame(STORE, NODE, KV(op=wire.OP_NOT_FOUND, key=KEY, fragments=FRAGMENTS)))
    assert rig.digests() == []


def test_merged_requests_count_once_and_the_report_says_who_waited(rig: Rig) -> None:
    rig.report_from(1)
    rig.send(NODE, rig.get(NODE, KEY))
    rig.send(OTHER, rig.get(OTHER, KEY))
    rig.send(STORE, rig.value(NODE, KEY))
    ((*_, count, waiters, _),) = rig.digests()
    assert (count, waiters) == (1, 1 << NODE | 1 << OTHER)


def test_a_block_with_an_entry_is_not_reported(rig: Rig) -> None:
    rig.report_from(1)
    rig.install(KEY)
    miss(rig, KEY, 2)
    assert rig.digests() == []


def test_counts_fade_with_time(rig: Rig) -> None:
    rig.report_from(2)
    rig.now_us = 10 * EPOCH_US
    miss(rig, KEY, 1)
    rig.now_us = 13 * EPOCH_US
    miss(rig, KEY, 1)
    assert rig.digests() == []
    miss(rig, KEY, 1)
    assert [sample[COUNT] for sample in rig.digests()] == [2]


def test_reclaim_sends_the_block_to_its_destination(rig: Rig) -> None:
    generation = rig.install(KEY)
    rig.fill(KEY, 1)
    ((port, put),) = rig.send(p4.CPU_PORT, rig.control(wire.OP_RECLAIM, KEY, 1))
    assert (port, put[IP].dst, put[IP].src) == (STORE, ip(STORE), CONTROLLER_IP)
    assert (put[KV].op, put[KV].flags, put[KV].generation) == (wire.OP_PUT, wire.FLAG_RECLAIM, generation)
    assert bytes(wire.decode(bytes(put[UDP].payload)).value) == value_of(KEY, 1)
    assert checksums_right(put)


def test_the_acknowledgement_of_a_reclaim_reaches_the_controller(rig: Rig) -> None:
    ack = KV(op=wire.OP_PUT_ACK, key=KEY, fragments=FRAGMENTS, flags=wire.FLAG_RECLAIM)
    assert rig.send(STORE, rig.frame(STORE, CONTROLLER_IP, ack)) == []
    ((ingress_port, packet),) = rig.to_cpu
    assert (ingress_port, packet[KV].op, packet[KV].key) == (STORE, wire.OP_PUT_ACK, KEY)


@pytest.mark.parametrize("op", [wire.OP_RECLAIM, wire.OP_PUSH])
@pytest.mark.parametrize("installed", [False, True])
def test_what_no_slot_holds_is_answered_with_not_found(rig: Rig, op: int, installed: bool) -> None:
    if installed:
        rig.install(KEY)
    assert rig.send(p4.CPU_PORT, rig.control(op, KEY)) == []
    ((_, packet),) = rig.to_cpu
    assert (packet[KV].op, packet[IP].dst) == (wire.OP_NOT_FOUND, CONTROLLER_IP)
    assert rig.outcomes() == {"not_resident": 1}


def filled(rig: Rig, fragment: int) -> bool:
    return [port for port, _ in rig.send(NODE, rig.get(NODE, KEY, fragment, flags=wire.FLAG_RETRY))] == [NODE]


def test_one_fill_fetches_all_fragments_into_their_slots(rig: Rig) -> None:
    rig.install(KEY)
    ((port, request),) = rig.send(p4.CPU_PORT, rig.control(wire.OP_FILL, KEY))
    assert (port, request[KV].op, request[KV].flags) == (STORE, wire.OP_GET, wire.FLAG_FILL)
    assert checksums_right(request)
    for fragment in range(FRAGMENTS):
        assert rig.send(STORE, rig.value(CONTROLLER_IP, KEY, fragment, flags=wire.FLAG_FILL)) == []
    assert rig.to_cpu == []
    assert rig.outcomes()["fill_ended"] == FRAGMENTS
    assert all(filled(rig, fragment) for fragment in range(FRAGMENTS))


def test_a_fill_ends_with_the_last_fragment(rig: Rig) -> None:
    rig.install(KEY)
    rig.send(p4.CPU_PORT, rig.control(wire.OP_FILL, KEY))
    for fragment in (0, FRAGMENTS - 1, 1):
        rig.send(STORE, rig.value(CONTROLLER_IP, KEY, fragment, flags=wire.FLAG_FILL))
    assert [filled(rig, fragment) for fragment in (0, 1, FRAGMENTS - 1)] == [True, False, True]


def test_a_fill_that_its_home_can_not_answer_has_ended(rig: Rig) -> None:
    rig.install(KEY)
    rig.send(p4.CPU_PORT, rig.control(wire.OP_FILL, KEY))
    rig.send(STORE, rig.not_found(CONTROLLER_IP, KEY, flags=wire.FLAG_FILL))
    rig.send(STORE, rig.value(CONTROLLER_IP, KEY, flags=wire.FLAG_FILL))
    assert not filled(rig, 0)


def test_a_fill_and_the_requests_of_nodes_have_claims_of_their_own(rig: Rig) -> None:
    rig.install(KEY)
    rig.send(NODE, rig.get(NODE, KEY))
    rig.send(p4.CPU_PORT, rig.control(wire.OP_FILL, KEY))
    assert rig.send(STORE, rig.value(CONTROLLER_IP, KEY, flags=wire.FLAG_FILL)) == []
    assert [port for port, _ in rig.send(STORE, rig.value(NODE, KEY))] == [NODE]


def test_push_sends_the_block_to_a_group_unasked(rig: Rig) -> None:
    subscribers = (NODES[0], NODES[2])
    rig.switch.set_multicast_group(7, [Replica(port) for port in subscribers])
    generation = rig.install(KEY)
    rig.fill(KEY, 1)
    sent = rig.send(p4.CPU_PORT, rig.control(wire.OP_PUSH, KEY, 1, sequence=7))
    assert [port for port, _ in sent] == list(subscribers)
    for port, packet in sent:
        assert packet[IP].dst == ip(port)
        assert (packet[KV].op, packet[KV].generation) == (wire.OP_VALUE, generation)
        assert packet[KV].flags & wire.FLAG_PUSHED
        assert bytes(wire.decode(bytes(packet[UDP].payload)).value) == value_of(KEY, 1)
        assert checksums_right(packet)


def test_a_value_from_a_slot_never_goes_to_the_controller(rig: Rig) -> None:
    """With packet_in it would grow by 514 bytes, which BMv2 does not survive."""
    rig.install(KEY)
    rig.fill(KEY)
    reclaim = rig.frame(p4.CPU_PORT, CONTROLLER_IP, KV(op=wire.OP_RECLAIM, key=KEY, fragments=FRAGMENTS))
    assert rig.send(p4.CPU_PORT, reclaim) == []
    rig.switch.set_multicast_group(7, [Replica(NODE), Replica(p4.CPU_PORT)])
    ((port, _),) = rig.send(p4.CPU_PORT, rig.control(wire.OP_PUSH, KEY, sequence=7))
    assert (port, rig.to_cpu) == (NODE, [])


def test_the_controllers_get_goes_to_the_home(rig: Rig) -> None:
    rig.install(KEY)
    rig.fill(KEY)
    ((port, request),) = rig.send(p4.CPU_PORT, rig.get(p4.CPU_PORT, KEY))
    assert (port, request[KV].op) == (STORE, wire.OP_GET)
