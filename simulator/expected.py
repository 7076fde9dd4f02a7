"""Announcements of a node to its switch's controller, of blocks that it begins to compute and will put."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from ipaddress import IPv4Address

from controller.operations import Answer
from hostlib.protocol import wire
from hostlib.protocol.expected import expectation
from simulator.control import SwitchControl
from simulator.events import Loop
from simulator.link import Link
from simulator.messages import Block


class Teller:
    """Announcer of one node; its messages are those of live nodes."""

    def __init__(
        self,
        loop: Loop,
        control: SwitchControl,
        node: IPv4Address,
        link: Link,
        stored: Callable[[Block], Sequence[Block]],
    ) -> None:
        """Set up the announcer of the node with the address `node`.

        `link` is the node's link to the switch of `control`. `stored` returns the blocks that are put for a
        block.
        """
        self._loop, self._control, self._node, self._link = loop, control, node, link
        self._stored = stored

    def tell(self, new: Sequence[Block], chain: Sequence[Block]) -> None:
        """Announce blocks that the node begins to compute for a request with this chain.

        The messages wait for their turn on the link. They take no time of it: one is as long as one of the
        tens of thousands of packets of a real block.
        """
        named = []
        for block in new:
            # A chunk outside the chain counts as the first block of a chain of its own.
            blocks = len(chain) if chain[block.depth] is block else 1
            named += [self._control.named(form, blocks) for form in self._stored(block)]
        at_switch_s = self._link.wait_s(self._loop.now) + self._link.latency_s
        for message in expectation(wire.TENANT_PUBLIC, named, 0):
            answer = Answer(self._node, wire.decode(message))
            self._loop.after(at_switch_s, self._control.on_expect, answer)
