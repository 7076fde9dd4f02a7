"""Control operations as Ethernet frames, and what comes back: the protocol over UDP, IPv4, Ethernet."""

from __future__ import annotations

import struct
from functools import lru_cache
from ipaddress import IPv4Address
from typing import TYPE_CHECKING, Final

from controller.operations import Answer
from hostlib.protocol import wire
from hostlib.protocol.errors import MalformedError

if TYPE_CHECKING:
    from controller.config import Host
    from controller.operations import Packet

_ETHERNET: Final = struct.Struct(">6s6sH")
_IPV4: Final = struct.Struct(">BBHHHBBH4s4s")
_UDP: Final = struct.Struct(">HHHH")
_HEADERS_BYTES: Final = _ETHERNET.size + _IPV4.size + _UDP.size
_ETHERTYPE_IPV4: Final = 0x0800
_PROTOCOL_UDP: Final = 17
_TTL: Final = 64


def control_frame(operation: Packet, controller: Host) -> bytes:
    """Return the frame of an operation, from the controller's address at the switch."""
    payload = wire.encode(operation.message())
    source, destination = controller.ipv4.packed, operation.destination.packed
    udp_bytes = _UDP.size + len(payload)
    pseudo = source + destination + struct.pack(">BBH", 0, _PROTOCOL_UDP, udp_bytes)
    udp = _UDP.pack(wire.KV_PORT, wire.KV_PORT, udp_bytes, 0) + payload
    udp = udp[:6] + struct.pack(">H", internet_checksum(pseudo + udp) or 0xFFFF) + udp[8:]
    total_bytes = _IPV4.size + udp_bytes
    ipv4 = _IPV4.pack(0x45, 0, total_bytes, 0, 0, _TTL, _PROTOCOL_UDP, 0, source, destination)
    ipv4 = ipv4[:10] + struct.pack(">H", internet_checksum(ipv4)) + ipv4[12:]
    # The switch puts in the next hop's address; its own, as source, was the destination.
    mac = controller.mac.packed
    return _ETHERNET.pack(mac, mac, _ETHERTYPE_IPV4) + ipv4 + udp


def parse_answer(frame: bytes) -> Answer | None:
    """Return the message in a frame for the controller, None for anything that is not one."""
    # Most are heartbeats, each like the one before it but for IPv4's number and checksum.
    number, checksum = _ETHERNET.size + 4, _ETHERNET.size + 10
    return _parse(frame[:number] + b"\0\0" + frame[number + 2 : checksum] + b"\0\0" + frame[checksum + 2 :])


@lru_cache(maxsize=64)
def _parse(frame: bytes) -> Answer | None:
    if len(frame) < _HEADERS_BYTES:
        return None
    _, _, ether_type = _ETHERNET.unpack_from(frame)
    version_ihl, _, _, _, _, _, protocol, _, source, _ = _IPV4.unpack_from(frame, _ETHERNET.size)
    _, port, udp_bytes, _ = _UDP.unpack_from(frame, _ETHERNET.size + _IPV4.size)
    if (ether_type, version_ihl, protocol, port) != (_ETHERTYPE_IPV4, 0x45, _PROTOCOL_UDP, wire.KV_PORT):
        return None
    try:
        # What follows UDP's length is Ethernet's padding.
        message = wire.decode(frame[_HEADERS_BYTES : _HEADERS_BYTES - _UDP.size + udp_bytes])
    except MalformedError:
        return None
    if message.op == wire.OP_HELLO and not _is_udp_right(frame):
        return None  # nothing else says whether a bit of it was flipped, and all hosts hear of what it says
    return Answer(IPv4Address(source), message)


def _is_udp_right(frame: bytes) -> bool:
    addresses = frame[_ETHERNET.size + 12 : _ETHERNET.size + 20]
    udp = frame[_ETHERNET.size + _IPV4.size :]
    udp_bytes, checksum = struct.unpack_from(">HH", udp, 4)
    pseudo = addresses + struct.pack(">BBH", 0, _PROTOCOL_UDP, udp_bytes)
    return not checksum or not internet_checksum(pseudo + udp[:udp_bytes])


def internet_checksum(data: bytes) -> int:
    """Return the checksum of RFC 1071."""
    if len(data) % 2:
        data += b"\0"
    total: int = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF
