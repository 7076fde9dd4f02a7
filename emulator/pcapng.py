"""Captures of tcpdump as pcapng (draft-ietf-opsawg-pcapng), with the names of the interfaces.

Scapy's writer takes no interface names with raw packets, and has no nanoseconds.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path
from typing import IO

_SECTION, _INTERFACE, _PACKET = 0x0A0D0D0A, 1, 6
_BYTE_ORDER = 0x1A2B3C4D
_NO_LENGTH = -1
_OPTION_END, _IF_NAME, _IF_TSRESOL = 0, 2, 9
_NANOSECONDS = 9
_SLL2_INTERFACE = slice(4, 8)
"""Place of the interface's index in a LINUX_SLL2 header."""


def write_pcapng(path: Path, capture: Path, interfaces: Mapping[int, str] | str) -> int:
    """Rewrite a capture with nanoseconds as pcapng; returns the number of packets.

    `interfaces` is the name of its one interface or, for a capture of all ports, names by index.
    """
    from scapy.utils import RawPcapReader  # Scapy takes as long to import as all else; few runs capture

    path.parent.mkdir(parents=True, exist_ok=True)
    count = 0
    numbers: dict[str, int] = {}
    with RawPcapReader(str(capture)) as packets, path.open("wb") as out:
        _write(out, _SECTION, struct.pack("<IHHq", _BYTE_ORDER, 1, 0, _NO_LENGTH))
        for data, about in packets:
            if isinstance(interfaces, str):
                name = interfaces
            else:
                name = interfaces.get(int.from_bytes(data[_SLL2_INTERFACE], "big"), "other")
            if name not in numbers:
                numbers[name] = len(numbers)
                _write_interface(out, name, packets.linktype)
            high, low = divmod(about.sec * 1_000_000_000 + about.usec, 1 << 32)
            head = struct.pack("<IIIII", numbers[name], high, low, len(data), about.wirelen)
            _write(out, _PACKET, head + _padded(data))
            count += 1
    return count


def _write_interface(out: IO[bytes], name: str, link_type: int) -> None:
    options = _option(_IF_NAME, name.encode()) + _option(_IF_TSRESOL, bytes([_NANOSECONDS]))
    options += struct.pack("<HH", _OPTION_END, 0)
    _write(out, _INTERFACE, struct.pack("<HHI", link_type, 0, 0) + options)


def _option(code: int, value: bytes) -> bytes:
    return struct.pack("<HH", code, len(value)) + _padded(value)


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


def _write(out: IO[bytes], kind: int, body: bytes) -> None:
    length = 12 + len(body)
    out.write(struct.pack("<II", kind, length) + body + struct.pack("<I", length))
