"""A distributed pool: nodes read blocks from one another's memory over their own links, as Mooncake's do.

Nothing is written for others: what a node computed or fetched it holds as long as its tiers do, so a block
that many fetch gets as many copies (Mooncake's replication of hot blocks). An index says who holds what; of
several holders the one whose link is free first sends. Queues are at the nodes' links, not in the fabric.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from experiments.simulator.events import Loop
from experiments.simulator.link import Link
from experiments.simulator.messages import Block
from experiments.simulator.scenario import Direct
from hostlib.tiers import LocalTiers


class PeerPool:
    """The index, and each node's link in both directions at `link_bytes_per_s`."""

    def __init__(
        self, loop: Loop, options: Direct, block_bytes: float, link_bytes_per_s: float, latency_s: float
    ) -> None:
        self.block_bytes = block_bytes
        self.options = options
        self.out_links: list[Link] = []
        self.in_links: list[Link] = []
        self._loop = loop
        self._rate, self._latency_s = link_bytes_per_s, latency_s
        self._tiers: list[LocalTiers[bytes]] = []
        self._holders: dict[bytes, dict[int, None]] = {}
        """Nodes that held a block when it was noted; who no longer does is dropped when it is looked up."""

    def join(self, tiers: LocalTiers[bytes]) -> PeerClient:
        """A further node, which holds blocks in these tiers."""
        node = len(self._tiers)
        self._tiers.append(tiers)
        self.out_links.append(Link(f"node {node} out", self._rate, self._latency_s))
        self.in_links.append(Link(f"node {node} in", self._rate, 0.0))
        return PeerClient(self._loop, self, node)

    def preload(self, keys: Iterable[bytes]) -> None:
        """Spread these blocks over the nodes' DRAM, the most recently used last."""
        for key in keys:
            node = int.from_bytes(key[:4], "big") % len(self._tiers)
            self._tiers[node].place(key)
            self.note(node, key)

    def note(self, node: int, key: bytes) -> None:
        """A node holds a block."""
        if key in self._tiers[node]:
            self._holders.setdefault(key, {})[node] = None

    def holders(self, key: bytes) -> list[int]:
        """Nodes that hold a block now."""
        noted = self._holders.get(key)
        if noted is None:
            return []
        for node in [node for node in noted if key not in self._tiers[node]]:
            del noted[node]
        if not noted:
            del self._holders[key]
        return list(noted)

    def __contains__(self, key: bytes) -> bool:
        return bool(self.holders(key))

    def source(self, key: bytes, asker: int) -> int | None:
        """Who sends a block: of the holders the one whose link is free first."""
        others = [node for node in self.holders(key) if node != asker]
        return min(others, key=lambda node: (self.out_links[node].free_s, node), default=None)

    def transfer_s(self, asker: int, blocks: Sequence[Block]) -> float:
        """How long it would take to fetch these blocks, behind what the links have to do already."""
        now_s, block_s = self._loop.now, self.block_bytes / self._rate
        ready_s: dict[int, float] = {}
        for block in blocks:
            source = self.source(block.key, asker)
            if source is not None:
                ready_s.setdefault(source, self.out_links[source].wait_s(now_s))
                ready_s[source] += block_s
        own_s = self.in_links[asker].wait_s(now_s) + len(blocks) * block_s
        return max(own_s, max(ready_s.values(), default=0.0))


class PeerClient:
    """One node's way to the others' memory; fetches as experiments.simulator.client.Client does."""

    def __init__(self, loop: Loop, pool: PeerPool, node: int) -> None:
        self.get_s: list[float] = []
        self._loop, self._pool, self._node = loop, pool, node
        self._fetched: list[bytes] = []
        """What came and is not noted yet: it is held once its request has been computed."""
        self._free_s = 0.0
        """When the client, which takes one block after the other, is."""

    def backlog_s(self, home: str) -> float:
        """How long the node's own link is busy; the index does not say what waits at others."""
        return self._pool.in_links[self._node].wait_s(self._loop.now)

    def fetch(self, blocks: Sequence[Block], finished: Callable[[list[str]], None]) -> None:
        """Read the longest prefix that other nodes hold."""
        pool, now_s = self._pool, self._loop.now
        asked_s = end_s = now_s + pool.options.lookup_s
        size_bytes, count = pool.block_bytes, 0
        for block in blocks:
            source = pool.source(block.key, self._node)
            if source is None:
                break
            _, tail_s = pool.out_links[source].send(asked_s, size_bytes, size_bytes)
            _, tail_s = pool.in_links[self._node].send(asked_s, size_bytes, size_bytes, tail_s)
            end_s = self._free_s = max(tail_s, self._free_s) + pool.options.block_s
            self._fetched.append(block.key)
            count += 1
        self.get_s += [(end_s - now_s) / max(1, count)] * count
        self._loop.at(end_s, finished, ["remote"] * count)

    def store(self, blocks: Iterable[Block]) -> None:
        """Say what the node has come to hold; nothing moves."""
        for key in (*(block.key for block in blocks), *self._fetched):
            self._pool.note(self._node, key)
        self._fetched.clear()
