"""Packets as people write them: what Scapy makes of the same text, and nothing that is evaluated."""

from __future__ import annotations

import pytest
from scapy.layers import inet, inet6, l2

from v1model.playground.packet_text import MAX_BYTES, PacketTextError, packet_bytes

LIKE_SCAPY = [
    'Ether(src="02:00:00:00:00:07", dst="ff:ff:ff:ff:ff:ff")/'
    'ARP(op=2, psrc="10.0.0.1", pdst="10.0.0.9", hwsrc="02:00:00:00:00:01")',
    'Ether()/IP(src="10.1.2.3", dst="10.0.0.2", ttl=3, tos=2)/UDP(sport=1, dport=7)/"payload"',
    'Ether()/Dot1Q(vlan=5, prio=3)/IP(src="10.1.2.3", dst="10.0.0.2")/TCP(dport=443, flags=18, seq=9)',
    'Ether()/IPv6(src="fd00::1", dst="fd00::2", hlim=2)/UDP(sport=5, dport=6)/b"odd"',
    'Ether()/IP(src="10.1.2.3", dst="10.0.0.2")/ICMP(id=4, seq=1)/("x" * 20)',
    'Ether()/IP(src="10.0.0.1", dst="10.0.0.2")/IP(src="10.0.0.3", dst="10.0.0.4")/UDP(chksum=0)',
]


@pytest.mark.parametrize("text", LIKE_SCAPY)
def test_bytes_are_scapy_s(text: str) -> None:
    """But for addresses of Ether that are left out, which Scapy takes from the machine."""
    ours = packet_bytes(text)
    wanted = bytes(eval(text, {**vars(l2), **vars(inet), **vars(inet6)}))
    assert ours[12:] == wanted[12:]
    if "src=" in text.split("/")[0]:
        assert ours == wanted


@pytest.mark.parametrize("text", ["0a 0b\n0c", "0A:0b:0c", "0x0a0b0c"])
def test_hex_digits(text: str) -> None:
    assert packet_bytes(text) == b"\x0a\x0b\x0c"


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("__import__('os').system('id')", "there are these layers"),
        ("open('/etc/passwd').read()", "there are these layers"),
        ("Ether(dst=__import__('os'))", "nothing else is evaluated"),
        ("Ether().__class__", "between slashes"),
        ("Ether(**{})", r"\*\*"),
        ("Ether('x')", "are named"),
        ("IP(colour=1)", "IP has no colour; it has version"),
        ("IP(ttl=256)", "does not fit 8 bits"),
        ("IP(ttl=-1)", "not negative"),
        ('IP(dst="10.0.0.300")', "IP.dst"),
        ('Ether(dst="x")', "no MAC address"),
        ("'x' * 100000000", "at most"),
        ("'x' * 'y'", "can be repeated"),
        ("Ether(", "neither hex digits nor layers"),
        ("abc", "between slashes"),
        ("/".join(["Ether()"] * 40), "at most 32 layers"),
        ("(" * 5000 + ")" * 5000, "neither hex|nested"),
        ("00" * (MAX_BYTES + 1), "at most"),
    ],
)
def test_what_is_no_packet(text: str, word: str) -> None:
    with pytest.raises(PacketTextError, match=word):
        packet_bytes(text)
