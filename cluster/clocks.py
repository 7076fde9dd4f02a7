"""Offsets of a server's clocks from ours, measured over its connection as NTP does.

Of several questions the quickest counts. The server reads its clock between our question and its answer, so
the error is at most half of that time.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

_PCAP_NANOSECONDS = 0xA1B23C4D
_PCAP_HEADER = struct.Struct("<IHHiIII")
_PCAP_RECORD = struct.Struct("<IIII")


@dataclass(frozen=True, slots=True)
class Offset:
    """Offset of another clock from ours."""

    ahead_s: float
    """Seconds by which the other clock is ahead of ours."""
    within_s: float
    """Seconds that `ahead_s` may be wrong by at most."""


def estimate(theirs: Callable[[], float], ours: Callable[[], float], questions: int) -> Offset:
    """Return the offset of the clock `theirs` from `ours` by the quickest of `questions` round trips."""
    best: Offset | None = None
    for _ in range(questions):
        asked_s = ours()
        answer_s = theirs()
        came_s = ours()
        one = Offset(answer_s - (asked_s + came_s) / 2, (came_s - asked_s) / 2)
        if best is None or one.within_s < best.within_s:
            best = one
    assert best is not None
    return best


def shift_capture(path: Path, by_s: float) -> None:
    """Add seconds to all times of a capture in nanosecond pcap format; leave other files as they are."""
    data = bytearray(path.read_bytes())
    if len(data) < _PCAP_HEADER.size or _PCAP_HEADER.unpack_from(data)[0] != _PCAP_NANOSECONDS:
        return
    by_ns, at = round(by_s * 1e9), _PCAP_HEADER.size
    while at + _PCAP_RECORD.size <= len(data):
        seconds, nanoseconds, captured, length = _PCAP_RECORD.unpack_from(data, at)
        moved = divmod(seconds * 1_000_000_000 + nanoseconds + by_ns, 1_000_000_000)
        _PCAP_RECORD.pack_into(data, at, *moved, captured, length)
        at += _PCAP_RECORD.size + captured
    path.write_bytes(data)
