"""Switch with memory in front of a pool that nodes read directly: it merges reads, and may cache blocks.

It is idealised: every read passes one switch. All who ask for a block before its last bit has passed share
it; the part that has passed by then is sent again. Its cache is LRU without digests or table updates. `Whole`
is the bound of all such switches: it has every block that any device has.
"""

from __future__ import annotations

from collections import OrderedDict

from scenario import GB
from scenario.tables import Direct, Pool
from simulator.link import Link, Passage
from simulator.messages import Block

US = 1e-6


class Front:
    """Switch that merges reads and caches up to `capacity_blocks`; with 0 it only merges."""

    beside_reader = False
    """Whether its blocks reach the reader without passing a fabric."""

    def __init__(self, capacity_blocks: int, memory: Link, block_bytes: float, fragments: int = 1) -> None:
        self.merged = 0
        self.served = 0
        self._capacity_blocks, self._memory, self._block_bytes = capacity_blocks, memory, block_bytes
        self._head_bytes = block_bytes / fragments
        self._held: OrderedDict[Block, None] = OrderedDict()
        self._coming: dict[Block, tuple[float, float]] = {}

    def has(self, block: Block, now_s: float) -> bool:
        """Return whether a block needs no device, because it is cached or on its way past the switch."""
        coming = self._coming.get(block)
        return block in self._held or (coming is not None and coming[1] > now_s)

    def wait_s(self, block: Block, now_s: float) -> float:
        """Return the seconds until the last bit of a block that it has is there."""
        coming = self._coming.get(block)
        return 0.0 if coming is None else max(0.0, coming[1] - now_s)

    def send(self, block: Block, device: Link, now_s: float) -> Passage:
        """Return when the first and the last bit of a block reach a reader that asks now."""
        coming = self._coming.get(block)
        if coming is not None and coming[1] > now_s:
            return self._join(block, device, coming, now_s)
        size_bytes = self._block_bytes
        if block in self._held:
            self.served += 1
            self._held.move_to_end(block)
            return self._memory.send(now_s, size_bytes, self._head_bytes)
        passage = device.send(now_s, size_bytes, self._head_bytes)
        self._coming[block] = passage
        if self._capacity_blocks:
            self._memory.send(now_s, size_bytes, size_bytes)  # a write takes its time as a read does
            self._held[block] = None
            while len(self._held) > self._capacity_blocks:
                self._held.popitem(last=False)
        return passage

    def _join(self, block: Block, device: Link, coming: Passage, now_s: float) -> Passage:
        """Share a block on its way; the part that has already passed is read from the cache or the device."""
        self.merged += 1
        head_s, tail_s = coming
        if now_s <= head_s:
            return coming
        source = self._memory if block in self._held else device
        passed_bytes = self._block_bytes * (now_s - head_s) / (tail_s - head_s)
        first_s, last_s = source.send(now_s, passed_bytes, self._head_bytes)
        return first_s, max(tail_s, last_s)


class Whole(Front):
    """Bound: it has every block that anybody has and sends it at once, so no switch could be faster."""

    beside_reader = True

    def has(self, block: Block, now_s: float) -> bool:
        """Return False: it has only blocks that others have, and those report them themselves."""
        return False

    def send(self, block: Block, device: Link, now_s: float) -> Passage:
        """Send a block at once; only the reader's own adapter takes time."""
        self.served += 1
        return now_s, now_s


def make_front(direct: Direct, pool: Pool, switches: int, block_bytes: float, fragments: int) -> Front | None:
    """Return what a scenario puts in front of its directly read pool; a block has `fragments` there."""
    if direct.front == "none":
        return None
    blocks = int(pool.size_gb * switches * GB / block_bytes) if direct.front == "pool" else 0
    memory = Link("front memory", pool.memory_gbyte_s * GB, pool.memory_latency_us * US)
    kind = Whole if direct.front == "whole" else Front
    return kind(blocks, memory, block_bytes, fragments)
