"""A UDP endpoint in asyncio that sends and receives in bursts.

Datagrams of one length to one address leave in a single call (UDP_SEGMENT) and arrive in a single call
(UDP_GRO), which is what makes Python fast enough. The kernel cuts the bursts into packets of their own,
in software where the interface can't. Older kernels (Linux 6.1 of Debian 12 among them) refuse that with EIO
or EINVAL where checksum offload is off, and then the endpoint falls back to one call a datagram.
"""

from __future__ import annotations

import asyncio
import errno
import fcntl
import socket
import struct
import termios
from collections import deque
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from hostlib import native
from hostlib.errors import ConfigError
from hostlib.wire import FRAME_HEADER_BYTES, KV_PORT, Buffer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hostlib.transport import Receiver

# From linux/udp.h and asm-generic/socket.h; Python 3.11's socket module lacks them.
UDP_SEGMENT = 103
UDP_GRO = 104
IP_MTU_DISCOVER = 10
IP_PMTUDISC_INTERFACE = 4
SO_RXQ_OVFL = 40
SO_RCVBUFFORCE = 33
SO_SNDBUFFORCE = 32

_NO_SEGMENTATION = (errno.EIO, errno.EINVAL)
_ANCILLARY_BYTES = socket.CMSG_SPACE(4) * 2
_MAX_DATAGRAM_BYTES = 65_535
_RECEIVES_PER_WAKEUP = 32
_BUFFER_BYTES = 3 * _MAX_DATAGRAM_BYTES
"""Filled from its start in each turn, so most of it is hardly ever touched."""
_LUMP_S = 0.001
_SEGMENT_SIZE = struct.Struct("=H")
_UINT = struct.Struct("=I")


@dataclass(frozen=True, slots=True)
class EndpointOptions:
    """Bounds of an endpoint."""

    burst_datagrams: int = 8
    """Longest burst handed to the kernel, which a shaped link sends as one lump."""
    queue_datagrams: int = 8192
    """Datagrams that wait for the socket to become writable; more are dropped and counted."""
    together: bool = True
    """Whether the kernel takes and gives several datagrams as one where it can. Behind a switch it can't."""
    receive_buffer_bytes: int = 8 << 20
    send_buffer_bytes: int = 1 << 20

    @classmethod
    def of_link(cls, link_bit_s: float, frame_bytes: int) -> EndpointOptions:
        """For frames of one size before a link (0: unlimited) on which a lump should take hardly any time.

        A lump leaves before its time, as if the link were faster than it is: on a slow one a node that asks a
        little later than others would find the first answers gone that it could have shared.
        """
        if not link_bit_s:
            return cls()
        fitting = int(_LUMP_S * link_bit_s / (8 * frame_bytes))
        return cls(burst_datagrams=max(1, min(cls().burst_datagrams, fitting)))


@dataclass(slots=True)
class EndpointStats:
    """Counters of an endpoint, in datagrams unless the name says otherwise."""

    sent: int = 0
    sent_bytes: int = 0
    received: int = 0
    received_bytes: int = 0
    foreign: int = 0
    """Dropped: not from the protocol's port."""
    queue_drops: int = 0
    """Not sent: the queue was full or the kernel refused."""
    socket_drops: int = 0
    """Not received: the socket's buffer was full (SO_RXQ_OVFL) or a checksum was wrong."""

    @property
    def egress_frame_bytes(self) -> int:
        """What left as Ethernet frames: payload and headers, without preamble and checksum."""
        return self.sent_bytes + self.sent * FRAME_HEADER_BYTES

    @property
    def dropped(self) -> int:
        """What was lost in this host rather than on the network: the host did not keep up."""
        return self.queue_drops + self.socket_drops

    def report(self) -> dict[str, int]:
        """All counters."""
        return asdict(self) | {"egress_frame_bytes": self.egress_frame_bytes, "dropped": self.dropped}


@dataclass(slots=True)
class _Burst:
    """Datagrams of one length to one address."""

    address: str
    datagrams: list[bytes]

    def takes(self, address: str, datagram_bytes: int) -> bool:
        """Whether datagrams of this kind may join, as far as there is room."""
        return address == self.address and datagram_bytes == len(self.datagrams[0])


class UdpEndpoint:
    """A `Transport` over UDP, bound to the protocol's port at one address; use inside a running loop."""

    def __init__(self, address: str, options: EndpointOptions | None = None) -> None:
        self.stats = EndpointStats()
        self._options = options or EndpointOptions()
        self._loop = asyncio.get_running_loop()
        self._socket = self._open(address)
        self._receiver: Receiver | None = None
        self._buffer = bytearray(_BUFFER_BYTES)
        self._view = memoryview(self._buffer)
        self._bursts: deque[_Burst] = deque()
        self._queued = 0
        self._queued_bytes = 0
        self._segmentation = self._options.together
        self._core = native.core()
        self._loop.add_reader(self._socket, self._on_readable if self._core is None else self._on_ready)

    def set_receiver(self, receiver: Receiver) -> None:
        """Where incoming datagrams go from now on."""
        self._receiver = receiver

    @property
    def queued_bytes(self) -> int:
        """Payload bytes waiting here, plus what the socket holds in the kernel, overhead included."""
        return self._queued_bytes + self._kernel_bytes()

    def send(self, address: str, datagrams: Sequence[bytes]) -> None:
        """Send in order, without blocking; what the bounded queue can't hold is dropped and counted.

        What is sent in one turn of the event loop leaves together, in as few calls as possible.
        """
        if not self._bursts:
            self._loop.call_soon(self._flush)
        room = self._options.queue_datagrams - self._queued
        if len(datagrams) > room:
            self.stats.queue_drops += len(datagrams) - room
            datagrams = datagrams[:room]
        self._queued += len(datagrams)
        for datagram_bytes, alike in groupby(datagrams, len):
            self._queue(address, datagram_bytes, list(alike))

    def _queue(self, address: str, datagram_bytes: int, datagrams: list[bytes]) -> None:
        """Datagrams of one length: into the last burst if they may join it, and bursts of their own."""
        self._queued_bytes += datagram_bytes * len(datagrams)
        longest = self._options.burst_datagrams
        joined = 0
        if self._bursts and self._bursts[-1].takes(address, datagram_bytes):
            last = self._bursts[-1].datagrams
            joined = max(0, longest - len(last))
            last += datagrams[:joined]
        for start in range(joined, len(datagrams), longest):
            self._bursts.append(_Burst(address, datagrams[start : start + longest]))

    def close(self) -> None:
        """Close the socket; what is still queued is lost."""
        self._loop.remove_reader(self._socket)
        self._loop.remove_writer(self._socket)
        self._socket.close()
        self._bursts.clear()

    def _open(self, address: str) -> socket.socket:
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        try:
            sock.bind((address, KV_PORT))
            for option, forced, value in (
                (socket.SO_RCVBUF, SO_RCVBUFFORCE, self._options.receive_buffer_bytes),
                (socket.SO_SNDBUF, SO_SNDBUFFORCE, self._options.send_buffer_bytes),
            ):
                sock.setsockopt(socket.SOL_SOCKET, option, value)
                with suppress(PermissionError):  # only root may go beyond the system's limit
                    sock.setsockopt(socket.SOL_SOCKET, forced, value)
            # Never in parts, which switches drop, whatever ICMP says of the way: any host may send that.
            sock.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_INTERFACE)
            sock.setsockopt(socket.SOL_SOCKET, SO_RXQ_OVFL, 1)
            sock.setsockopt(socket.IPPROTO_UDP, UDP_GRO, int(self._options.together))
        except OSError as error:
            sock.close()
            raise ConfigError(f"UDP {address}:{KV_PORT}: {error.strerror}") from None
        return sock

    def _flush(self) -> None:
        if self._socket.fileno() < 0:  # closed since this was scheduled
            return
        while self._bursts:
            if not self._send_burst(self._bursts[0]):
                self._loop.add_writer(self._socket, self._flush)
                return
            self._bursts.popleft()
        self._loop.remove_writer(self._socket)

    def _send_burst(self, burst: _Burst) -> bool:
        """Whether the burst is dealt with: False means try again when the socket is writable."""
        while burst.datagrams:
            count, datagram_bytes = len(burst.datagrams), len(burst.datagrams[0])
            try:
                count = self._send_now(burst)
                self.stats.sent += count
                self.stats.sent_bytes += count * datagram_bytes
            except BlockingIOError:
                return False
            except OSError as error:
                if error.errno in _NO_SEGMENTATION and self._segmentation:
                    self._segmentation = False
                    continue
                self.stats.queue_drops += count  # no route, or the interface's queue is full
            del burst.datagrams[:count]
            self._queued -= count
            self._queued_bytes -= count * datagram_bytes
        return True

    def _send_now(self, burst: _Burst) -> int:
        if self._core is not None:
            return self._core.send(
                self._socket.fileno(), burst.address, KV_PORT, burst.datagrams, self._segmentation
            )
        if len(burst.datagrams) == 1 or not self._segmentation:
            self._socket.sendto(burst.datagrams[0], (burst.address, KV_PORT))
            return 1
        segment = (socket.IPPROTO_UDP, UDP_SEGMENT, _SEGMENT_SIZE.pack(len(burst.datagrams[0])))
        self._socket.sendmsg(burst.datagrams, [segment], 0, (burst.address, KV_PORT))
        return len(burst.datagrams)

    def _on_readable(self) -> None:
        """Take what has come, up to a bound, and hand it over by sender.

        What a receiver does for each call it then does once for many datagrams, also where the kernel has not
        put them together: behind a switch they come one by one.
        """
        arrived: dict[str, list[Buffer]] = {}
        filled = 0
        for _ in range(_RECEIVES_PER_WAKEUP):
            try:
                length, ancillary, _, (address, port) = self._socket.recvmsg_into(
                    [self._view[filled : filled + _MAX_DATAGRAM_BYTES]], _ANCILLARY_BYTES
                )
            except BlockingIOError:
                break
            except OSError:  # an ICMP error of an earlier send
                continue
            datagrams = self._datagrams(filled, length, self._segment_bytes(ancillary) or length)
            if port != KV_PORT:
                self.stats.foreign += len(datagrams)
                continue
            arrived.setdefault(address, []).extend(datagrams)
            filled += length
            if filled + _MAX_DATAGRAM_BYTES > len(self._buffer):
                break
        for address, waiting in arrived.items():
            if self._receiver is not None:
                self._receiver(address, waiting)

    def _on_ready(self) -> None:
        """The same with the compiled core, which takes several datagrams in a call."""
        assert self._core is not None
        arrived, received, received_bytes, foreign, drops = self._core.receive(self._socket.fileno(), KV_PORT)
        self.stats.received += received
        self.stats.received_bytes += received_bytes
        self.stats.foreign += foreign
        if drops >= 0:
            self.stats.socket_drops = drops
        for address, waiting in arrived.items():
            if self._receiver is not None:
                self._receiver(address, waiting)

    def _segment_bytes(self, ancillary: list[tuple[int, int, bytes]]) -> int:
        segment_bytes = 0
        for level, kind, data in ancillary:
            if level == socket.SOL_SOCKET and kind == SO_RXQ_OVFL:
                self.stats.socket_drops = _UINT.unpack(data)[0]
            elif level == socket.IPPROTO_UDP and kind == UDP_GRO:
                segment_bytes = _UINT.unpack(data)[0]
        return segment_bytes

    def _datagrams(self, begin: int, length: int, segment_bytes: int) -> list[Buffer]:
        """Views of what one call has received, which may be several datagrams."""
        end = begin + length
        datagrams: list[Buffer] = [
            self._view[start : min(start + segment_bytes, end)]
            for start in range(begin, max(begin + 1, end), max(1, segment_bytes))
        ]
        self.stats.received += len(datagrams)
        self.stats.received_bytes += length
        return datagrams

    def _kernel_bytes(self) -> int:
        return int(_UINT.unpack(fcntl.ioctl(self._socket, termios.TIOCOUTQ, bytes(4)))[0])
