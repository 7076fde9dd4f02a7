"""Distributed pool: nodes read blocks from each other's memory over their own links, as in Mooncake.

Nothing is written for others. A node holds what it computed or fetched as long as its tiers do, so a block in
demand gets many copies (Mooncake's replication of hot blocks). An index says who holds what; of several
holders, the one whose adapter is free first sends. A block waits its turn at the sender's adapter, at each
link between switches, at the reader's adapter, and at the reader's client. Reads are one-sided: the sender's
cores take no part, and its adapter moves `direct.peer_share` of the link's rate.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

from hostlib.model.tiers import LocalTiers
from scenario import GBIT_BYTES
from scenario.tables import Direct
from scenario.tables import Network as Fabric
from simulator.events import Loop
from simulator.front import Front
from simulator.holders import Holders
from simulator.link import AT_ONCE_S, Link, Passage
from simulator.messages import Block
from simulator.network import Network

Arrived = Callable[[], None]


class PeerPool:
    """Index, and each node's adapter in both directions; all blocks pass `front` if there is one."""

    def __init__(
        self,
        loop: Loop,
        options: Direct,
        fabric: Fabric,
        block_bytes: float,
        network: Network,
        front: Front | None = None,
    ) -> None:
        self.block_bytes = block_bytes
        self.options = options
        self.front = front
        self.out_links: list[Link] = []
        self.in_links: list[Link] = []
        self.latency_s = fabric.latency_us * 1e-6
        self._loop, self._network = loop, network
        self._rate = fabric.link_gbit_s * GBIT_BYTES * options.peer_share
        self.block_s = block_bytes / self._rate
        self.beside_reader = front is not None and front.beside_reader
        """Whether blocks wait neither for other nodes' adapters nor between switches."""
        self._head_bytes = block_bytes / fabric.fragments
        self._names: list[str] = []
        self._coming: list[int] = []
        """Number of blocks on their way to each node."""
        self._ways: dict[tuple[int, int], tuple[Link, ...]] = {}
        self._holders = Holders()

    def join(self, name: str, tiers: LocalTiers[Block]) -> PeerClient:
        """Add a node: a vertex of the network that holds blocks in these tiers."""
        node = self._holders.join(tiers)
        self._names.append(name)
        self._coming.append(0)
        self.out_links.append(Link(f"node {node} out", self._rate, self.latency_s))
        self.in_links.append(Link(f"node {node} in", self._rate, self.latency_s))
        return PeerClient(self._loop, self, node)

    def preload(self, blocks: Iterable[Block], nodes: int) -> None:
        """Spread these over the DRAM of the first `nodes` nodes; the most recently used block comes last."""
        self._holders.spread(blocks, nodes)

    def note(self, node: int, block: Block) -> None:
        """Note that a node holds a block."""
        self._holders.note(node, block)

    def has(self, block: Block) -> bool:
        """Return whether any node, or the switch in front, has a block."""
        return self.fronted(block) or bool(self._holders.of(block))

    def fronted(self, block: Block) -> bool:
        """Return whether no node has to send a block, because the switch in front has it or it is on its way
        there."""
        return self.front is not None and self.front.has(block, self._loop.now)

    def source(self, block: Block, asker: int) -> int | None:
        """Return the holder that sends a block: the one whose adapter is free first, or None."""
        others = [node for node in self._holders.of(block) if node != asker]
        return min(others, key=lambda node: (self.out_links[node].free_s, node), default=None)

    def transfer_s(self, asker: int, blocks: Sequence[Block]) -> float:
        """Return the seconds to fetch these blocks, behind what the adapters already have to send."""
        now_s, block_s = self._loop.now, self.block_s
        ready_s: dict[int, float] = {}
        for block in blocks:
            near = self.beside_reader or self.fronted(block)
            source = None if near else self.source(block, asker)
            if source is not None:
                ready_s.setdefault(source, self.out_links[source].wait_s(now_s))
                ready_s[source] += block_s
        own_s = (self._coming[asker] + len(blocks)) * block_s
        return max(own_s, max(ready_s.values(), default=0.0))

    def send(self, block: Block, reader: int, asked_s: float, arrived: Arrived) -> bool:
        """Move a block to the node `reader`; return False if nobody has it.

        `arrived` is called with its last bit.
        """
        fronted = self.fronted(block)
        source = None if fronted else self.source(block, reader)
        if source is None and not fronted:
            return False
        way: tuple[Link, ...] = (self.in_links[reader],)
        if source is not None and not self.beside_reader:
            way = (*self._between(source, reader), *way)
        passage = self._leave(block, source, asked_s)
        self._coming[reader] += 1
        head_s = max(self._loop.now, passage[0])

        def done() -> None:
            self._coming[reader] -= 1
            arrived()

        self._loop.at(head_s, self._pass, way, 0, passage[1], done)
        return True

    def _leave(self, block: Block, source: int | None, asked_s: float) -> Passage:
        """Return when head and tail of a block leave its source: a node or, with None, the switch in
        front."""
        device = self.out_links[source or 0]
        if self.front is not None:
            return self.front.send(block, device, asked_s)
        return device.send(asked_s, self.block_bytes, self._head_bytes)

    def _pass(self, way: Sequence[Link], first: int, tail_s: float, done: Arrived) -> None:
        """Send a block over the links from `first` on, up to one where it waits; the rest is sent after the
        wait."""
        head_s = self._loop.now
        for place in range(first, len(way)):
            link = way[place]
            waits = link.free_s > head_s + AT_ONCE_S
            head_s, tail_s = link.send(head_s, self.block_bytes, self._head_bytes, tail_s)
            if waits and place + 1 < len(way):
                self._loop.at(head_s, self._pass, way, place + 1, tail_s, done)
                return
        self._loop.at(tail_s, done)

    def _between(self, source: int, reader: int) -> tuple[Link, ...]:
        """Return the links between switches, which other blocks take, too."""
        way = self._ways.get((source, reader))
        if way is None:
            links, end = [], self._names[reader]
            vertex = self._network.next_hop(self._names[source], end)
            while (following := self._network.next_hop(vertex, end)) != end:
                links.append(self._network.links[vertex, following])
                vertex = following
            way = self._ways[source, reader] = tuple(links)
        return way


class PeerClient:
    """Way of a node to the others' memory; it fetches as simulator.client.Client does."""

    def __init__(self, loop: Loop, pool: PeerPool, node: int) -> None:
        self.get_s: list[float] = []
        self._loop, self._pool, self._node = loop, pool, node
        self._fetched: list[Block] = []
        """Fetched blocks that are not noted yet: the node holds them once their request has been computed."""
        self._coming: dict[Block, list[Arrived]] = {}
        """Functions that wait for a block on its way, which is fetched once."""
        self._free_s = 0.0
        """Time in seconds at which the client, which takes one block after the other, is free."""

    def backlog_s(self, home: str) -> float:
        """Return for how many seconds the node's own adapter is busy; the index does not know what waits at
        others."""
        return self._pool.in_links[self._node].wait_s(self._loop.now)

    def fetch(self, blocks: Sequence[Block], finished: Callable[[list[str]], None]) -> None:
        """Read the longest prefix that other nodes hold."""
        began_s = self._loop.now
        asked_s = began_s + self._pool.options.lookup_s
        sources: list[str] = []
        left = 0

        def arrived() -> None:
            nonlocal left
            left -= 1
            if not left:
                self.get_s += [(self._free_s - began_s) / len(sources)] * len(sources)
                self._loop.at(max(self._loop.now, self._free_s), finished, sources)

        for block in blocks:
            source = self._ask(block, asked_s, arrived)
            if source is None:
                break
            sources.append(source)
            left += 1
        if not sources:
            self._loop.at(asked_s, finished, sources)

    def _ask(self, block: Block, asked_s: float, arrived: Arrived) -> str | None:
        """Fetch a block and return its source, or None if nobody has it."""
        waiting = self._coming.get(block)
        if waiting is not None:
            waiting.append(arrived)
            return "remote"
        source = "pool" if self._pool.fronted(block) else "remote"
        self._coming[block] = [arrived]
        if not self._pool.send(block, self._node, asked_s, lambda: self._come(block)):
            del self._coming[block]
            return None
        return source

    def _come(self, block: Block) -> None:
        self._free_s = max(self._loop.now, self._free_s) + self._pool.options.block_s
        self._fetched.append(block)
        for arrived in self._coming.pop(block):
            arrived()

    def store(self, blocks: Iterable[Block]) -> None:
        """Note what the node now holds; nothing moves."""
        for block in (*blocks, *self._fetched):
            self._pool.note(self._node, block)
        self._fetched.clear()


class PeerHints:
    """Hints of a node before it asks for blocks: who holds them, and what waits at their adapters."""

    def __init__(self, pool: PeerPool, loop: Loop, node: int) -> None:
        self._pool, self._loop, self._node = pool, loop, node

    def places(self, blocks: Sequence[Block]) -> list[Hashable]:
        """Return where each block comes from, up to the first that is nowhere."""
        found: list[Hashable] = []
        for block in blocks:
            if self._pool.fronted(block):
                found.append(block)
                continue
            source = self._pool.source(block, self._node)
            if source is None:
                break
            found.append(source)
        return found

    def wait_s(self, place: Any) -> float:
        """Return how many seconds a block from that place waits before it is sent."""
        now_s, front = self._loop.now, self._pool.front
        if isinstance(place, Block):
            return 0.0 if front is None else max(0.0, front.wait_s(place, now_s) - self._pool.block_s)
        return 0.0 if self._pool.beside_reader else self._pool.out_links[place].wait_s(now_s)

    def promise(self, blocks: Sequence[Block], places: Sequence[Hashable]) -> None:
        """Do nothing: a fetch books the adapters at once."""

    def asked(self, blocks: Sequence[Block]) -> float:
        """Return the seconds of the way to the index, or to a node, and back."""
        return 4 * self._pool.latency_s
