"""Packets in libpcap's file format (draft-ietf-opsawg-pcap), for tcpdump and Wireshark."""

from __future__ import annotations

import struct
import time
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MAGIC, VERSION, ETHERNET = 0xA1B2C3D4, (2, 4), 1
SNAPSHOT_BYTES = 1 << 18  # the most that libpcap takes
_PCAPNG = b"\x0a\x0d\x0d\x0a"
_FILE_HEADER, _PACKET_HEADER = struct.Struct("=IHHiIII"), struct.Struct("=IIII")


_MAGICS = {MAGIC: 1000, 0xA1B23C4D: 1}  # unit of time in ns, for microseconds and nanoseconds


def read_pcap(path: Path) -> list[tuple[int, bytes]]:
    """Return the packets of a file, each with its time in ns since the epoch.

    Raises OSError, or ValueError for a file that is no pcap file of Ethernet frames.
    """
    data = path.read_bytes()
    for order in "<>":
        if len(data) >= _FILE_HEADER.size and struct.unpack_from(f"{order}I", data)[0] in _MAGICS:
            break
    else:
        hint = "; convert it with: editcap -F pcap" if data.startswith(_PCAPNG) else ""
        raise ValueError(f"{path} is no pcap file{hint}")
    magic, *_, link_type = struct.unpack_from(order + _FILE_HEADER.format[1:], data)
    if link_type != ETHERNET:
        raise ValueError(f"{path} has packets of link type {link_type}, not Ethernet frames ({ETHERNET})")
    return list(_packets(path, data, struct.Struct(order + _PACKET_HEADER.format[1:]), _MAGICS[magic]))


def _packets(path: Path, data: bytes, header: struct.Struct, unit_ns: int) -> Iterator[tuple[int, bytes]]:
    at = _FILE_HEADER.size
    while at < len(data):
        if at + header.size > len(data):
            raise ValueError(f"{path} ends within a packet")
        seconds, fraction, captured, length = header.unpack_from(data, at)
        at += header.size
        if captured > SNAPSHOT_BYTES or at + captured > len(data):
            raise ValueError(f"{path} ends within a packet")
        if captured < length:
            raise ValueError(
                f"{path} has only {captured} of a packet's {length} bytes: capture whole packets"
            )
        yield seconds * 1_000_000_000 + fraction * unit_ns, data[at : at + captured]
        at += captured


class PcapFile:
    """File that is written packet by packet; it can be read at any time."""

    def __init__(self, path: Path) -> None:
        self._file: BinaryIO = path.open("wb")
        self._file.write(_FILE_HEADER.pack(MAGIC, *VERSION, 0, 0, SNAPSHOT_BYTES, ETHERNET))
        self._file.flush()

    def write(self, frame: bytes, time_ns: int | None = None) -> None:
        """Write a frame; `time_ns` is since the epoch, None for now."""
        now_us = (time.time_ns() if time_ns is None else time_ns) // 1000
        captured = frame[:SNAPSHOT_BYTES]
        header = _PACKET_HEADER.pack(now_us // 1_000_000, now_us % 1_000_000, len(captured), len(frame))
        self._file.write(header + captured)
        self._file.flush()

    def close(self) -> None:
        self._file.close()
