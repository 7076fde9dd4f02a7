"""Hosts around the pool's switch in its library form: datagrams become frames and pass the pipeline."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from hostlib.protocol import wire
from tests.p4.rig import Rig, ip

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from hostlib.transport.transport import Receiver


class SwitchedPort:
    """A `hostlib.transport.transport.Transport` at a port of the switch."""

    queued_bytes = 0

    def __init__(self, network: SwitchedNetwork, port: int) -> None:
        self.receiver: Receiver | None = None
        self._network, self._port = network, port

    def set_receiver(self, receiver: Receiver) -> None:
        self.receiver = receiver

    def send(self, address: str, datagrams: Sequence[bytes]) -> None:
        for datagram in datagrams:
            asyncio.get_running_loop().call_soon(self._network.carry, self._port, address, bytes(datagram))


class SwitchedNetwork:
    """What a host sends is handled in order, and arrives in a later turn of the loop."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self._ports: dict[int, SwitchedPort] = {}

    def port(self, port: int) -> SwitchedPort:
        return self._ports.setdefault(port, SwitchedPort(self, port))

    def carry(self, source: int, address: str, datagram: bytes) -> None:
        frame = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:aa") / IP(src=ip(source), dst=address)
        for port, packet in self.rig.send(
            source, frame / UDP(sport=wire.KV_PORT, dport=wire.KV_PORT) / datagram
        ):
            host = self._ports.get(port)
            if host is not None and host.receiver is not None:
                payload = bytes(packet[UDP])[8 : packet[UDP].len]
                host.receiver(packet[IP].src, [memoryview(payload)])


class PipedPort:
    """The transport of a host in another process: its datagrams go through a pipe to a port of the switch."""

    queued_bytes = 0

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._receiver: Receiver | None = None
        asyncio.get_running_loop().add_reader(pipe.fileno(), self._on_readable)

    def set_receiver(self, receiver: Receiver) -> None:
        self._receiver = receiver

    def send(self, address: str, datagrams: Sequence[bytes]) -> None:
        for datagram in datagrams:
            self._pipe.send((address, bytes(datagram)))

    def _on_readable(self) -> None:
        while self._pipe.poll():
            address, datagram = self._pipe.recv()
            if self._receiver is not None:
                self._receiver(address, [memoryview(datagram)])


def attach(network: SwitchedNetwork, port: int, pipe: Connection, said: asyncio.Future[object]) -> None:
    """Carry a piped host's datagrams; what it sends besides datagrams is its result."""
    here = network.port(port)
    here.set_receiver(lambda address, datagrams: pipe.send((address, bytes(datagrams[0]))))

    def on_readable() -> None:
        while not said.done() and pipe.poll():
            try:
                what, rest = pipe.recv()
            except EOFError:
                said.set_exception(RuntimeError("the other process ended without a result"))
                return
            if what == "result":
                said.set_result(rest)
            else:
                here.send(what, [rest])

    asyncio.get_running_loop().add_reader(pipe.fileno(), on_readable)
