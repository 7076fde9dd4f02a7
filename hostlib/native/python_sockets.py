"""Datagrams in and out in Python: one call of the kernel for each burst that it gives or takes as one."""

from __future__ import annotations

import socket
import struct
from itertools import groupby
from typing import TYPE_CHECKING, Final

from hostlib.protocol.wire import FRAME_HEADER_BYTES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hostlib.protocol.wire import Buffer

# From linux/udp.h and asm-generic/socket.h; Python 3.11's socket module lacks them.
UDP_SEGMENT: Final = 103
UDP_GRO: Final = 104
SO_RXQ_OVFL: Final = 40

MAX_DATAGRAM_BYTES: Final = 65_535
BATCH_DATAGRAMS: Final = 64
"""UDP_MAX_SEGMENTS of Linux, until 6.9."""
BATCH_BYTES: Final = 65_507
"""The longest datagram, which a batch is to the kernel."""
_RECEIVES_PER_WAKEUP = 32
_ANCILLARY_BYTES = socket.CMSG_SPACE(4) * 2
_SEGMENT_SIZE = struct.Struct("=H")
_UINT = struct.Struct("=I")


def gso_datagrams(batch_bytes: int, datagram_bytes: int) -> int:
    """Return how many datagrams of this length are one batch for the kernel, one at least."""
    fitting = min(batch_bytes, BATCH_BYTES) // (FRAME_HEADER_BYTES + datagram_bytes)
    return max(1, min(BATCH_DATAGRAMS, fitting))


def gso_batch(datagrams: Sequence[bytes], at: int, batch_bytes: int, together: bool) -> list[bytes]:
    """Return those from a place on that the kernel is given as one next, and takes or refuses: of one length,
    as many as one batch takes."""
    longest = gso_datagrams(batch_bytes, len(datagrams[at])) if together else 1
    return list(next(groupby(datagrams[at : at + longest], len))[1])


def send(
    sock: socket.socket,
    address: str,
    port: int,
    datagrams: list[bytes],
    at: int,
    batch_bytes: int,
    together: bool,
) -> tuple[int, int]:
    """Send one batch of those from a place on; return how many have left, and their bytes. OSError."""
    batch = gso_batch(datagrams, at, batch_bytes, together)
    if len(batch) == 1:
        sock.sendto(batch[0], (address, port))
    else:
        segment = (socket.IPPROTO_UDP, UDP_SEGMENT, _SEGMENT_SIZE.pack(len(batch[0])))
        sock.sendmsg(batch, [segment], 0, (address, port))
    return len(batch), sum(map(len, batch))


def receive(
    sock: socket.socket, port: int, room: memoryview
) -> tuple[dict[str, list[Buffer]], int, int, int, int]:
    """Take what has come, up to a bound, as views of `room`; see `Core.receive`."""
    arrived: dict[str, list[Buffer]] = {}
    filled = received = received_bytes = foreign = 0
    drops = -1
    for _ in range(_RECEIVES_PER_WAKEUP):
        try:
            length, ancillary, _, (address, source_port) = sock.recvmsg_into(
                [room[filled : filled + MAX_DATAGRAM_BYTES]], _ANCILLARY_BYTES
            )
        except BlockingIOError:
            break
        except OSError:  # an ICMP error of an earlier send
            continue
        segment_bytes, said = _read_ancillary(ancillary)
        drops = max(drops, said)
        datagrams = _cut(room, filled, length, segment_bytes or length)
        received += len(datagrams)
        received_bytes += length
        if source_port != port:
            foreign += len(datagrams)
            continue
        arrived.setdefault(address, []).extend(datagrams)
        filled += length
        if filled + MAX_DATAGRAM_BYTES > len(room):
            break
    return arrived, received, received_bytes, foreign, drops


def _read_ancillary(ancillary: list[tuple[int, int, bytes]]) -> tuple[int, int]:
    """Return the length of each datagram of a batch, and the number of datagrams dropped so far.

    The length is 0 if one datagram came alone; the number is -1 if the kernel did not say it.
    """
    segment_bytes, drops = 0, -1
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == SO_RXQ_OVFL:
            drops = _UINT.unpack(data)[0]
        elif level == socket.IPPROTO_UDP and kind == UDP_GRO:
            segment_bytes = _UINT.unpack(data)[0]
    return segment_bytes, drops


def _cut(room: memoryview, begin: int, length: int, segment_bytes: int) -> list[Buffer]:
    """Cut what one call has received into its datagrams, as views."""
    end = begin + length
    return [
        room[start : min(start + segment_bytes, end)]
        for start in range(begin, max(begin + 1, end), max(1, segment_bytes))
    ]
