"""Sightings of the protocol's packets at a switch's ports, from a capture of all of its ports."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from hostlib.protocol import wire

_SLL2 = struct.Struct(">HHIHBB8x")
"""Header LINKTYPE_LINUX_SLL2: protocol, reserved, interface, ARPHRD, packet type, length of the address."""
_OUTGOING = 4
_IPV4_AT = _SLL2.size
_KV_AT = _IPV4_AT + 20 + 8
_TRACED = frozenset((wire.OP_GET, wire.OP_VALUE, wire.OP_NOT_FOUND, wire.OP_REFUSED))

HEADER_BYTES = _KV_AT + wire.KV_HEADER_BYTES
"""Number of bytes of a packet that are read."""
EXPRESSION = f"udp port {wire.KV_PORT}"


class Sighting(NamedTuple):
    """A packet at one port."""

    t_ns: int
    """Nanoseconds since 1970."""
    switch: str
    peer: str
    """Peer behind the port."""
    leaving: bool
    """Whether the packet went to the peer, rather than came from it."""
    source: bytes
    destination: bytes
    """IPv4 addresses."""
    op: int
    flags: int
    sequence: int
    fragment: int
    key: bytes


def read_sightings(file: Path, switch: str, peers: Mapping[int, str]) -> Iterator[Sighting]:
    """Yield GETs and their answers in a capture; `peers` has the peer behind each interface's index."""
    from scapy.utils import RawPcapReader  # Scapy takes long to import; few runs capture

    with RawPcapReader(str(file)) as packets:
        for data, about in packets:
            if len(data) < HEADER_BYTES or data[_KV_AT] != wire.KV_VERSION or data[_KV_AT + 1] not in _TRACED:
                continue
            _, _, interface, _, kind, _ = _SLL2.unpack_from(data)
            peer = peers.get(interface)
            if peer is None:
                continue
            op, flags, sequence, fragment, key = _FIELDS.unpack_from(data, _KV_AT)
            yield Sighting(
                about.sec * 1_000_000_000 + about.usec,
                switch, peer, kind == _OUTGOING,
                data[_IPV4_AT + 12 : _IPV4_AT + 16], data[_IPV4_AT + 16 : _IPV4_AT + 20],
                op, flags, sequence, fragment, key,
            )  # fmt: skip


_FIELDS = struct.Struct(">xBH4xI22xH12x16s")
"""Layout of a message: op, flags, sequence, fragment and key (hostlib.protocol.wire)."""
