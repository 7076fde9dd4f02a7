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
from hostlib.protocol.errors import ConfigError
from hostlib.protocol.wire import FRAME_HEADER_BYTES, KV_PORT, VALUE_FRAME_BYTES, Buffer
from hostlib.transport.mtu import check_mtu

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from hostlib.transport.transport import Receiver

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
_BATCH_S = 0.001
_LONGEST_BATCH_BYTES = 65_000
"""A batch is one datagram to the kernel, of at most 65,507 bytes."""
_LONGEST_BATCH_DATAGRAMS = 64
"""UDP_MAX_SEGMENTS of Linux, until 6.9."""
_SEGMENT_SIZE = struct.Struct("=H")
_UINT = struct.Struct("=I")


@dataclass(frozen=True, slots=True)
class EndpointOptions:
    """Bounds of an endpoint."""

    batch_bytes: int = 8 * VALUE_FRAME_BYTES
    """What of a burst is handed to the kernel as one, counted in frames: a shaped link sends it at once. A
    batch has one datagram at least."""
    queue_datagrams: int = 8192
    """Datagrams that wait for the socket to become writable; more are dropped and counted."""
    sends_together: bool = True
    """Whether datagrams are given to the kernel as one where it takes that. Behind a switch, where checksum
    offload is off, Linux does since 6.11."""
    receives_together: bool = True
    """Whether the kernel may give datagrams as one. Behind a switch it has each of them by itself."""
    receive_buffer_bytes: int = 8 << 20
    send_buffer_bytes: int = 1 << 20

    @classmethod
    def of_link(cls, link_bit_s: float) -> EndpointOptions:
        """For a link (0: unlimited) on which a batch of datagrams should take hardly any time.

        A batch leaves before its time, as if the link were faster than it is: on a slow one a node that asks
        a little later than others would find the first answers gone that it could have shared.
        """
        fitting = int(_BATCH_S * link_bit_s / 8) if link_bit_s else _LONGEST_BATCH_BYTES
        return cls(batch_bytes=min(_LONGEST_BATCH_BYTES, fitting))

    def gso_datagrams(self, datagram_bytes: int) -> int:
        """Return how many datagrams of this length are one batch for the kernel."""
        fitting = self.batch_bytes // (FRAME_HEADER_BYTES + datagram_bytes)
        return max(1, min(_LONGEST_BATCH_DATAGRAMS, fitting))


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
class _Waiting:
    """Datagrams to one address; those before `at` have left."""

    address: str
    datagrams: list[bytes]
    at: int = 0

    def gso_batch(self, options: EndpointOptions) -> list[bytes]:
        """Return the first datagrams of one length, as many as one batch takes."""
        longest = options.gso_datagrams(len(self.datagrams[self.at]))
        return list(next(groupby(self.datagrams[self.at : self.at + longest], len))[1])


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
        self._waiting: deque[_Waiting] = deque()
        self._queued = 0
        self._queued_bytes = 0
        self._segmentation = self._options.sends_together
        self._core = native.core()
        self._is_full = False
        """The socket: what waits is sent when it is writable again."""
        self._handing_over = False
        self._behind: deque[Callable[[], None]] = deque()
        """To be called when all that has come is handed over."""
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

        What is sent in one turn of the event loop leaves together, in as few calls as possible; what is sent
        while something is handed over, when that is done.
        """
        if not self._waiting and not self._handing_over:
            self._loop.call_soon(self._flush)
        room = self._options.queue_datagrams - self._queued
        if len(datagrams) > room:
            self.stats.queue_drops += len(datagrams) - room
            datagrams = datagrams[:room]
        self._queued += len(datagrams)
        own = list(datagrams)
        self._queued_bytes += sum(map(len, own)) if self._core is None else self._core.total(own)
        if self._waiting and self._waiting[-1].address == address:
            self._waiting[-1].datagrams += own
        else:
            self._waiting.append(_Waiting(address, own))

    def soon(self, callback: Callable[[], None]) -> None:
        """Call it behind what is being handed over, else in the loop's next turn; what it sends leaves
        then."""
        if not self._handing_over and not self._behind:
            self._loop.call_soon(self._hand_over, {})
        self._behind.append(callback)

    def close(self) -> None:
        """Close the socket; what is still queued is lost."""
        self._loop.remove_reader(self._socket)
        self._loop.remove_writer(self._socket)
        self._socket.close()
        self._waiting.clear()

    def _open(self, address: str) -> socket.socket:
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        try:
            sock.bind((address, KV_PORT))
            check_mtu(sock, address)
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
            sock.setsockopt(socket.IPPROTO_UDP, UDP_GRO, int(self._options.receives_together))
        except ConfigError:
            sock.close()
            raise
        except OSError as error:
            sock.close()
            raise ConfigError(f"UDP {address}:{KV_PORT}: {error.strerror}") from None
        return sock

    def _flush(self) -> None:
        if self._socket.fileno() < 0:  # closed since this was scheduled
            return
        while self._waiting:
            if not self._send_first(self._waiting[0]):
                self._loop.add_writer(self._socket, self._flush)
                self._is_full = True
                return
            self._waiting.popleft()
        if self._is_full:
            self._loop.remove_writer(self._socket)
            self._is_full = False

    def _send_first(self, waiting: _Waiting) -> bool:
        """Whether these are dealt with: False means try again when the socket is writable."""
        while waiting.at < len(waiting.datagrams):
            try:
                count, sent_bytes = self._send_now(waiting)
                self.stats.sent += count
                self.stats.sent_bytes += sent_bytes
            except BlockingIOError:
                return False
            except OSError as error:
                if error.errno in _NO_SEGMENTATION and self._segmentation:
                    self._segmentation = False
                    continue
                lost = self._next_batch(waiting)
                count, sent_bytes = len(lost), sum(map(len, lost))
                self.stats.queue_drops += count  # no route, or the interface's queue is full
            waiting.at += count
            self._queued -= count
            self._queued_bytes -= sent_bytes
        return True

    def _send_now(self, waiting: _Waiting) -> tuple[int, int]:
        """Datagrams that have left, and their bytes."""
        if self._core is not None:
            return self._core.send(
                self._socket.fileno(), waiting.address, KV_PORT, waiting.datagrams, waiting.at,
                self._options.batch_bytes, self._segmentation,
            )  # fmt: skip
        datagrams = self._next_batch(waiting)
        if len(datagrams) == 1:
            self._socket.sendto(datagrams[0], (waiting.address, KV_PORT))
        else:
            segment = (socket.IPPROTO_UDP, UDP_SEGMENT, _SEGMENT_SIZE.pack(len(datagrams[0])))
            self._socket.sendmsg(datagrams, [segment], 0, (waiting.address, KV_PORT))
        return len(datagrams), sum(map(len, datagrams))

    def _next_batch(self, waiting: _Waiting) -> list[bytes]:
        """What the kernel is given as one next, and takes or refuses."""
        return waiting.gso_batch(self._options) if self._segmentation else [waiting.datagrams[waiting.at]]

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
        self._hand_over(arrived)

    def _on_ready(self) -> None:
        """The same with the compiled core, which takes several datagrams in a call."""
        assert self._core is not None
        arrived, received, received_bytes, foreign, drops = self._core.receive(self._socket.fileno(), KV_PORT)
        self.stats.received += received
        self.stats.received_bytes += received_bytes
        self.stats.foreign += foreign
        if drops >= 0:
            self.stats.socket_drops = drops
        self._hand_over(arrived)

    def _hand_over(self, arrived: Mapping[str, Sequence[Buffer]]) -> None:
        """By sender; what is sent meanwhile leaves at once, without another turn of the loop."""
        self._handing_over = True
        try:
            for address, datagrams in arrived.items():
                if self._receiver is not None:
                    self._receiver(address, datagrams)
            while self._behind:
                self._behind.popleft()()
        finally:
            self._handing_over = False
            if self._behind:  # somebody before them failed
                self._loop.call_soon(self._hand_over, {})
            if self._waiting:
                self._flush()

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
