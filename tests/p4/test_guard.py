"""What must never pass: malformed packets, packets without the role for it, packets that lead nowhere."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scapy.layers.inet import ICMP, IP, UDP, fragment
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Packet, Raw

from controller import p4_constants as p4
from hostlib.protocol import wire
from hostlib.tools.scapy_layer import KV, VALUE_OPS
from tests.p4.rig import FRAGMENTS, NODES, STORE, Rig, ip, key_of
from v1model.backend import CompiledProgram

KEY = key_of("block")
NODE, OTHER, _ = NODES
OPS = [getattr(wire, name) for name in dir(wire) if name.startswith("OP_")]
REQUESTS = {wire.OP_GET, wire.OP_PUT, wire.OP_STAT, wire.OP_HELLO, wire.OP_EXPECT, wire.OP_DELETE}
REPLIES = {
    wire.OP_VALUE,
    wire.OP_NOT_FOUND,
    wire.OP_PUT_ACK,
    wire.OP_REFUSED,
    wire.OP_FOUND,
    wire.OP_KEYS,
    wire.OP_DELETED,
}
ALLOWED = {
    NODE: REQUESTS,
    STORE: REQUESTS - {wire.OP_PUT, wire.OP_EXPECT} | REPLIES | {wire.OP_LIST},
    p4.CPU_PORT: REQUESTS
    | {wire.OP_RECLAIM, wire.OP_FILL, wire.OP_PUSH, wire.OP_MEMBERS, wire.OP_DELETED}
    | {wire.OP_FOUND},
}


def message(rig: Rig, port: int, op: int, **fields: int) -> Packet:
    value = bytes(512) if op in VALUE_OPS else b""
    payload = KV(op=op, key=KEY, fragments=FRAGMENTS, **fields)
    return rig.frame(port, OTHER, payload / value if value else payload)


@pytest.mark.parametrize("op", [*OPS, 0, 15, 21, 255])
@pytest.mark.parametrize("port", ALLOWED)
def test_a_port_sends_only_what_its_role_allows(rig: Rig, port: int, op: int) -> None:
    rig.send(port, message(rig, port, op))
    assert ("forbidden" in rig.outcomes()) == (op not in ALLOWED[port])


def test_a_port_without_role_sends_nothing_of_the_protocol(rig: Rig) -> None:
    rig.set_role(42, 0, ip(NODE))
    assert rig.send(42, message(rig, NODE, wire.OP_GET)) == []
    assert rig.outcomes() == {"forbidden": 1}


@pytest.mark.parametrize("flag", [wire.FLAG_FILL, wire.FLAG_RECLAIM])
def test_a_node_cannot_ask_in_the_pools_name(rig: Rig, flag: int) -> None:
    assert rig.send(NODE, message(rig, NODE, wire.OP_GET, flags=flag)) == []
    assert rig.outcomes() == {"forbidden": 1}


def test_a_forbidden_value_is_never_stored(rig: Rig) -> None:
    rig.install(KEY)
    rig.send(NODE, rig.value(OTHER, KEY))
    assert [port for port, _ in rig.send(NODE, rig.get(NODE, KEY))] == [STORE]


@pytest.mark.parametrize(
    "fields",
    [
        {"version": 0},
        {"version": 1},
        {"version": 3},
        {"frag": FRAGMENTS},
        {"frag": 0xFFFF},
        {"fragments": 0},
        {"value_bytes": 513},
    ],
    ids=str,
)
def test_bad_fields_are_malformed(rig: Rig, fields: dict[str, int]) -> None:
    fields = {"fragments": FRAGMENTS, **fields}
    assert rig.send(STORE, rig.frame(STORE, NODE, KV(op=wire.OP_VALUE, key=KEY, **fields) / bytes(512))) == []
    assert rig.outcomes() == {"malformed": 1}


@pytest.mark.parametrize("layer", ["udp", "ip"])
@pytest.mark.parametrize("error", [-1, 1])
def test_lengths_that_do_not_fit_are_malformed(rig: Rig, layer: str, error: int) -> None:
    packet = Ether(bytes(rig.value(NODE, KEY)))
    if layer == "udp":
        packet[UDP].len += error
    else:
        packet[IP].len += error
        del packet[IP].chksum
    assert rig.send(STORE, packet) == []
    assert rig.outcomes() == {"malformed": 1}


@pytest.mark.parametrize("op", [wire.OP_GET, wire.OP_STAT, wire.OP_HELLO, wire.OP_VALUE])
def test_a_message_with_more_behind_it_is_malformed(rig: Rig, op: int) -> None:
    """Its header says that it is short, and it takes as long on a link as a long one."""
    port = STORE if op == wire.OP_VALUE else NODE
    whole = bytes(message(rig, port, op))
    for trailer in (1, 1000):
        assert rig.send(port, whole + bytes(trailer)) == []
    assert rig.outcomes() == {"malformed": 2}
    assert rig.to_cpu == []


def test_a_wrong_ipv4_checksum_is_malformed(rig: Rig) -> None:
    packet = Ether(bytes(rig.get(NODE, KEY)))
    packet[IP].chksum ^= 1
    assert rig.send(NODE, packet) == []
    assert rig.outcomes() == {"malformed": 1}


def test_ipv4_options_are_refused(rig: Rig) -> None:
    packet = Ether() / IP(src=ip(NODE), dst=ip(STORE), options=b"\x94\x04\x00\x00") / UDP(dport=9) / b"x"
    assert rig.send(NODE, packet) == []
    assert rig.outcomes() == {"malformed": 1}


@pytest.mark.parametrize("op", [wire.OP_GET, wire.OP_VALUE])
def test_every_truncation_is_dropped(rig: Rig, op: int) -> None:
    port = STORE if op == wire.OP_VALUE else NODE
    whole = bytes(rig.value(NODE, KEY) if op == wire.OP_VALUE else rig.get(NODE, KEY))
    for length in range(len(whole)):
        assert rig.send(port, whole[:length]) == []
    assert rig.outcomes()["malformed"] >= len(whole) - 14


@given(data=st.data())
def test_hostile_bytes_never_reach_a_slot(compiled: CompiledProgram, data: st.DataObject) -> None:
    """Any bytes after a valid start: no crash, at most one packet out, and nothing is served afterwards."""
    rig = Rig(compiled)
    rig.install(KEY)
    whole = bytearray(bytes(rig.value(NODE, KEY)))
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    port = data.draw(st.sampled_from([NODE, 42]))
    assert len(rig.send(port, bytes(whole))) <= 1
    assert [p for p, _ in rig.send(NODE, rig.get(NODE, KEY))] == [STORE]


def test_parts_of_a_udp_datagram_go_nowhere(rig: Rig) -> None:
    """A host would put them together, and take what no switch has checked."""
    members = KV(op=wire.OP_MEMBERS, key=bytes(16), fragments=0) / bytes(wire.VALUE_BYTES)
    parts = fragment(rig.frame(NODE, STORE, members), 64)
    assert len(parts) > 2
    for part in parts:
        assert rig.send(NODE, part) == []
    assert rig.outcomes() == {"malformed": len(parts)}


@pytest.mark.parametrize(
    ("layer", "field", "value", "outcome"),
    [
        (UDP, "sport", 9, "malformed"),
        (UDP, "chksum", 0x1234, "malformed"),
        (IP, "ttl", 31, "ttl_expired"),
    ],
)
def test_a_get_that_nobody_would_answer_has_nobody_wait(
    rig: Rig, layer: type[Packet], field: str, value: int, outcome: str
) -> None:
    wrong = rig.get(NODE, KEY)
    setattr(wrong[layer], field, value)
    assert rig.send(NODE, wrong) == []
    assert rig.outcomes() == {outcome: 1}
    ((port, _),) = rig.send(OTHER, rig.get(OTHER, KEY))
    assert port == STORE


def test_a_get_without_a_checksum_is_right(rig: Rig) -> None:
    get = rig.get(NODE, KEY)
    get[UDP].chksum = 0
    assert [port for port, _ in rig.send(NODE, get)] == [STORE]


@pytest.mark.parametrize("op", ["get", "put"])
def test_a_request_with_a_checksum_of_ffff_passes_and_a_damaged_one_does_not(rig: Rig, op: str) -> None:
    """csum16 of what it covers is 0000, which senders write as FFFF; of 65,535 sequences one leads there."""
    ask = rig.get if op == "get" else lambda node, key, **fields: rig.put(node, key, [STORE], **fields)

    def numbered(sequence: int) -> Packet:
        return Ether(bytes(ask(NODE, KEY, sequence=sequence)))

    sent = numbered(numbered(0)[UDP].chksum)
    assert sent[UDP].chksum == 0xFFFF
    damaged = sent.copy()
    damaged[KV].sequence ^= 1
    assert rig.send(NODE, damaged) == []
    assert [port for port, _ in rig.send(NODE, sent)] == [STORE]
    assert rig.outcomes() == {"malformed": 1, "claimed" if op == "get" else "put": 1}


def test_plain_ipv4_is_forwarded_with_its_ttl_lowered(rig: Rig) -> None:
    ((port, packet),) = rig.send(NODE, Ether() / IP(src=ip(NODE), dst=ip(OTHER), ttl=9) / ICMP())
    assert (port, packet[IP].ttl) == (OTHER, 8)
    anew = packet.copy()
    del anew[IP].chksum
    assert Ether(bytes(anew))[IP].chksum == packet[IP].chksum


def test_fragments_of_other_protocols_are_plain_ipv4(rig: Rig) -> None:
    packet = Ether() / IP(src=ip(NODE), dst=ip(OTHER), flags="MF") / ICMP() / Raw(b"x" * 100)
    assert [port for port, _ in rig.send(NODE, packet)] == [OTHER]
    assert rig.outcomes() == {"forwarded": 1}


@pytest.mark.parametrize(
    ("packet", "outcome"),
    [
        (Ether() / IP(src=ip(NODE), dst="192.0.2.1") / UDP(dport=9), "no_route"),
        (Ether() / ARP(), "no_route"),
        (Ether() / IP(src=ip(NODE), dst=ip(OTHER), ttl=1) / UDP(dport=9), "ttl_expired"),
        (Ether() / IP(src=ip(NODE), dst=ip(OTHER), ttl=0) / UDP(dport=9), "ttl_expired"),
    ],
)
def test_what_leads_nowhere_is_dropped_and_counted(rig: Rig, packet: Packet, outcome: str) -> None:
    assert rig.send(NODE, packet) == []
    assert rig.outcomes() == {outcome: 1}
