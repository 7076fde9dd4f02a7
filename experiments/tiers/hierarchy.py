"""What lies beyond a node in a replay: the switch's pool, storage nodes with DRAM over SSD, links as queues.

Blocks move whole and first come first served. A link cuts through: a block travels over two of them at once.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from controller.policies import Evict, Hits, Miss, Policy
from workload.keys import home_number

Source = Literal["pool", "remote", "ssd"]


@dataclass(frozen=True, slots=True)
class Prefetch:
    """How early what is fetched is asked for, and read from SSD."""

    help: str
    on_arrival: bool = False
    """Before the request's turn at the GPU."""
    whole_chain: bool = False
    """All of the chain at once; else the next block when the one before it has come."""
    read_ahead: bool = False
    """A storage node reads the rest of a chain from SSD when its first block is asked for."""


PREFETCHES = {
    "none": Prefetch("block by block, when the GPU is the request's"),
    "store": Prefetch("so, but storage nodes read ahead from SSD", read_ahead=True),
    "chain": Prefetch("the whole chain at once, when the GPU is the request's", whole_chain=True),
    "queued": Prefetch("the whole chain at once, on arrival", on_arrival=True, whole_chain=True),
}


class Queue:
    """Something that serves one thing after the other."""

    __slots__ = ("free_s",)

    def __init__(self) -> None:
        self.free_s = 0.0

    def wait_s(self, now_s: float) -> float:
        """For what comes now."""
        return max(0.0, self.free_s - now_s)

    def take(self, now_s: float, duration_s: float) -> float:
        """Serve something that comes now; when that begins."""
        begin_s = max(self.free_s, now_s)
        self.free_s = begin_s + duration_s
        return begin_s


class SwitchPool:
    """The pool under a policy; a block that was admitted is there once its home has sent it."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._filled: set[int] = set()

    def asked(self, block: int, now_s: float, depth: int, chain: Sequence[int], home: int) -> bool:
        """Ask for the block at `depth` of a chain; whether the pool serves it."""
        if block in self._policy:
            self._policy.hits(Hits(block, now_s))
            return block in self._filled
        parent = chain[depth - 1] if depth else None
        for decision in self._policy.miss(Miss(block, now_s, depth, len(chain), parent, 1, home)):
            if isinstance(decision, Evict):
                self._filled.discard(int(decision.key))
        return False

    def passed(self, block: int) -> None:
        """The block came from its home through the switch."""
        if block in self._policy:
            self._filled.add(block)


class Store:
    """A storage node: DRAM over SSD, least recently used blocks leave."""

    def __init__(self, dram_blocks: int, ssd_blocks: int, ssd_block_s: float) -> None:
        self.link = Queue()
        self._ssd_queue = Queue()
        self._dram_blocks, self._ssd_blocks, self._ssd_block_s = dram_blocks, ssd_blocks, ssd_block_s
        self._dram: OrderedDict[int, float] = OrderedDict()
        """When each block is or was read from SSD."""
        self._ssd: OrderedDict[int, None] = OrderedDict()

    def __contains__(self, block: int) -> bool:
        return block in self._dram or block in self._ssd

    def find(self, block: int, now_s: float) -> tuple[Source, float] | None:
        """Where the block is, and when it is in DRAM; None if it is not here."""
        if block in self._dram:
            self._dram.move_to_end(block)
            return "remote", max(now_s, self._dram[block])
        if block not in self._ssd:
            return None
        ready_s = self._ssd_queue.take(now_s, self._ssd_block_s) + self._ssd_block_s
        self.insert(block, ready_s)
        return "ssd", ready_s

    def insert(self, block: int, ready_s: float = 0.0) -> None:
        """The block is in DRAM from `ready_s` on."""
        self._ssd.pop(block, None)
        self._dram[block] = ready_s
        self._dram.move_to_end(block)
        while len(self._dram) > self._dram_blocks:
            self._ssd[self._dram.popitem(last=False)[0]] = None
        while len(self._ssd) > self._ssd_blocks:
            self._ssd.popitem(last=False)


@dataclass(frozen=True, slots=True)
class Arrival:
    """A block that was fetched."""

    source: Source
    end_s: float


class Remote:
    """All that nodes share: the pool, if there is one, and the storage nodes."""

    def __init__(self, pool: SwitchPool | None, stores: Sequence[Store], block_s: float) -> None:
        self.stores = stores
        self._pool, self._block_s = pool, block_s

    def home(self, block: int) -> int:
        """The storage node of a block, by number."""
        return home_number(block, len(self.stores))

    def fetch(
        self, chain: Sequence[int], places: Sequence[int], link: Queue, now_s: float, prefetch: Prefetch
    ) -> list[Arrival]:
        """Fetch the blocks at these places of a chain over a node's link, until one is nowhere."""
        arrivals: list[Arrival] = []
        before: dict[int, Source] = {}
        asked_s = now_s
        for number, depth in enumerate(places):
            block = chain[depth]
            home = self.home(block)
            if self._pool is not None and self._pool.asked(block, asked_s, depth, chain, home):
                link.take(asked_s, self._block_s)
                arrivals.append(Arrival("pool", link.free_s))
            else:
                if prefetch.read_ahead:
                    self._read_ahead([chain[place] for place in places[number:]], home, asked_s, before)
                arrival = self._from_store(block, self.stores[home], link, asked_s)
                if arrival is None:
                    break
                arrivals.append(replace(arrival, source=before.get(block, arrival.source)))
            if not prefetch.whole_chain:
                asked_s = arrivals[-1].end_s
        return arrivals

    def _from_store(self, block: int, store: Store, link: Queue, now_s: float) -> Arrival | None:
        found = store.find(block, now_s)
        if found is None:
            return None
        if self._pool is not None:
            self._pool.passed(block)
        source, ready_s = found
        begin_s = store.link.take(ready_s, self._block_s)
        link.take(begin_s, self._block_s)
        return Arrival(source, max(link.free_s, store.link.free_s))

    def _read_ahead(self, rest: Sequence[int], home: int, now_s: float, before: dict[int, Source]) -> None:
        """A storage node reads what it holds of the rest of a chain, once; `before` notes where that was."""
        if rest[0] in before:
            return
        for block in rest:
            if self.home(block) == home and (found := self.stores[home].find(block, now_s)) is not None:
                before[block] = found[0]
