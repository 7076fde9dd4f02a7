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
from typing import TYPE_CHECKING

from hostlib import native
from hostlib.native.python_sockets import (
    BATCH_BYTES,
    MAX_DATAGRAM_BYTES,
    SO_RXQ_OVFL,
    UDP_GRO,
    gso_batch,
    gso_datagrams,
)
from hostlib.protocol.errors import ConfigError
from hostlib.protocol.wire import FRAME_HEADER_BYTES, KV_PORT, VALUE_FRAME_BYTES, Buffer
from hostlib.transport.mtu import check_mtu

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from hostlib.transport.transport import Receiver

# From linux/udp.h and asm-generic/socket.h; Python 3.11's socket module lacks them.
IP_MTU_DISCOVER = 10
IP_PMTUDISC_INTERFACE = 4
SO_RCVBUFFORCE = 33
SO_SNDBUFFORCE = 32

_ADVICE = {
    errno.EADDRNOTAVAIL: ": no interface of this machine has it",
    errno.EADDRINUSE: ": another process of this node has it",
}
"""Advice that ends the error of a socket that can't be bound, by the error's number."""
_NO_SEGMENTATION = (errno.EIO, errno.EINVAL)
_BUFFER_BYTES = 3 * MAX_DATAGRAM_BYTES
"""Filled from its start in each turn, so most of it is hardly ever touched."""
_BATCH_S = 0.001
_UINT = struct.Struct("=I")


@dataclass(frozen=True, slots=True)
class EndpointOptions:
    """Bounds of an endpoint."""

    batch_bytes: int = 8 * VALUE_FRAME_BYTES
    """Most bytes, counted as frames, that are handed to the kernel at once; a shaped link sends them as one
    burst. A batch has one datagram at least."""
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
        """Return options for a link (0: unlimited) on which a batch of datagrams should take hardly any time.

        A batch leaves before its time, as if the link were faster than it is: on a slow one a node that asks
        a little later than others would find the first answers gone that it could have shared.
        """
        return cls(batch_bytes=int(_BATCH_S * link_bit_s / 8) if link_bit_s else BATCH_BYTES)

    def gso_datagrams(self, datagram_bytes: int) -> int:
        """Return how many datagrams of this length are one batch for the kernel."""
        return gso_datagrams(self.batch_bytes, datagram_bytes)


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
    """Datagrams that were not sent because the queue was full or the kernel refused them."""
    socket_drops: int = 0
    """Datagrams that were not received because the socket's buffer was full (SO_RXQ_OVFL) or the checksum was
    wrong."""

    @property
    def egress_frame_bytes(self) -> int:
        """Return the bytes that left as Ethernet frames: payload and headers, without preamble and
        checksum."""
        return self.sent_bytes + self.sent * FRAME_HEADER_BYTES

    @property
    def dropped(self) -> int:
        """Return what was lost in this host rather than on the network: the host did not keep up."""
        return self.queue_drops + self.socket_drops

    def report(self) -> dict[str, int]:
        """Return all counters."""
        return asdict(self) | {"egress_frame_bytes": self.egress_frame_bytes, "dropped": self.dropped}


@dataclass(slots=True)
class _Waiting:
    """Datagrams to one address; those before `at` have left."""

    address: str
    datagrams: list[bytes]
    at: int = 0


class UdpEndpoint:
    """A `Transport` over UDP, bound to the protocol's port at one address; use inside a running loop."""

    def __init__(self, address: str, options: EndpointOptions | None = None) -> None:
        self.stats = EndpointStats()
        self._options = options or EndpointOptions()
        self._loop = asyncio.get_running_loop()
        self._socket = self._open(address)
        self._receiver: Receiver | None = None
        self._room = memoryview(bytearray(_BUFFER_BYTES))
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
        self._loop.add_reader(self._socket, self._on_readable)

    def set_receiver(self, receiver: Receiver) -> None:
        """Say where incoming datagrams go from now on."""
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
        self._queued_bytes += self._core.total(own)
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
            advice = _ADVICE.get(error.errno or 0, "")
            raise ConfigError(f"UDP {address}:{KV_PORT}: {error.strerror}{advice}") from None
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
        """Send datagrams; return False if the rest has to wait until the socket is writable."""
        while waiting.at < len(waiting.datagrams):
            try:
                count, sent_bytes = self._core.send(
                    self._socket, waiting.address, KV_PORT, waiting.datagrams, waiting.at,
                    self._options.batch_bytes, self._segmentation,
                )  # fmt: skip
                self.stats.sent += count
                self.stats.sent_bytes += sent_bytes
            except BlockingIOError:
                return False
            except OSError as error:
                if error.errno in _NO_SEGMENTATION and self._segmentation:
                    self._segmentation = False
                    continue
                lost = gso_batch(waiting.datagrams, waiting.at, self._options.batch_bytes, self._segmentation)
                count, sent_bytes = len(lost), sum(map(len, lost))
                self.stats.queue_drops += count  # no route, or the interface's queue is full
            waiting.at += count
            self._queued -= count
            self._queued_bytes -= sent_bytes
        return True

    def _on_readable(self) -> None:
        """Take what has come, up to a bound, and hand it over by sender.

        What a receiver does for each call it then does once for many datagrams, also where the kernel has not
        put them together: behind a switch they come one by one.
        """
        arrived, received, received_bytes, foreign, drops = self._core.receive(
            self._socket, KV_PORT, self._room
        )
        self.stats.received += received
        self.stats.received_bytes += received_bytes
        self.stats.foreign += foreign
        if drops >= 0:
            self.stats.socket_drops = drops
        self._hand_over(arrived)

    def _hand_over(self, arrived: Mapping[str, Sequence[Buffer]]) -> None:
        """Hand datagrams to the receiver, by sender. What it sends meanwhile leaves at once, in this turn of
        the loop."""
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

    def _kernel_bytes(self) -> int:
        return int(_UINT.unpack(fcntl.ioctl(self._socket, termios.TIOCOUTQ, bytes(4)))[0])
