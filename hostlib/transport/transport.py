"""Interface of a network, as clients and storage nodes use it: datagrams in, datagrams out.

`hostlib.transport.endpoint` implements it over UDP; tests inject an in-memory network that loses, reorders
and duplicates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from hostlib.protocol.wire import Buffer

Receiver = Callable[[str, Sequence[Buffer]], None]
"""Called with the sender's address and the payloads, which are valid only during the call."""


class Transport(Protocol):
    """A bound datagram endpoint; both ends use the protocol's port, so an address is a plain IPv4 address.

    One that hands over what came from several senders may have `soon(callback)`: it calls back when all of
    that is handed over.
    """

    def set_receiver(self, receiver: Receiver) -> None:
        """Say where incoming datagrams go from now on."""

    def send(self, address: str, datagrams: Sequence[bytes]) -> None:
        """Send in order, without blocking; what the bounded queue can't hold is dropped and counted."""

    @property
    def queued_bytes(self) -> int:
        """Payload bytes accepted by `send` that have not left the host."""
