"""The memory of an inference node: GPU over DRAM, counted in blocks.

Tiers hold keys: emulated content is a function of the key, and what came over the network was checked bit for
bit when it arrived. A block is in one tier at a time: a hit in DRAM moves it to the GPU, and what the GPU has
no room for moves down. Which block leaves a tier, and whether it moves down, are rules that can be swapped.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

TierName = Literal["gpu", "dram"]


class EvictionOrder(Protocol):
    """Which of the blocks in a tier leaves next."""

    def touch(self, key: bytes) -> None:
        """`key` came into the tier, or was used in it."""

    def remove(self, key: bytes) -> None:
        """`key`, which is in the tier, left it."""

    def victim(self) -> bytes:
        """The block to leave next; the tier is not empty."""

    def __contains__(self, key: bytes) -> bool: ...

    def __len__(self) -> int: ...


class LruOrder:
    """The least recently used block leaves."""

    def __init__(self) -> None:
        self._keys: OrderedDict[bytes, None] = OrderedDict()

    def touch(self, key: bytes) -> None:
        """`key` came into the tier, or was used in it."""
        self._keys[key] = None
        self._keys.move_to_end(key)

    def remove(self, key: bytes) -> None:
        """`key`, which is in the tier, left it."""
        del self._keys[key]

    def victim(self) -> bytes:
        """The block to leave next; the tier is not empty."""
        return next(iter(self._keys))

    def __contains__(self, key: bytes) -> bool:
        return key in self._keys

    def __len__(self) -> int:
        return len(self._keys)


def demote_always(key: bytes) -> bool:
    """Every block that leaves the GPU moves to DRAM."""
    return True


@dataclass(slots=True)
class TierStats:
    """Blocks."""

    gpu_hits: int = 0
    dram_hits: int = 0
    misses: int = 0
    demoted: int = 0
    dropped: int = 0


class LocalTiers:
    """At most `gpu_blocks` and `dram_blocks` blocks."""

    def __init__(
        self,
        gpu_blocks: int,
        dram_blocks: int,
        order: Callable[[], EvictionOrder] = LruOrder,
        demotes: Callable[[bytes], bool] = demote_always,
    ) -> None:
        self.stats = TierStats()
        self._gpu_blocks = gpu_blocks
        self._dram_blocks = dram_blocks
        self._gpu = order()
        self._dram = order()
        self._demotes = demotes

    def use(self, key: bytes) -> TierName | None:
        """Where the block is, None for nowhere; one in DRAM moves to the GPU."""
        if key in self._gpu:
            self.stats.gpu_hits += 1
            self._gpu.touch(key)
            return "gpu"
        if key in self._dram:
            self.stats.dram_hits += 1
            self.insert(key)
            return "dram"
        self.stats.misses += 1
        return None

    def insert(self, key: bytes) -> None:
        """The block is in the GPU now."""
        if key in self._dram:
            self._dram.remove(key)
        self._gpu.touch(key)
        while len(self._gpu) > self._gpu_blocks:
            self._demote(self._evict(self._gpu))

    def __contains__(self, key: bytes) -> bool:
        return key in self._gpu or key in self._dram

    def place(self, key: bytes) -> None:
        """The block came unasked: into DRAM, if it is nowhere yet and there is any."""
        if key not in self and self._dram_blocks:
            self._put_into_dram(key)

    def sizes(self) -> dict[str, int]:
        """Blocks in each tier."""
        return {"gpu": len(self._gpu), "dram": len(self._dram)}

    def _demote(self, key: bytes) -> None:
        if not self._dram_blocks or not self._demotes(key):
            self.stats.dropped += 1
            return
        self.stats.demoted += 1
        self._put_into_dram(key)

    def _put_into_dram(self, key: bytes) -> None:
        self._dram.touch(key)
        while len(self._dram) > self._dram_blocks:
            self._evict(self._dram)
            self.stats.dropped += 1

    def _evict(self, tier: EvictionOrder) -> bytes:
        key = tier.victim()
        tier.remove(key)
        return key
