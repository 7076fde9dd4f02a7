"""The memory of an inference node: GPU over DRAM, counted in blocks.

Tiers hold keys: emulated content is a function of the key, and what came over the network was checked bit for
bit when it arrived. What a request uses is in the GPU afterwards; what the GPU has no room for moves down.
How blocks move is a rule that can be swapped (`hostlib.model.tier_rules`). Keys are whatever the caller has:
bytes on hosts, ids in a replay.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Literal

from hostlib.model.eviction import EvictionOrder, Key
from hostlib.model.tier_rules import TierRule, exclusive

TierName = Literal["gpu", "dram"]


@dataclass(slots=True)
class TierStats:
    """Blocks."""

    gpu_hits: int = 0
    dram_hits: int = 0
    misses: int = 0
    copied_down: int = 0
    """Written from the GPU's memory to DRAM: for inclusive tiers when they come, else when they leave."""
    dropped: int = 0
    """Left the node."""


class LocalTiers(Generic[Key]):
    """GPU memory and DRAM of a node, with at most `gpu_blocks` and `dram_blocks` blocks.

    `rule` belongs to these tiers alone.
    """

    def __init__(self, gpu_blocks: int, dram_blocks: int, rule: TierRule[Key] | None = None) -> None:
        self.stats = TierStats()
        self.changes = 0
        """Grows whenever another block is held, or one no longer."""
        self._gpu_blocks = gpu_blocks
        self._dram_blocks = dram_blocks
        self._rule: TierRule[Key] = rule or exclusive()
        self._gpu: EvictionOrder[Key] = self._rule.gpu
        self._below: EvictionOrder[Key] = self._rule.dram
        """What DRAM holds and the GPU does not."""
        self._copies: set[Key] = set()
        """What DRAM holds and the GPU holds, too."""

    def use(self, key: Key) -> TierName | None:
        """Return where the block is, None for nowhere; one in DRAM moves to the GPU."""
        if self._gpu.used(key):
            self.stats.gpu_hits += 1
            return "gpu"
        if key in self._below:
            self.stats.dram_hits += 1
            self._raise(key, came_from_dram=True)
            return "dram"
        self.stats.misses += 1
        return None

    def keep(self, chain: Sequence[Key]) -> None:
        """Take note that a request used this chain: it is in the GPU now. Its first blocks, which most share,
        leave last."""
        self._rule.used(chain)
        gpu, below = self._gpu, self._below
        for key in chain:  # nothing of it leaves to make room for the rest
            if not gpu.used(key):
                below.used(key)
        for key in reversed(chain):
            if not gpu.used(key):
                self._raise(key, key in below)

    def place(self, key: Key) -> None:
        """Take a block that came unasked into DRAM, if it is nowhere yet and there is any."""
        if key not in self and self._dram_blocks:
            self._put_below(key)

    def __contains__(self, key: Key) -> bool:
        return key in self._gpu or key in self._below

    def keys(self) -> set[Key]:
        """Return all that the node holds."""
        return {*self._gpu.keys(), *self._below.keys()}

    def holders(self, key: Key) -> tuple[TierName, ...]:
        """Return the tiers that hold the block, nearest first."""
        gpu: tuple[TierName, ...] = ("gpu",) if key in self._gpu else ()
        dram: tuple[TierName, ...] = ("dram",) if key in self._below or key in self._copies else ()
        return gpu + dram

    def sizes(self) -> dict[str, int]:
        """Return the number of blocks in each tier."""
        return {"gpu": len(self._gpu), "dram": len(self._below) + len(self._copies)}

    def _raise(self, key: Key, came_from_dram: bool) -> None:
        """Bring the block into the GPU."""
        gpu = self._gpu
        if came_from_dram:
            self._below.remove(key)
        self.changes += 1
        gpu.touch(key)
        while len(gpu) > self._gpu_blocks:
            self._lower(gpu.evict())
        if self._rule.inclusive and key in gpu:
            self._copy(key, came_from_dram)

    def _copy(self, key: Key, held_before: bool) -> None:
        """Keep the block's place in DRAM, as far as what the GPU does not hold can make room."""
        if not held_before:
            if len(self._copies) >= self._dram_blocks:
                return
            self.stats.copied_down += 1
        self._copies.add(key)
        self._make_room()

    def _lower(self, key: Key) -> None:
        """Move a block that left the GPU to DRAM, if it stays there."""
        if key in self._copies:
            self._copies.remove(key)
            self._below.touch(key)
            return
        if not self._dram_blocks:
            self._drop(key)
            return
        self._put_below(key)
        self.stats.copied_down += key in self._below

    def _put_below(self, key: Key) -> None:
        self.changes += 1
        self._below.touch(key)
        self._make_room()

    def _make_room(self) -> None:
        while len(self._below) + len(self._copies) > self._dram_blocks:
            self._drop(self._below.evict())

    def _drop(self, key: Key) -> None:
        self.stats.dropped += 1
        self.changes += 1
        self._rule.dropped(key)
