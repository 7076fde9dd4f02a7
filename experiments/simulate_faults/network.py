"""Links of hosts and switches that lose, reorder, repeat and damage, and can be cut, also one way.

A datagram becomes the frame that a host would send. Its UDP checksum is left out (0: none), so that a flipped
bit gets past it; in the first 32 bytes of the message, which only that checksum covers, a flipped bit is a
lost datagram, as it would be on a real host.
"""

from __future__ import annotations

import asyncio
import random
import struct
from collections.abc import Callable, Sequence
from functools import partial
from ipaddress import IPv4Address
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from controller.addressing import Mac
from controller.frames import internet_checksum
from hostlib import native
from hostlib.protocol import wire

if TYPE_CHECKING:
    from experiments.simulate_faults.switch import SimulatedSwitch
    from hostlib.protocol.wire import Buffer
    from hostlib.transport.transport import Receiver
    from topologies.fabric import Endpoint, Fabric

LINK_S: Final = 0.0001
"""Seconds from the switch to a host; what comes in this time arrives together."""
MAX_FRAME_BYTES: Final = 9216
LATE_S: Final = 0.02
"""Most seconds by which a reordered frame is late."""
VERY_LATE_S: Final = 0.15
"""Most seconds by which a late frame is late: longer than hosts wait before they ask again."""
_ROUTER: Final = Mac(0x02_00_00_00_00_FE)
_UDP_BYTES: Final = 8
_IPV4_BYTES: Final = 20
_PAYLOAD_AT: Final = 14 + _IPV4_BYTES + _UDP_BYTES
_SOURCE: Final = slice(26, 30)
_OP: Final = _PAYLOAD_AT + 1
_FLAGS: Final = slice(_PAYLOAD_AT + 2, _PAYLOAD_AT + 4)
_COVERED_AT: Final = 32
"""Offset in a message at which what checksum and tag cover begins."""


class Rates:
    """Shares of frames that suffer, on each link."""

    def __init__(self) -> None:
        self.lose = self.reorder = self.duplicate = self.flip = self.late = 0.0

    @property
    def calm(self) -> bool:
        """Return whether nothing befalls frames."""
        return not (self.lose or self.reorder or self.duplicate or self.flip or self.late)


class Link:
    """Link between one host and its switch, and what is wrong with it, whichever process the host runs."""

    __slots__ = ("cut", "deaf", "longest_bytes", "lose", "mute", "slow_s")

    def __init__(self) -> None:
        self.cut = self.deaf = self.mute = False
        """Whether nothing passes; whether nothing reaches the host; whether nothing leaves it."""
        self.longest_bytes = MAX_FRAME_BYTES
        """Length of the longest frame that passes; longer ones are lost, both ways."""
        self.lose = 0.0
        """The share of frames that is lost, each way."""
        self.slow_s = 0.0
        """How much later what the host gets comes."""


class Network:
    """Switches, and the hosts at their ports."""

    def __init__(
        self, seed: int, fabric: Fabric, delivered: Callable[[bytes], None] = lambda frame: None
    ) -> None:
        """Make a network; `delivered` hears of each frame that reaches a host."""
        self.rates = Rates()
        self.frames = 0
        self.switches: dict[str, SimulatedSwitch] = {}
        """By name; whoever makes the network adds them."""
        self._fabric = fabric
        self._peers = {
            (switch, port.number): port.peer for switch in fabric.switches for port in fabric.ports(switch)
        }
        self._ports: dict[str, HostPort] = {}
        self._links: dict[str, Link] = {}
        self._random = random.Random(seed)
        self._delivered = delivered
        self._views = not native.core().is_compiled

    def port(self, host: str) -> HostPort:
        """Return the port of a host; one that was there before hears nothing any more."""
        link = self._links.setdefault(host, Link())
        (switch,) = self._fabric.graph.adj[host]
        self._ports[host] = HostPort(self, self._fabric.hosts[host], switch, link)
        return self._ports[host]

    def send(self, port: HostPort, frames: Sequence[bytes]) -> None:
        """Send from a host to its switch."""
        link = port.link
        if self._ports[port.name] is not port or link.cut or link.mute:
            return
        self.frames += len(frames)
        frames = [frame for frame in frames if len(frame) <= link.longest_bytes]
        self._carry(frames, self._entrance(port.name, port.switch), link.lose)

    def transmit(self, switch: str, number: int, frame: bytes) -> None:
        """Send from a port of a switch to the host or the switch that is there."""
        peer = self._peers.get((switch, number), "")
        if peer in self.switches:
            self._carry([frame], self._entrance(switch, peer))
            return
        port = self._ports.get(peer)
        if port is None:
            return
        link = port.link
        if not (link.cut or link.deaf or len(frame) > link.longest_bytes):
            self._carry([frame], port.arrive, link.lose, link.slow_s)

    def _entrance(self, origin: str, switch: str) -> Callable[[Sequence[bytes]], None]:
        """Return what takes frames that a host or switch sends to a switch."""
        return partial(
            self.switches[switch].receive, self._fabric.graph.edges[origin, switch]["ports"][switch]
        )

    def _carry(
        self,
        frames: Sequence[bytes],
        arrive: Callable[[Sequence[bytes]], None],
        lose: float = 0.0,
        slow_s: float = 0.0,
    ) -> None:
        """Take frames over a link that loses such a share of its own, and is so slow."""
        if self.rates.calm and not slow_s and not lose:
            arrive(frames)
            return
        loop = asyncio.get_running_loop()
        for frame, delay_s in self._damaged(frames, lose):
            if delay_s or slow_s:
                loop.call_later(delay_s + slow_s, arrive, [frame])
            else:
                arrive([frame])

    def deliver(self, port: HostPort, frames: Sequence[bytes]) -> None:
        """Deliver all that came in a moment to the host that is there by now."""
        receiver = port.receiver
        if receiver is None or self._ports[port.name] is not port or port.link.cut:
            return
        for source, run in groupby(frames, key=itemgetter(_SOURCE)):  # a kernel hands these over together
            receiver(_address(source), [self._payload(frame) for frame in run])

    def _payload(self, frame: bytes) -> Buffer:
        """Return the payload as a socket gives it: bytes with the compiled core, else a view."""
        self._delivered(frame)
        length = int.from_bytes(frame[38:40], "big") - _UDP_BYTES
        whole = memoryview(frame) if self._views else frame
        return whole[_PAYLOAD_AT : _PAYLOAD_AT + length]

    def _damaged(self, frames: Sequence[bytes], lose: float) -> list[tuple[bytes, float]]:
        """Return what is left of these frames on a link that loses such a share of its own, and how much
        later each comes."""
        rng, rates = self._random, self.rates
        left = []
        for frame in frames:
            for _ in range(2 if rng.random() < rates.duplicate else 1):
                if rng.random() < rates.lose or (lose and rng.random() < lose):
                    continue
                damaged: bytes | None = self._flip(frame) if rng.random() < rates.flip else frame
                if damaged is not None:
                    late_s = rng.uniform(0, LATE_S) if rng.random() < rates.reorder else 0.0
                    if rates.late and rng.random() < rates.late:
                        late_s = rng.uniform(0, VERY_LATE_S)
                    left.append((damaged, 0.0 if _answers_any_number(frame) else late_s))
        return left

    def _flip(self, frame: bytes) -> bytes | None:
        at = self._random.randrange(len(frame))
        if at < _PAYLOAD_AT + _COVERED_AT:
            return None
        flipped = bytearray(frame)
        flipped[at] ^= 1 << self._random.randrange(8)
        return bytes(flipped)


class HostPort:
    """A `hostlib.transport.transport.Transport`."""

    def __init__(self, network: Network, host: Endpoint, switch: str, link: Link) -> None:
        self.name, self.address, self.switch, self.link = host.name, str(host.ipv4), switch, link
        self.receiver: Receiver | None = None
        self.queued_bytes = 0
        self._network, self._host = network, host
        self._heads: dict[tuple[str, int], bytes] = {}
        self._arriving: list[bytes] = []

    def set_receiver(self, receiver: Receiver) -> None:
        """See Transport."""
        self.receiver = receiver

    def send(self, address: str, datagrams: Sequence[bytes]) -> None:
        """See Transport."""
        self._network.send(self, [self._head(address, len(data)) + data for data in datagrams])

    def arrive(self, frames: Sequence[bytes]) -> None:
        """Take frames that come from the switch."""
        if not self._arriving:
            asyncio.get_running_loop().call_later(LINK_S, self._deliver)
        self._arriving += frames

    def _deliver(self) -> None:
        frames, self._arriving = self._arriving, []
        self._network.deliver(self, frames)

    def _head(self, address: str, payload_bytes: int) -> bytes:
        head = self._heads.get((address, payload_bytes))
        if head is None:
            head = self._heads[address, payload_bytes] = _headers(self._host, address, payload_bytes)
        return head


def _headers(source: Endpoint, destination: str, payload_bytes: int) -> bytes:
    udp_bytes = _UDP_BYTES + payload_bytes
    ends = source.ipv4.packed + IPv4Address(destination).packed
    ipv4 = struct.pack(">BBHHHBBH", 0x45, 0, _IPV4_BYTES + udp_bytes, 0, 0, 64, 17, 0) + ends
    ipv4 = ipv4[:10] + struct.pack(">H", internet_checksum(ipv4)) + ipv4[12:]
    ethernet = _ROUTER.packed + Mac.parse(source.mac).packed + b"\x08\x00"
    return ethernet + ipv4 + struct.pack(">HHHH", wire.KV_PORT, wire.KV_PORT, udp_bytes, 0)


def _answers_any_number(frame: bytes) -> bool:
    """Return whether a frame is a copy of a value that answers whatever a host asked.

    It is not promised that links hold back none of these from before a deletion.
    """
    flags = int.from_bytes(frame[_FLAGS], "big")
    return frame[_OP] == wire.OP_VALUE and bool(flags & (wire.FLAG_MERGED | wire.FLAG_PUSHED))


_ADDRESSES: dict[bytes, str] = {}


def _address(packed: bytes) -> str:
    if packed not in _ADDRESSES:
        _ADDRESSES[packed] = str(IPv4Address(packed))
    return _ADDRESSES[packed]
