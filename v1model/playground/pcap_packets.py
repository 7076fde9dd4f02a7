"""Conversion of a pcap file's packets to those of a document."""

from __future__ import annotations

import json
import struct

from v1model.playground.document import MAX_PACKETS
from v1model.playground.packet_text import MAX_BYTES

_MAGIC = {0xA1B2C3D4: 1, 0xA1B23C4D: 1000}  # fractions of a second in a microsecond
_HEADER_BYTES, _RECORD_BYTES, _ETHERNET = 24, 16, 1


def packets_of_pcap(content: bytes) -> bytes:
    """Return the first packets of a pcap file as JSON, or {"error": ...}.

    The form is {"packets": [{"text": hex, "port": 0, "time_us": 0}]}, with times since the first packet.
    """
    for order in "<>":
        if len(content) >= _HEADER_BYTES and struct.unpack_from(f"{order}I", content)[0] in _MAGIC:
            return _read(content, order)
    return _error("this is no pcap file; save what Wireshark has as pcap, not pcapng")


def _error(message: str) -> bytes:
    return json.dumps({"error": message}).encode()


def _read(content: bytes, order: str) -> bytes:
    magic, *_, kind = struct.unpack_from(f"{order}IHHiIII", content)
    if kind & 0xFFFF != _ETHERNET:
        return _error(f"its packets are not of Ethernet (link type {kind & 0xFFFF})")
    packets: list[dict[str, object]] = []
    at, first_us = _HEADER_BYTES, None
    while at + _RECORD_BYTES <= len(content) and len(packets) < MAX_PACKETS:
        seconds, fraction, length, _ = struct.unpack_from(f"{order}IIII", content, at)
        at += _RECORD_BYTES
        if length > MAX_BYTES or at + length > len(content):
            return _error(f"packet {len(packets) + 1} does not end in the file")
        time_us = seconds * 1_000_000 + fraction // _MAGIC[magic]
        first_us = time_us if first_us is None else first_us
        text = content[at : at + length].hex()
        packets.append({"text": text, "port": 0, "time_us": max(0, time_us - first_us)})
        at += length
    return json.dumps({"packets": packets}).encode()
