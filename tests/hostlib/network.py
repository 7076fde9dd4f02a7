"""An event loop whose clock jumps instead of waiting, and an in-memory network that misbehaves on request."""

from __future__ import annotations

import asyncio
import random
import selectors
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence

    from hostlib.transport import Receiver
    from hostlib.wire import Buffer

Result = TypeVar("Result")


class _JumpingSelector(selectors.DefaultSelector):
    """Nothing ever becomes readable: waiting means that the clock moves."""

    now_s = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        assert timeout is not None, "deadlock: nothing is scheduled and nobody can wake the loop"
        self.now_s += max(0.0, timeout)
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """Runs timers in order without waiting for them."""

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now_s


def run_virtual(main: Coroutine[Any, Any, Result]) -> Result:
    """asyncio.run with virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)


@dataclass(frozen=True)
class Faults:
    """Shares of datagrams that suffer; delays in seconds."""

    lost: float = 0.0
    duplicated: float = 0.0
    corrupted: float = 0.0
    min_delay_s: float = 0.001
    max_delay_s: float = 0.001


NO_FAULTS = Faults()


class MemoryNetwork:
    """Ports by address; `faults` may be changed while running."""

    def __init__(self, faults: Faults = NO_FAULTS, seed: int = 0) -> None:
        self.faults = faults
        self.ports: dict[str, MemoryPort] = {}
        self.log: list[tuple[str, str, bytes]] = []
        self._random = random.Random(seed)

    def port(self, address: str) -> MemoryPort:
        self.ports[address] = MemoryPort(self, address)
        return self.ports[address]

    def carry(self, source: str, destination: str, datagram: bytes) -> None:
        self.log.append((source, destination, datagram))
        copies = 2 if self._random.random() < self.faults.duplicated else 1
        for _ in range(copies):
            if self._random.random() >= self.faults.lost:
                delay_s = self._random.uniform(self.faults.min_delay_s, self.faults.max_delay_s)
                asyncio.get_running_loop().call_later(
                    delay_s, self.deliver, source, destination, self._damage(datagram)
                )

    def deliver(self, source: str, destination: str, datagram: Buffer) -> None:
        port = self.ports.get(destination)
        if port is not None and port.receiver is not None:
            port.receiver(source, [memoryview(datagram)])

    def _damage(self, datagram: bytes) -> bytes:
        if self._random.random() >= self.faults.corrupted:
            return datagram
        damaged = bytearray(datagram)
        damaged[self._random.randrange(len(damaged))] ^= 1 << self._random.randrange(8)
        return bytes(damaged)


class MemoryPort:
    """A `hostlib.transport.Transport` on a MemoryNetwork."""

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
