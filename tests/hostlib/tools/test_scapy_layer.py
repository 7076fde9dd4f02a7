"""Both codecs agree, on every message and on whole packets."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from hostlib.protocol import wire
from hostlib.tools.scapy_layer import KV
from tests.hostlib.protocol.test_wire import KEY, messages


def scapy_fields(message: wire.Message) -> dict[str, Any]:
    fields = message._asdict()
    fields["frag"] = fields.pop("fragment")
    fields["parent_key"] = fields.pop("parent")
    fields["home_1"], fields["home_2"], fields["home_3"] = fields.pop("homes")
    return fields


@given(messages())
def test_scapy_builds_what_the_codec_encodes(message: wire.Message) -> None:
    fields = scapy_fields(message)
    value = bytes(fields.pop("value"))
    assert bytes(KV(**fields) / value) == wire.encode(message)


@given(messages())
def test_scapy_reads_what_the_codec_encodes(message: wire.Message) -> None:
    datagram = wire.encode(message)
    packet = KV(datagram)
    for name, expected in scapy_fields(message).items():
        if name != "value":
            assert getattr(packet, name) == expected, name
    assert bytes(packet.payload)[: packet.value_bytes] == message.value
    assert bytes(packet) == datagram


def test_ports_lead_to_the_layer_and_names_to_the_constants() -> None:
    packet = (
        Ether() / IP(src="10.0.0.1", dst="10.0.0.9") / UDP() / KV(op="GET", flags="RETRY+BYPASS", key=KEY)
    )
    seen = Ether(bytes(packet))
    assert (seen[UDP].sport, seen[UDP].dport) == (wire.KV_PORT, wire.KV_PORT)
    assert (seen[KV].op, int(seen[KV].flags)) == (wire.OP_GET, wire.FLAG_RETRY | wire.FLAG_BYPASS)


def test_a_test_can_build_a_wrong_checksum() -> None:
    packet = KV(op="VALUE", key=KEY, checksum=7) / b"value"
    assert KV(bytes(packet)).checksum == 7
