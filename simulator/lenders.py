"""Nodes that hold blocks for each other and answer GETs for them, which pass the network's switches.

The nodes' memory takes the place of storage nodes. In front of it are the same switches, with a pool, pending
table, digests and a controller (switch.py, control.py), or without. An index, asked once a chain, says who
holds a block; of several holders, the one that has promised least is asked. A block that no node holds any
more is requested from its last holder if the switch in between has said that its pool has it. Nothing is
written for others, and answering takes no CPU time.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence

from hostlib.model.tiers import LocalTiers
from simulator.client import Client
from simulator.events import Event, Loop
from simulator.hints import Hints
from simulator.holders import Holders
from simulator.messages import Ask, Block, Reply
from simulator.network import Network


class LentBlock(Block):
    """Block whose home is the node that is asked for it."""

    __slots__ = ("block",)

    def __init__(self, block: Block, node: str) -> None:
        super().__init__(block.key, block.depth, block.above, node, block.parts)
        self.claim = block.key + node.encode()
        self.block = block


class Lenders:
    """Index of the blocks that nodes lend, with the seconds that a block of each node waits."""

    def __init__(
        self, loop: Loop, network: Network, lookup_s: float, block_s: float, latency_s: float
    ) -> None:
        """Set up an empty index.

        `lookup_s` is the index's time for one chain that is fetched; `latency_s` is that of a hop on the way
        to it.
        """
        self.hints: Hints | None = None
        """Hints that nodes get before they ask, if they do."""
        self.lookup_s, self.latency_s = lookup_s, latency_s
        self.holders = Holders()
        self.names: list[str] = []
        self.loop = loop
        self._network, self._block_s = network, block_s
        self._last: dict[Block, int] = {}
        """Node that was last asked for each block."""

    def join(self, client: Client, tiers: LocalTiers[Block]) -> Lender:
        """Add a node; others may have what it holds."""
        self.names.append(client.name)
        lender = self._lender(self.holders.join(tiers), client, tiers)
        self._network.attach(client.name, lender)
        return lender

    def _lender(self, node: int, client: Client, tiers: LocalTiers[Block]) -> Lender:
        """Return the lender of a node."""
        return Lender(self, node, client, tiers, self._network)

    def located(self, asker: int, blocks: Sequence[Block]) -> list[LentBlock]:
        """Return the longest prefix that is available; each block's home is the node to ask for it."""
        found: list[LentBlock] = []
        waits_s: dict[int, float] = {}
        for block in blocks:
            holder = self._holder(asker, block, waits_s)
            if holder is None:
                break
            waits_s[holder] = waits_s.get(holder, self._wait_s(holder)) + self._block_s
            self._last[block] = holder
            found.append(LentBlock(block, self.names[holder]))
        return found

    def _holder(self, asker: int, block: Block, waits_s: dict[int, float]) -> int | None:
        others = [node for node in self.holders.of(block) if node != asker]
        if others:
            return min(others, key=lambda node: (waits_s.get(node, self._wait_s(node)), node))
        last = self._last.get(block, asker)
        if last == asker or self.hints is None:
            return None
        return last if self.hints.pooled(self.names[asker], LentBlock(block, self.names[last])) else None

    def _wait_s(self, node: int) -> float:
        """Return how many seconds of blocks a node has promised or, without hints, has waiting to leave
        it."""
        name = self.names[node]
        if self.hints is not None:
            return self.hints.wait_s(name)
        _, egress = self._network.access(name)
        return egress.wait_s(self.loop.now)


class Lender:
    """Way of a node to the others' memory, and of the others to its own; a vertex of the network."""

    def __init__(
        self, lenders: Lenders, node: int, client: Client, tiers: LocalTiers[Block], network: Network
    ) -> None:
        self.get_s = client.get_s
        self.replied = client.replied
        self.backlog_s = client.backlog_s
        self._lenders, self._node, self._client, self._tiers = lenders, node, client, tiers
        self._port, self._egress = network.access(client.name)
        self._located: dict[Block, LentBlock] = {}
        """Located blocks of a question whose fetch is still to begin."""
        self._fetched: list[Block] = []
        """Fetched blocks that are not noted yet: the node holds them once their request has been computed."""

    def locate(self, blocks: Sequence[Block]) -> list[LentBlock]:
        """Ask the index; the next fetch goes to the same nodes."""
        found = self._lenders.located(self._node, blocks)
        self._located = {lent.block: lent for lent in found}
        return found

    def fetch(self, blocks: Sequence[Block], finished: Callable[[list[str]], None]) -> None:
        """Fetch the longest prefix that other nodes, or the switches in front of them, have."""
        known, self._located = self._located, {}
        located = [known[block] for block in blocks if block in known]
        if len(located) < len(blocks):
            located = self._lenders.located(self._node, blocks)
        if not located:
            self._lenders.loop.after(self._lenders.lookup_s, finished, [])
            return

        def came(sources: list[str]) -> None:
            self._fetched += [lent.block for lent in located[: len(sources)]]
            finished(sources)

        self._lenders.loop.after(self._lenders.lookup_s, self._client.fetch, located, came)

    def store(self, blocks: Iterable[Block]) -> None:
        """Note what the node now holds; nothing moves."""
        for block in (*blocks, *self._fetched):
            self._lenders.holders.note(self._node, block)
        self._fetched.clear()

    def ask_index(self, blocks: Sequence[Block]) -> Event | float:
        """Return the seconds, or the event, until the index has said who holds these blocks.

        The way takes two hops there and two back.
        """
        return 4 * self._lenders.latency_s

    def holds(self, block: Block) -> bool:
        """Return whether this node has a block that others know as its."""
        return isinstance(block, LentBlock) and block.block in self._tiers

    def backlog_ms(self) -> float:
        """Return the milliseconds of what waits to leave."""
        return 1000 * self._egress.wait_s(self._lenders.loop.now)

    def asked(self, asks: Sequence[Ask], neighbour: str, tail_s: float) -> None:
        """Answer from this node's memory."""
        backlog_ms = self.backlog_ms()
        for ask in asks:
            self._port.reply([Reply(ask, self.holds(ask.block), backlog_ms)])


class LenderHints:
    """Hints of one node: the index says who holds what, then holders or the switch give hints (hints.py)."""

    def __init__(self, hints: Hints, lender: Lender, name: str) -> None:
        self.wait_s = hints.wait_s
        self.asked = lender.ask_index
        self._hints, self._lender, self._name = hints, lender, name
        self._located: list[LentBlock] = []

    def places(self, blocks: Sequence[Block]) -> list[Hashable]:
        """Return where each block comes from, up to the first that is nowhere."""
        self._located = self._lender.locate(blocks)
        return self._hints.places(self._name, self._located)

    def promise(self, blocks: Sequence[Block], places: Sequence[Hashable]) -> None:
        """Book the fetches of these blocks from these places."""
        self._hints.promise(self._located[: len(blocks)], places)
