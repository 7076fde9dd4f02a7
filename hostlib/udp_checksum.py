"""Requests that a switch would take for damaged because of their UDP checksum.

A checksum that comes out as 0000 is sent as FFFF, since 0000 says that there is none (RFC 768). v1model's
csum16 says 0000, and `verify_checksum` compares bit by bit: of 65,535 right datagrams one is wrong to it. The
pool's program checks GETs and PUTs (p4/include/checksums.p4). A host sends such a one with 1 instead of 0 as
`generation`, which nobody reads in requests, and which neither checksum nor tag of a message covers.
"""

from __future__ import annotations

import struct
from socket import IPPROTO_UDP, inet_aton

from hostlib import wire

_UDP_HEADER_BYTES = 8
_HEADERS = struct.Struct(">4s4sH HHH")
"""What the checksum covers besides the payload: addresses, protocol and length twice, ports."""
_CHECKED = {
    wire.OP_GET: wire.KV_HEADER_BYTES,
    wire.OP_PUT: wire.KV_HEADER_BYTES + wire.VALUE_BYTES,
}
"""Bytes by operation."""
_GENERATION_END = 16


def passable(datagram: bytes, source: str, destination: str) -> bytes:
    """The datagram as a switch lets it pass; between IPv4 addresses."""
    if len(datagram) != _CHECKED.get(wire.op_of(datagram)) or not _is_ffff(datagram, source, destination):
        return datagram
    before = _GENERATION_END - 1
    return b"".join((datagram[:before], bytes((datagram[before] ^ 1,)), datagram[_GENERATION_END:]))


def _is_ffff(datagram: bytes, source: str, destination: str) -> bool:
    """Whether that is the checksum: then the 16-bit words, as one number, are a multiple of FFFF."""
    length = _UDP_HEADER_BYTES + len(datagram)
    headers = _HEADERS.pack(
        inet_aton(source), inet_aton(destination), IPPROTO_UDP + length, wire.KV_PORT, wire.KV_PORT, length
    )
    return not int.from_bytes(headers + datagram, "big") % 0xFFFF
