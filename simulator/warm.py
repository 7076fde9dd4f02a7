"""Warming of nodes: hot blocks are sent to them without a request.

A push sends the most used blocks to nodes: from their homes, over each link once (`multicast`) or once for
each node (`unicast`), or by multicast from the switches' pools, as far as these hold them (`pool`).
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from simulator.events import Loop
from simulator.messages import Block
from simulator.network import Network
from simulator.node import Node
from simulator.switch import Switch
from simulator.workload import Library
from workload.trace import Request


def hottest(library: Library, past: Iterable[Request], count: int) -> list[Block]:
    """Return the blocks that most past requests used, first blocks of chains first.

    Blocks that were used once are not hot.
    """
    uses: Counter[Block] = Counter()
    for request in past:
        uses.update(library.chain(request))
    ordered = sorted(
        (block for block, number in uses.items() if number > 1), key=lambda block: (-uses[block], block.depth)
    )
    return ordered[:count]


class Push:
    """Sender of blocks to nodes without a request.

    Each source sends one block after the other, the next when the one before has come. Other traffic thus
    waits for at most one such block at a link.
    """

    def __init__(self, loop: Loop, network: Network, nodes: Mapping[str, Node]) -> None:
        self._loop, self._network, self._nodes = loop, network, nodes
        self._size_bytes = network.sizes.block_bytes * (1 + network.sizes.header_share)

    def from_homes(self, blocks: Iterable[Block], multicast: bool) -> None:
        """Send each block from its home."""
        by_home: dict[str, list[Block]] = {}
        for block in blocks:
            by_home.setdefault(block.home, []).append(block)
        together = [list(self._nodes)] if multicast else [[name] for name in self._nodes]
        for home, mine in by_home.items():
            self._send(home, deque((block, names) for block in mine for names in together), _at_once)

    def from_pools(self, blocks: Iterable[Block], switches: Sequence[Switch]) -> None:
        """Send each block from the nearest switch that holds it, if any does."""
        names = list(self._nodes)
        far = {
            switch.name: sum(len([*self._hops(switch.name, name)]) for name in names) for switch in switches
        }
        by_switch: dict[str, list[Block]] = {}
        for block in blocks:
            holders = [switch.name for switch in switches if switch.holds(block)]
            if holders:
                by_switch.setdefault(min(holders, key=lambda name: far[name]), []).append(block)
        for switch in switches:
            mine = by_switch.get(switch.name, ())
            self._send(switch.name, deque((block, names) for block in mine), switch.read)

    def _send(
        self, source: str, jobs: deque[tuple[Block, list[str]]], ready_s: Callable[[Block], float]
    ) -> None:
        """Send the next block to the nodes that get it together, over each link once."""
        if not jobs:
            return
        block, names = jobs.popleft()
        came_s = begin_s = ready_s(block)
        passed: dict[tuple[str, str], float] = {}
        for name in names:
            tail_s = begin_s
            for hop in self._hops(source, name):
                if hop not in passed:
                    passed[hop] = self._network.links[hop].send(
                        self._loop.now, self._size_bytes, self._network.sizes.value_bytes, tail_s
                    )[1]
                tail_s = passed[hop]
            self._loop.at(tail_s, self._nodes[name].place, block)
            came_s = max(came_s, tail_s)
        self._loop.at(came_s, self._send, source, jobs, ready_s)

    def _hops(self, source: str, name: str) -> Iterator[tuple[str, str]]:
        """Yield the links on the way to a node."""
        vertex = source
        while vertex != name:
            neighbour = self._network.next_hop(vertex, name)
            yield vertex, neighbour
            vertex = neighbour


def _at_once(block: Block) -> float:
    """Return 0, since a home reads ahead of its link."""
    return 0.0
