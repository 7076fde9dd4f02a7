"""Control frames: what Scapy reads in them, and that anything may come back."""

from __future__ import annotations

from ipaddress import IPv4Address

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from controller.addressing import Mac
from controller.block_id import block_id
from controller.config import Host
from controller.frames import control_frame, internet_checksum, parse_answer
from controller.operations import Answer, Fill, PacketOperation, Reclaim
from hostlib.protocol import wire
from hostlib.protocol.members import Members, hello
from hostlib.tools.scapy_layer import KV

CONTROLLER = Host(Mac.parse("02:00:00:01:00:01"), IPv4Address("10.255.0.1"))
STORE = IPv4Address("10.0.0.9")
KEY = bytes(range(16))
TENANT = 5
BLOCK = block_id(TENANT, KEY)


@pytest.mark.parametrize("kind", [Fill, Reclaim])
def test_a_control_frame_is_what_the_switch_parses(kind: type[PacketOperation]) -> None:
    frame = Ether(control_frame(kind(BLOCK, 3, 8, STORE, 77), CONTROLLER))
    assert (frame[IP].src, frame[IP].dst) == ("10.255.0.1", "10.0.0.9")
    message = frame[KV]
    assert (message.op, message.key, message.frag, message.fragments) == (kind.op, KEY, 3, 8)
    assert (message.sequence, message.tenant) == (77, TENANT)


def test_its_checksums_are_right() -> None:
    raw = control_frame(Fill(BLOCK, 0, 1, STORE, 1), CONTROLLER)
    again = Ether(raw)
    del again[IP].chksum, again[UDP].chksum
    assert bytes(again) == raw


def answer_frame(**fields: object) -> bytes:
    kv = KV(op="PUT_ACK", key=KEY, frag=1, fragments=4, sequence=9, **fields)
    udp = UDP(sport=wire.KV_PORT, dport=wire.KV_PORT)
    return bytes(Ether() / IP(src=str(STORE), dst="10.255.0.1") / udp / kv)


def test_heartbeats_that_say_the_same_are_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel numbers a host's packets."""
    parsed: list[bytes] = []

    def decode(datagram: bytes) -> wire.Message:
        parsed.append(datagram)
        return decode_it(datagram)

    decode_it = wire.decode
    monkeypatch.setattr(wire, "decode", decode)
    message = hello(Members.of(["10.0.0.9"]), TENANT)
    for number in range(3):
        udp = UDP(sport=wire.KV_PORT, dport=wire.KV_PORT)
        packet = Ether() / IP(src=str(STORE), dst="10.255.0.1", id=number) / udp / wire.encode(message)
        assert parse_answer(bytes(packet)) == Answer(STORE, message)
    assert len(parsed) == 1


def test_an_answer_is_parsed_also_with_padding() -> None:
    for frame in (answer_frame(), answer_frame() + bytes(10)):
        answer = parse_answer(frame)
        assert answer is not None
        assert answer.source == STORE
        assert (answer.message.op, answer.message.fragment, answer.message.sequence) == (
            wire.OP_PUT_ACK,
            1,
            9,
        )


@given(st.binary(max_size=120))
def test_any_bytes_are_no_answer(frame: bytes) -> None:
    assert parse_answer(frame) is None


@given(st.data())
def test_a_damaged_answer_never_raises(data: st.DataObject) -> None:
    frame = bytearray(answer_frame())
    for _ in range(data.draw(st.integers(1, 4))):
        frame[data.draw(st.integers(0, len(frame) - 1))] = data.draw(st.integers(0, 255))
    parse_answer(bytes(frame[: data.draw(st.integers(0, len(frame)))]))


def test_a_damaged_hello_is_not_heard() -> None:
    """All hosts are told what it says: which list it knows, whether it has caught up."""
    said = wire.encode(hello(Members(300, 1, ()), caught_up=False))
    frame = bytes(
        Ether() / IP(src="10.0.0.9", dst="10.255.0.1") / UDP(sport=wire.KV_PORT, dport=wire.KV_PORT) / said
    )
    assert parse_answer(frame) is not None
    for bit in range(8 * len(said)):
        damaged = bytearray(frame)
        damaged[len(frame) - len(said) + bit // 8] ^= 1 << bit % 8
        heard = parse_answer(bytes(damaged))
        assert heard is None or heard.message.op != wire.OP_HELLO


def test_the_checksum_is_that_of_rfc_1071() -> None:
    assert internet_checksum(bytes.fromhex("0001f203f4f5f6f7")) == 0xFFFF ^ 0xDDF2
    assert internet_checksum(b"\x01") == 0xFEFF


@pytest.mark.parametrize(
    "text", ["", "02:00:00:00:00", "02:00:00:00:00:0g", "02-00-00-00-00-01", "0:0:0:0:0:1"]
)
def test_what_is_no_ethernet_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not an Ethernet address"):
        Mac.parse(text)


def test_an_ethernet_address_reads_back() -> None:
    assert str(Mac.parse("02:00:0A:ff:00:01")) == "02:00:0a:ff:00:01"
