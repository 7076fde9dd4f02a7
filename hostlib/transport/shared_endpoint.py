"""One bound endpoint for two: a client, and who answers what other hosts ask here.

Inference nodes that lend their memory have both (hostlib.peer.lending). What is asked, GET and STAT, is the
answering side's, everything else the client's, which counts what it does not expect.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Final

from hostlib.protocol import wire
from hostlib.transport.transport import Receiver, Transport

ASKED: Final = frozenset((wire.OP_GET, wire.OP_STAT))


class Side:
    """A `Transport` that gets its part of what comes."""

    def __init__(self, transport: Transport) -> None:
        self.receiver: Receiver | None = None
        self.send = transport.send
        soon: Callable[[Callable[[], None]], object] | None = getattr(transport, "soon", None)
        self.soon = soon or asyncio.get_running_loop().call_soon
        self._transport = transport

    def set_receiver(self, receiver: Receiver) -> None:
        """Set the function that gets this part's datagrams from now on."""
        self.receiver = receiver

    @property
    def queued_bytes(self) -> int:
        """Return the queued bytes of both sides: they wait for the same link."""
        return self._transport.queued_bytes


class SharedEndpoint:
    """See the module; use inside a running loop."""

    def __init__(self, transport: Transport) -> None:
        self.client, self.answering = Side(transport), Side(transport)
        transport.set_receiver(self._on_datagrams)

    def _on_datagrams(self, address: str, datagrams: Sequence[wire.Buffer]) -> None:
        for asked, run in groupby(datagrams, _is_asked):
            receiver = (self.answering if asked else self.client).receiver
            if receiver is not None:
                receiver(address, list(run))


def _is_asked(datagram: wire.Buffer) -> bool:
    return wire.op_of(datagram) in ASKED
