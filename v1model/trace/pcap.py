"""Packets in libpcap's file format (draft-ietf-opsawg-pcap), for tcpdump and Wireshark."""

from __future__ import annotations

import struct
import time
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from pathlib import Path

MAGIC, VERSION, ETHERNET = 0xA1B2C3D4, (2, 4), 1
SNAPSHOT_BYTES = 1 << 16
_FILE_HEADER, _PACKET_HEADER = struct.Struct("=IHHiIII"), struct.Struct("=IIII")


class PcapFile:
    """Written packet by packet; what is there can be read at any time."""

    def __init__(self, path: Path) -> None:
        self._file: BinaryIO = path.open("wb")
        self._file.write(_FILE_HEADER.pack(MAGIC, *VERSION, 0, 0, SNAPSHOT_BYTES, ETHERNET))
        self._file.flush()

    def write(self, frame: bytes, time_ns: int | None = None) -> None:
        """`time_ns`: since the epoch; None: now."""
        now_us = (time.time_ns() if time_ns is None else time_ns) // 1000
        captured = frame[:SNAPSHOT_BYTES]
        header = _PACKET_HEADER.pack(now_us // 1_000_000, now_us % 1_000_000, len(captured), len(frame))
        self._file.write(header + captured)
        self._file.flush()

    def close(self) -> None:
        self._file.close()
