"""A PUT to several homes: once over the client's link, once to each home, on one switch and over two."""

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Packet

from hostlib.protocol import wire
from hostlib.tools.scapy_layer import KV
from tests.p4.rig import (
    NODES,
    OTHER_STORE,
    STORE,
    STORES,
    TAG,
    THIRD_STORE,
    Rig,
    checksums_right,
    ip,
    key_of,
    mac,
    value_of,
)
from tests.p4.test_switches import DOWN, UP, Chain
from v1model.backend import CompiledProgram

KEY = key_of("block")
NODE = NODES[0]


def homes(packet: Packet) -> tuple[int, int, int]:
    return packet[KV].home_1, packet[KV].home_2, packet[KV].home_3


@pytest.mark.parametrize("named", [STORES[:1], STORES[:2], STORES, (THIRD_STORE, STORE)])
def test_each_home_gets_the_put_addressed_to_itself(rig: Rig, named: tuple[int, ...]) -> None:
    sent = rig.send(NODE, rig.put(NODE, KEY, named, fragment=2))
    assert [port for port, _ in sent] == sorted(named)
    for port, packet in sent:
        assert (packet[Ether].dst, packet[IP].dst, packet[IP].src) == (mac(port), ip(port), ip(NODE))
        assert sum(homes(packet)) == port
        assert not packet[KV].flags
        message = wire.decode(bytes(packet[UDP].payload))
        assert (bytes(message.value), message.tag) == (value_of(KEY, 2), TAG)
        assert packet[IP].ttl == 63
        assert checksums_right(packet)
    assert rig.outcomes() == {"replicated" if len(named) > 1 else "put": 1}


@pytest.mark.parametrize("checksum", ["right", "none"])
def test_a_put_that_was_damaged_on_its_way_goes_nowhere(rig: Rig, checksum: str) -> None:
    """Its copies get new checksums: no home could tell that it should have been durable."""
    put = rig.put(NODE, KEY, STORES, flags=wire.FLAG_DURABLE)
    whole = bytearray(bytes(put))
    if checksum == "none":
        whole[40:42] = bytes(2)
    assert len(rig.send(NODE, Ether(bytes(whole)))) == len(STORES)
    whole[42 + 2] ^= wire.FLAG_DURABLE >> 8
    assert len(rig.send(NODE, Ether(bytes(whole)))) == (0 if checksum == "right" else len(STORES))


def test_a_put_that_is_sent_again_goes_to_its_destination_alone(rig: Rig) -> None:
    put = rig.put(NODE, KEY, STORES, flags=wire.FLAG_RETRY)
    ((port, packet),) = rig.send(NODE, put)
    assert (port, homes(packet)) == (STORE, STORES)


def test_a_put_that_names_nobody_goes_to_its_destination(rig: Rig) -> None:
    ((port, _),) = rig.send(NODE, rig.put(NODE, KEY, (STORE,), home_1=0))
    assert port == STORE


def test_a_home_that_is_not_known_gets_nothing_and_the_others_do(rig: Rig) -> None:
    sent = rig.send(NODE, rig.put(NODE, KEY, (STORE, 200, OTHER_STORE)))
    assert [port for port, _ in sent] == [STORE, OTHER_STORE]


def test_a_put_at_the_end_of_its_life_is_dropped(rig: Rig) -> None:
    put = rig.put(NODE, KEY, STORES)
    put[IP].ttl = 1
    assert rig.send(NODE, put) == []
    assert rig.outcomes() == {"ttl_expired": 1}


@pytest.fixture
def chain(compiled: CompiledProgram) -> Chain:
    """STORE hangs on the leaf, the two others on the spine."""
    chain = Chain(compiled)
    for number in (OTHER_STORE, THIRD_STORE):
        chain.leaf.move_store(number, UP)
    chain.leaf.move_store(STORE, 12)
    chain.leaf.host_at(12, STORE)
    return chain


@pytest.mark.parametrize(
    ("named", "up", "reached"),
    [
        (STORES, (0, OTHER_STORE, THIRD_STORE), {OTHER_STORE, THIRD_STORE}),
        ((THIRD_STORE, STORE), (THIRD_STORE, 0, 0), {THIRD_STORE}),
        ((STORE, OTHER_STORE), (0, OTHER_STORE, 0), {OTHER_STORE}),
    ],
)
def test_over_two_switches_each_link_carries_one_copy(
    chain: Chain, named: tuple[int, ...], up: tuple[int, int, int], reached: set[int]
) -> None:
    """The trunk's copy names the homes behind it; the spine has them both, and sends none back."""
    sent = dict(chain.leaf.send(NODE, chain.leaf.put(NODE, KEY, named)))
    assert set(sent) == ({12, UP} if STORE in named else {UP})
    assert homes(sent[UP]) == up
    if STORE in named:
        assert sent[12][IP].dst == ip(STORE)
    beyond = dict(chain.spine.send(DOWN, sent[UP]))
    assert set(beyond) == reached
    for port, packet in beyond.items():
        assert packet[IP].dst == ip(port)
        assert checksums_right(packet)
