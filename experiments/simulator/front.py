"""A switch with memory in front of a pool that nodes read directly: it merges reads, and may keep blocks.

Idealised: every read passes one switch, a block that is on its way from its device is shared by all who ask
before its last bit, and what it keeps is managed as LRU without digests or table updates.
"""

from __future__ import annotations

from collections import OrderedDict

from experiments.simulator.link import Link


class Front:
    """`capacity_blocks` 0: it only merges."""

    def __init__(self, capacity_blocks: int, memory: Link, block_bytes: float) -> None:
        self.merged = 0
        self.served = 0
        self._capacity_blocks, self._memory, self._block_bytes = capacity_blocks, memory, block_bytes
        self._held: OrderedDict[bytes, None] = OrderedDict()
        self._coming: dict[bytes, tuple[float, float]] = {}

    def send(self, key: bytes, device: Link, now_s: float) -> tuple[float, float]:
        """When the first and the last bit of a block come to whoever asks now."""
        coming = self._coming.get(key)
        if coming is not None and coming[1] > now_s:
            self.merged += 1
            return coming
        size_bytes = self._block_bytes
        if key in self._held:
            self.served += 1
            self._held.move_to_end(key)
            return self._memory.send(now_s, size_bytes, size_bytes)
        passage = device.send(now_s, size_bytes, size_bytes)
        self._coming[key] = passage
        if self._capacity_blocks:
            self._memory.send(now_s, size_bytes, size_bytes)  # a write takes its time as a read does
            self._held[key] = None
            while len(self._held) > self._capacity_blocks:
                self._held.popitem(last=False)
        return passage
