"""The solutions of p4lang's tutorials do what their exercises ask for: same topologies, same entries.

TUTORIALS=/path/to/p4lang/tutorials pytest tests/tutorials
"""

from __future__ import annotations

import itertools
import os
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from scapy.layers.inet import IP, TCP, UDP, IPOption
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from tests.tutorials.exercise import Exercise

TUTORIALS = Path(os.environ.get("TUTORIALS", "nowhere"))
pytestmark = pytest.mark.skipif(
    not (TUTORIALS / "exercises").is_dir(), reason="TUTORIALS does not name a checkout of p4lang's tutorials"
)
BROADCAST = "ff:ff:ff:ff:ff:ff"
Start = Callable[[str], Exercise]


@pytest.fixture
def start() -> Iterator[Start]:
    """start("basic/pod-topo"): that exercise's solution in that topology."""
    running: list[Exercise] = []

    def make(name: str) -> Exercise:
        exercise = TUTORIALS / "exercises" / name.split("/")[0]
        (program,) = (exercise / "solution").glob("*.p4")
        running.append(Exercise(TUTORIALS / "exercises" / name, program))
        return running[-1]

    yield make
    for exercise in running:
        exercise.close()


def packet(net: Exercise, source: str, target: str, layer: object = None) -> bytes:
    ip = Ether(src=net.mac(source), dst=BROADCAST) / IP(src=net.ip(source), dst=net.ip(target))
    return bytes(ip / (layer if layer is not None else UDP(dport=4321) / Raw(b"hello")))


def is_checksum_right(frame: bytes) -> bool:
    ip = Ether(frame)[IP]
    given, ip.chksum = ip.chksum, None
    return bool(IP(bytes(ip)).chksum == given)


@pytest.mark.parametrize("topology", ["pod-topo", "triangle-topo"])
def test_basic(start: Start, topology: str) -> None:
    """Every host reaches every other, with the right MAC address, a smaller TTL and a right checksum."""
    net = start(f"basic/{topology}")
    for source, target in itertools.permutations(net.hosts, 2):
        ((host, frame),) = net.send(source, packet(net, source, target))
        assert (host, Ether(frame).dst) == (target, net.mac(target))
        assert Ether(frame)[IP].ttl < 64
        assert is_checksum_right(frame)


def test_basic_tunnel(start: Start) -> None:
    """With a tunnel header the destination's id counts, whatever the IP address says."""
    net = start("basic_tunnel")
    for (source, target), wrong in itertools.product(itertools.permutations(net.hosts, 2), net.hosts):
        plain = packet(net, source, wrong)
        tunnel = struct.pack(">HH", 0x0800, int(target[1:]))
        frame = plain[:12] + b"\x12\x12" + tunnel + plain[14:]
        ((host, got),) = net.send(source, frame)
        assert (host, got) == (target, frame)
    ((host, _),) = net.send("h1", packet(net, "h1", "h2"))
    assert host == "h2"


@pytest.mark.parametrize(("operator", "result"), [("+", 12), ("-", 6), ("&", 1), ("|", 11), ("^", 10)])
def test_calc(start: Start, operator: str, result: int) -> None:
    net = start("calc")
    head = bytes.fromhex("000400000000") + bytes.fromhex(net.mac("h1").replace(":", "")) + b"\x12\x34"
    ((host, frame),) = net.send("h1", head + b"P4\x01" + operator.encode() + struct.pack(">3I", 9, 3, 0))
    assert host == "h1"
    assert struct.unpack(">3I", frame[18:30]) == (9, 3, result)


def test_calc_drops_what_it_does_not_know(start: Start) -> None:
    net = start("calc")
    assert net.send("h1", bytes(12) + b"\x12\x34" + b"P4\x01?" + bytes(12)) == []


def test_ecn(start: Start) -> None:
    """Without a queue nothing is marked."""
    net = start("ecn")
    frame = bytearray(packet(net, "h1", "h2"))
    frame[15] |= 1
    ((host, got),) = net.send("h1", bytes(frame))
    assert (host, got[15] & 3) == ("h2", 1)


def test_firewall(start: Start) -> None:
    """From outside only answers come in; inside, everybody reaches everybody."""
    net = start("firewall/pod-topo")

    def syn(source: str, target: str, sport: int, dport: int, flags: str = "S") -> list[str]:
        frame = packet(net, source, target, TCP(sport=sport, dport=dport, flags=flags))
        return [host for host, _ in net.send(source, frame)]

    assert syn("h1", "h2", 1000, 80) == ["h2"]
    assert syn("h3", "h1", 80, 2000) == []
    assert syn("h1", "h3", 2000, 80) == ["h3"]
    assert syn("h3", "h1", 80, 2000, "SA") == ["h1"]
    assert syn("h3", "h1", 81, 2001) == []


def test_link_monitor(start: Start) -> None:
    """A probe goes the way that it names and comes back with what each switch has sent there."""
    net = start("link_monitor/pod-topo")
    net.send("h1", packet(net, "h1", "h4"))
    way = [4, 1, 4, 1, 3, 2, 3, 2, 1]
    probe = Ether(src=net.mac("h1"), dst=BROADCAST, type=0x812) / Raw(bytes([0, *way]))
    ((host, frame),) = net.send("h1", bytes(probe))
    assert host == "h1"
    hops = frame[14]
    assert hops == len(way)
    data = [struct.unpack_from(">BBI6s6s", frame, 15 + 18 * hop) for hop in range(hops)]
    ports = [port for _, port, *_ in data]
    assert ports == way[::-1]
    assert [swid >> 7 for swid, *_ in data] == [0] * (hops - 1) + [1]
    assert any(count > 0 for *_, count, _, _ in data)


def test_load_balance(start: Start) -> None:
    """Flows to one address are spread over two servers; packets of one flow stay together."""
    net = start("load_balance")
    seen = {}
    for sport in range(2000, 2032):
        frame = bytes(
            Ether(src=net.mac("h1"), dst="00:00:00:00:01:00")
            / IP(src=net.ip("h1"), dst="10.0.0.1")
            / TCP(sport=sport, dport=80)
        )
        hosts = {net.send("h1", frame)[0][0] for _ in range(3)}
        assert len(hosts) == 1
        seen[sport] = hosts.pop()
    assert set(seen.values()) == {"h2", "h3"}


def test_mri(start: Start) -> None:
    """Every switch on the way adds its id to the IP option."""
    net = start("mri")
    option = IPOption(bytes([31, 4, 0, 0]))
    ip = IP(src=net.ip("h1"), dst=net.ip("h2"), options=[option])
    ((host, frame),) = net.send(
        "h1", bytes(Ether(src=net.mac("h1"), dst=BROADCAST) / ip / UDP(dport=4321) / Raw(b"hello"))
    )
    assert host == "h2"
    count = int.from_bytes(frame[36:38], "big")
    switches = [int.from_bytes(frame[38 + 8 * i : 42 + 8 * i], "big") for i in range(count)]
    assert switches == [2, 1]
    assert frame[14] & 0xF == 5 + 1 + 2 * count


def test_multicast(start: Start) -> None:
    net = start("multicast/sig-topo")
    broadcast = bytes(Ether(src=net.mac("h1"), dst=BROADCAST) / Raw(b"hello to all of you, and more"))
    assert sorted(host for host, _ in net.send("h1", broadcast)) == ["h2", "h3", "h4"]
    one = bytes(Ether(src=net.mac("h1"), dst=net.mac("h3")) / Raw(b"hello"))
    assert [host for host, _ in net.send("h1", one)] == ["h3"]


@pytest.mark.parametrize(("layer", "dscp"), [(UDP(dport=80), 46), (TCP(dport=80), 44)])
def test_qos(start: Start, layer: object, dscp: int) -> None:
    """UDP is expedited forwarding, TCP voice admit."""
    net = start("qos")
    ((host, frame),) = net.send("h1", packet(net, "h1", "h2", layer))
    assert host == "h2"
    assert Ether(frame)[IP].tos >> 2 == dscp


@pytest.mark.parametrize(("route", "target"), [([2, 1], "h2"), ([3, 1], "h3"), ([2, 3, 1], "h3")])
def test_source_routing(start: Start, route: list[int], target: str) -> None:
    """The packet names its ports; each switch takes one off."""
    net = start("source_routing")
    plain = packet(net, "h1", target)
    hops = b"".join(
        struct.pack(">H", port | (0x8000 if i == len(route) - 1 else 0)) for i, port in enumerate(route)
    )
    ((host, frame),) = net.send("h1", plain[:12] + b"\x12\x34" + hops + plain[14:])
    assert host == target
    assert frame[12:14] == b"\x08\x00"
    assert Ether(frame)[IP].ttl == 64 - len(route)
