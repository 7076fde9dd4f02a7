"""The pool serves: fill on the way, GET hits, generations, bounds."""

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from hostlib.protocol import wire
from hostlib.tools.scapy_layer import KV
from tests.p4.rig import FRAGMENTS, NODES, STORE, Rig, checksums_right, ip, key_of, mac, value_of

KEY = key_of("block")
NODE, OTHER, _ = NODES


def test_a_filled_fragment_is_served_back_to_who_asked(rig: Rig) -> None:
    generation = rig.install(KEY)
    rig.fill(KEY, 2)
    ((port, reply),) = rig.send(OTHER, rig.get(OTHER, KEY, 2, sequence=77))
    assert port == OTHER
    assert (reply[Ether].dst, reply[IP].dst, reply[IP].src) == (mac(OTHER), ip(OTHER), ip(STORE))
    assert (reply[KV].op, reply[KV].flags) == (wire.OP_VALUE, wire.FLAG_FROM_POOL)
    assert (reply[KV].sequence, reply[KV].generation) == (77, generation)
    message = wire.decode(bytes(reply[UDP].payload))
    assert bytes(message.value) == value_of(KEY, 2)
    assert checksums_right(reply)
    assert rig.outcomes() == {"claimed": 1, "reply": 1, "served": 1}


def test_the_value_that_fills_also_arrives(rig: Rig) -> None:
    rig.install(KEY)
    ((port, reply),) = rig.send(STORE, rig.value(NODE, KEY))
    assert port == NODE
    assert bytes(wire.decode(bytes(reply[UDP].payload)).value) == value_of(KEY)
    assert checksums_right(reply)


@pytest.mark.parametrize("fragment", range(FRAGMENTS))
def test_a_fragment_without_value_is_forwarded(rig: Rig, fragment: int) -> None:
    rig.install(KEY)
    for other in set(range(FRAGMENTS)) - {fragment}:
        rig.fill(KEY, other)
    assert [port for port, _ in rig.send(NODE, rig.get(NODE, KEY, fragment))] == [STORE]


def test_a_new_generation_forgets_what_the_slot_held(rig: Rig) -> None:
    rig.install(KEY)
    rig.fill(KEY)
    rig.remove(KEY)
    successor = key_of("successor")
    rig.install(successor)
    assert [port for port, _ in rig.send(NODE, rig.get(NODE, successor))] == [STORE]
    rig.fill(successor)
    ((_, reply),) = rig.send(NODE, rig.get(NODE, successor))
    assert bytes(wire.decode(bytes(reply[UDP].payload)).value) == value_of(successor)


def test_a_removed_block_is_not_served(rig: Rig) -> None:
    rig.install(KEY)
    rig.fill(KEY)
    rig.remove(KEY)
    assert [port for port, _ in rig.send(NODE, rig.get(NODE, KEY))] == [STORE]


def test_bypass_reaches_the_home_and_its_answer_is_not_stored(rig: Rig) -> None:
    rig.install(KEY)
    rig.fill(KEY, 0)
    assert [port for port, _ in rig.send(NODE, rig.get(NODE, KEY, 0, flags=wire.FLAG_BYPASS))] == [STORE]
    rig.send(STORE, rig.value(NODE, KEY, 1, flags=wire.FLAG_BYPASS))
    assert [port for port, _ in rig.send(NODE, rig.get(NODE, KEY, 1))] == [STORE]


def test_a_value_with_a_wrong_checksum_is_not_stored(rig: Rig) -> None:
    rig.install(KEY)
    rig.send(STORE, rig.value(NODE, KEY, checksum=0xBAD))
    assert [port for port, _ in rig.send(NODE, rig.get(NODE, KEY))] == [STORE]


@pytest.mark.parametrize("base_slot", [61, 64, 0xFFFF_FFFF])
def test_slots_beyond_the_arrays_count_as_absent(rig: Rig, base_slot: int) -> None:
    rig.install(KEY, base_slot)
    rig.fill(KEY, 3)
    sent = rig.send(NODE, rig.get(NODE, KEY, 3))
    assert [port for port, _ in sent] == [STORE]


def test_another_length_of_the_block_counts_as_absent(rig: Rig) -> None:
    rig.install(KEY)
    rig.fill(KEY)
    assert [port for port, _ in rig.send(NODE, rig.get(NODE, KEY, 0, fragments=FRAGMENTS + 1))] == [STORE]


def test_hits_are_fragments_that_were_served(rig: Rig) -> None:
    rig.install(KEY, base_slot=8)
    rig.fill(KEY)
    for _ in range(3):
        rig.send(NODE, rig.get(NODE, KEY))
    assert rig.hits(8) == 3


def test_a_served_packet_grows_by_512_bytes(rig: Rig) -> None:
    rig.install(KEY)
    rig.fill(KEY)
    request = rig.get(NODE, KEY)
    ((_, reply),) = rig.send(NODE, request)
    assert len(reply) == len(request) + wire.VALUE_BYTES == wire.VALUE_FRAME_BYTES
