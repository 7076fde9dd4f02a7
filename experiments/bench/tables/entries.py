"""Tables of a router and packets for them, made from a seed.

Routes have the prefix lengths of the Internet's: mostly /24, then /22 and others from /16 to /23. Rules of
the access list are as people write them, with source and destination prefixes, protocols and well-known
ports. Packets are UDP from random addresses. Rules for TCP deny and the others permit, so packets match rules
and all are forwarded.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from ipaddress import IPv4Address
from typing import Final

from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from v1model.dataplane import TableEntry
from v1model.ir import ActionCall, KeyMatch

PORTS: Final = 2
TCP: Final = 6
UDP_PROTOCOL: Final = 17
VRF: Final = 1
ROUTER_MAC: Final = 0x020000000001
_LENGTHS: Final = ((24, 60), (23, 8), (22, 11), (21, 5), (20, 5), (19, 3), (18, 2), (17, 1), (16, 3), (32, 2))
_RULE_LENGTHS: Final = (0, 8, 16, 20, 24, 32)
_FULL: Final = (1 << 32) - 1
FRAME_BYTES: Final = 90


@dataclass(frozen=True, slots=True)
class Content:
    """Entries in the order in which they are written, and frames that are all forwarded."""

    entries: tuple[TableEntry, ...]
    frames: tuple[bytes, ...]


def _mask(length: int) -> int:
    return _FULL ^ _FULL >> length


def _forward(number: int) -> ActionCall:
    return ActionCall("RouterIngress.forward", (PORTS, ROUTER_MAC, 0x020000000100 + number))


def exact(hosts: int, frames: int, seed: int) -> Content:
    """Return the content of one table with an exact match, with an entry for each host."""
    source = random.Random(seed)
    addresses = source.sample(range(1 << 24, 224 << 24), hosts)
    entries = [
        TableEntry("RouterIngress.hosts", (KeyMatch(address),), _forward(address % 256))
        for address in addresses
    ]
    return Content(tuple(entries), tuple(_frame(source, source.choice(addresses)) for _ in range(frames)))


def router(routes: int, rules: int, frames: int, seed: int) -> Content:
    """Return the content of the whole router; frames go to addresses that its routes match."""
    source = random.Random(seed)
    admit = ActionCall("RouterIngress.admit", (VRF,))
    entries = [TableEntry("RouterIngress.my_station", (KeyMatch(1), KeyMatch(ROUTER_MAC)), admit)]
    entries += [
        TableEntry("RouterIngress.next_hops", (KeyMatch(number),), _forward(number)) for number in range(256)
    ]
    prefixes = _prefixes(source, routes)
    entries += [
        TableEntry(
            "RouterIngress.routes",
            (KeyMatch(VRF), KeyMatch(address, prefix_length=length)),
            ActionCall("RouterIngress.set_next_hop", (source.randrange(256),)),
        )
        for address, length in prefixes
    ]
    entries += _access_list(source, rules)
    destinations = [
        address | source.getrandbits(32) & ~_mask(length) & _FULL
        for address, length in source.choices(prefixes, k=frames)
    ]
    return Content(tuple(entries), tuple(_frame(source, address) for address in destinations))


def _prefixes(source: random.Random, count: int) -> list[tuple[int, int]]:
    lengths, weights = zip(*_LENGTHS, strict=True)
    found: dict[tuple[int, int], None] = {}
    while len(found) < count:
        (length,) = source.choices(lengths, weights)
        found[source.randrange(11 << 24, 224 << 24) & _mask(length), length] = None
    return list(found)


def _access_list(source: random.Random, count: int) -> list[TableEntry]:
    deny, permit = ActionCall("RouterIngress.deny"), ActionCall("NoAction")
    found: dict[tuple[KeyMatch | None, ...], TableEntry] = {}
    while len(found) < count:
        protocol = source.choice((None, TCP, UDP_PROTOCOL))
        port = source.choice((22, 53, 80, 179, 443, 8080, source.randrange(1, 1 << 16)))
        matches = (
            _prefix(source, source.choice(_RULE_LENGTHS[1:])),
            _prefix(source, source.choice(_RULE_LENGTHS)),
            KeyMatch(protocol, mask=0xFF) if protocol else None,
            KeyMatch(source.randrange(64), mask=0x3F) if source.random() < 0.1 else None,
            KeyMatch(source.randrange(1 << 16), mask=0xFFFF) if protocol and source.random() < 0.1 else None,
            KeyMatch(port, mask=0xFFFF) if protocol and source.random() < 0.7 else None,
        )
        action = deny if protocol == TCP else permit
        found[matches] = TableEntry("RouterIngress.access_list", matches, action, len(found) + 1)
    return list(found.values())


def _prefix(source: random.Random, length: int) -> KeyMatch | None:
    mask = _mask(length)
    return KeyMatch(source.randrange(11 << 24, 224 << 24) & mask, mask=mask) if length else None


def _frame(source: random.Random, destination: int) -> bytes:
    address = IPv4Address(source.randrange(11 << 24, 224 << 24))
    ports = {"sport": source.randrange(1024, 1 << 16), "dport": source.choice((80, 443, 53))}
    head = (
        Ether(dst="02:00:00:00:00:01", src="02:00:00:00:00:02")
        / IP(src=str(address), dst=str(IPv4Address(destination)))
        / UDP(chksum=0, **ports)
    )
    return bytes(head / bytes(FRAME_BYTES - len(head)))
