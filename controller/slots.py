"""Which slots of a pool are free, and the generation that the next owner of each gets.

A slot holds a fragment only if its stored generation is that of the block's entry. So slots need no
clearing between owners, as long as no generation comes back to a slot: it is counted up, per block of
slots, and would only repeat after 2^32 owners. 0 is what an empty slot holds, and never given out.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, NamedTuple

GENERATIONS: Final = 1 << 32
"""Generations 0 .. GENERATIONS-1 exist: bit<32> in the P4 program."""


class Slots(NamedTuple):
    """Consecutive slots that one block owns."""

    base_slot: int
    generation: int


class SlotAllocator:
    """`blocks` runs of `fragments` slots each; those free for longest are given out first."""

    def __init__(self, blocks: int, fragments: int) -> None:
        self.fragments = fragments
        self._generation = [0] * blocks
        self._free = OrderedDict.fromkeys(range(blocks))

    @property
    def free_blocks(self) -> int:
        """Blocks that can still be allocated."""
        return len(self._free)

    def allocate(self) -> Slots | None:
        """Slots for one block, None if all are in use."""
        if not self._free:
            return None
        block, _ = self._free.popitem(last=False)
        self._generation[block] = self._generation[block] % (GENERATIONS - 1) + 1
        return Slots(block * self.fragments, self._generation[block])

    def free(self, slots: Slots) -> None:
        """Take back what `allocate` or `claim` gave; ValueError for anything else."""
        block = slots.base_slot // self.fragments
        if not self._is_block(slots.base_slot) or block in self._free:
            raise ValueError(f"{slots} are not in use")
        if self._generation[block] != slots.generation:
            raise ValueError(f"{slots} belong to generation {self._generation[block]}")
        self._free[block] = None

    def claim(self, slots: Slots) -> bool:
        """Take certain slots, which a switch already uses; False if they are none or in use."""
        block = slots.base_slot // self.fragments
        if not self._is_block(slots.base_slot) or block not in self._free:
            return False
        if not 0 < slots.generation < GENERATIONS:
            return False
        del self._free[block]
        self._generation[block] = slots.generation
        return True

    def free_all(self) -> None:
        """Take back everything; generations go on."""
        self._free = OrderedDict.fromkeys(range(len(self._generation)))

    def start_after(self, generation: int) -> None:
        """No free slot gets a generation up to this one, which an earlier controller may have used."""
        for block in self._free:
            self._generation[block] = max(self._generation[block], generation)

    def _is_block(self, base_slot: int) -> bool:
        return base_slot % self.fragments == 0 and 0 <= base_slot // self.fragments < len(self._generation)
