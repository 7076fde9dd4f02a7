"""An in-memory network that misbehaves on request, for tests in virtual time."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hostlib import native
from hostlib.protocol import wire

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hostlib.protocol.members import Members
    from hostlib.protocol.wire import Buffer
    from hostlib.transport.transport import Receiver


@dataclass(frozen=True)
class Faults:
    """Shares of datagrams that suffer; delays in seconds."""

    lost: float = 0.0
    duplicated: float = 0.0
    corrupted: float = 0.0
    min_delay_s: float = 0.001
    max_delay_s: float = 0.001


NO_FAULTS = Faults()
CHECKED_FROM = 32
"""First byte of a message with a value that its own checksum covers."""


class MemoryNetwork:
    """Ports by address; `faults` and `dead` may be changed while running.

    With `members` it copies PUTs to the homes that they name, as a switch does.
    """

    def __init__(self, faults: Faults = NO_FAULTS, seed: int = 0) -> None:
        self.faults = faults
        self.dead: set[str] = set()
        """Addresses that nothing reaches or leaves."""
        self.members: Members | None = None
        self.pooled: dict[bytes, wire.Message] = {}
        """What a pool says, by key, to who does not ask past it."""
        self.ports: dict[str, MemoryPort] = {}
        self.log: list[tuple[str, str, bytes]] = []
        self._random = random.Random(seed)

    def port(self, address: str) -> MemoryPort:
        self.ports[address] = MemoryPort(self, address)
        return self.ports[address]

    def carry(self, source: str, destination: str, datagram: bytes) -> None:
        self.log.append((source, destination, datagram))
        if self.pooled and datagram[1] == wire.OP_STAT:
            asked = wire.decode(datagram)
            if asked.key in self.pooled and not asked.flags & wire.FLAG_BYPASS:
                self._carry(destination, source, wire.encode(self.pooled[asked.key]))
                return
        for copy_to in self._copies_to(destination, datagram):
            self._carry(source, copy_to, datagram)

    def _copies_to(self, destination: str, datagram: bytes) -> list[str]:
        if self.members is None or len(datagram) < wire.KV_HEADER_BYTES or datagram[1] != wire.OP_PUT:
            return [destination]
        homes = wire.decode(datagram).homes
        return [m.address for m in self.members.nodes if m.number in homes] or [destination]

    def _carry(self, source: str, destination: str, datagram: bytes) -> None:
        if source in self.dead or destination in self.dead:
            return
        copies = 2 if self._random.random() < self.faults.duplicated else 1
        for _ in range(copies):
            if self._random.random() < self.faults.lost:
                continue
            delay_s = self._random.uniform(self.faults.min_delay_s, self.faults.max_delay_s)
            arriving = self._damage(datagram)
            if arriving is not None:
                asyncio.get_running_loop().call_later(delay_s, self.deliver, source, destination, arriving)

    def deliver(self, source: str, destination: str, datagram: Buffer) -> None:
        self.deliver_burst(source, destination, [datagram])

    def deliver_burst(self, source: str, destination: str, datagrams: Sequence[Buffer]) -> None:
        """All at once, as an endpoint hands over what waits."""
        if source in self.dead or destination in self.dead:
            return
        port = self.ports.get(destination)
        if port is not None and port.receiver is not None:
            # As the endpoint does it: bytes with the compiled core, else views.
            view = bytes if native.core().is_compiled else memoryview
            port.receiver(source, [view(datagram) for datagram in datagrams])

    def _damage(self, datagram: bytes) -> bytes | None:
        """With one bit flipped, now and then. What only UDP's checksum covers is lost, as on a real host:
        a message without a value, and the first bytes of one that has a value.
        """
        if self._random.random() >= self.faults.corrupted:
            return datagram
        at = self._random.randrange(len(datagram))
        if at < CHECKED_FROM or len(datagram) <= wire.KV_HEADER_BYTES:
            return None
        damaged = bytearray(datagram)
        damaged[at] ^= 1 << self._random.randrange(8)
        return bytes(damaged)


class MemoryPort:
    """A `hostlib.transport.transport.Transport` on a MemoryNetwork."""

    def __init__(self, network: MemoryNetwork, address: str) -> None:
        self.receiver: Receiver | None = None
        self.queued_bytes = 0
        self._network = network
        self._address = address

    def set_receiver(self, receiver: Receiver) -> None:
        self.receiver = receiver

    def send(self, address: str, datagrams: Sequence[bytes]) -> None:
        for datagram in datagrams:
            self._network.carry(self._address, address, datagram)


async def commit_in_virtual_time(work: Callable[[], None]) -> None:
    """In place of a thread: a commit takes two milliseconds."""
    await asyncio.sleep(0.002)
    work()
