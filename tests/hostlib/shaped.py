"""A star of links with a rate, and queues of so many packets at the switch, in virtual time."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from hostlib.protocol.wire import FRAME_HEADER_BYTES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hostlib.transport.transport import Receiver

PROPAGATION_S = 0.0001


class Link:
    """One direction of a link: what waits leaves one packet after the other."""

    def __init__(self, rate_bit_s: float, most: int | None = None) -> None:
        self.rate_bit_s, self.most = rate_bit_s, most
        self.sent_bytes = self.drops = 0
        self._leave_s: deque[float] = deque()
        """When each packet that waits will have left."""

    def send(self, now_s: float, frame_bytes: int) -> float | None:
        """When the packet has left; None if there is no room for it."""
        while self._leave_s and self._leave_s[0] <= now_s:
            self._leave_s.popleft()
        if self.most is not None and len(self._leave_s) > self.most:
            self.drops += 1
            return None
        begins_s = self._leave_s[-1] if self._leave_s else now_s
        self._leave_s.append(begins_s + 8 * frame_bytes / self.rate_bit_s)
        self.sent_bytes += frame_bytes
        return self._leave_s[-1]

    def queued_bytes(self, now_s: float) -> int:
        """What has not left."""
        return int(max(0.0, self._leave_s[-1] - now_s) * self.rate_bit_s / 8) if self._leave_s else 0


class ShapedNetwork:
    """Hosts at one switch."""

    def __init__(self, rate_bit_s: float, queue_packets: int) -> None:
        self.ports: dict[str, ShapedPort] = {}
        self.packets = 0
        self._rate_bit_s, self._queue_packets = rate_bit_s, queue_packets

    def port(self, address: str) -> ShapedPort:
        """Of a host."""
        up, down = Link(self._rate_bit_s), Link(self._rate_bit_s, self._queue_packets)
        self.ports[address] = ShapedPort(self, address, up, down)
        return self.ports[address]

    @property
    def drops(self) -> int:
        """Of all queues."""
        return sum(port.down.drops for port in self.ports.values())

    def arrive(self, source: str, destination: str, datagram: bytes) -> None:
        """At the switch."""
        self.packets += 1
        loop, port = asyncio.get_running_loop(), self.ports[destination]
        at_s = port.down.send(loop.time(), FRAME_HEADER_BYTES + len(datagram))
        if at_s is not None:
            loop.call_at(at_s + PROPAGATION_S, port.deliver, source, datagram)


class ShapedPort:
    """A `hostlib.transport.transport.Transport`."""

    def __init__(self, network: ShapedNetwork, address: str, up: Link, down: Link) -> None:
        self.up, self.down = up, down
        self._network, self._address = network, address
        self._receiver: Receiver | None = None

    @property
    def queued_bytes(self) -> int:
        """See Transport."""
        return self.up.queued_bytes(asyncio.get_running_loop().time())

    def set_receiver(self, receiver: Receiver) -> None:
        """See Transport."""
        self._receiver = receiver

    def send(self, address: str, datagrams: Sequence[bytes]) -> None:
        """See Transport."""
        loop = asyncio.get_running_loop()
        for datagram in datagrams:
            at_s = self.up.send(loop.time(), FRAME_HEADER_BYTES + len(datagram))
            assert at_s is not None
            loop.call_at(at_s + PROPAGATION_S, self._network.arrive, self._address, address, datagram)

    def deliver(self, source: str, datagram: bytes) -> None:
        """From the switch."""
        if self._receiver is not None:
            self._receiver(source, [memoryview(datagram)])
