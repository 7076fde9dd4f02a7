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
        self._highest = [0] * blocks
        """Generation that each block of slots was last given under, or seen with."""
        self._owner: dict[int, int] = {}
        """Generation of its present owner, of those in use."""
        self._free = OrderedDict.fromkeys(range(blocks))

    @property
    def free_blocks(self) -> int:
        """Blocks that can still be allocated."""
        return len(self._free)

    def allocate(self) -> Slots | None:
        """Slots for one block, None if all are in use."""
        if not self._free:
            return None
        return self._give(self._free.popitem(last=False)[0])

    def hand_over(self, slots: Slots) -> Slots:
        """The same slots for another block, under a generation of its own; ValueError if not in use."""
        return self._give(self._owned(slots))

    def take_back(self, slots: Slots) -> None:
        """Whoever handed these slots over keeps them after all; ValueError if nobody has them."""
        block = slots.base_slot // self.fragments
        if block not in self._owner:
            raise ValueError(f"{slots} are not in use")
        self._owner[block] = slots.generation

    def free(self, slots: Slots) -> None:
        """Take back what `allocate`, `hand_over` or `claim` gave; ValueError for anything else."""
        block = self._owned(slots)
        del self._owner[block]
        self._free[block] = None

    def claim(self, slots: Slots) -> bool:
        """Take certain slots, which a switch already uses; False if they are none or in use."""
        block = slots.base_slot // self.fragments
        if not self._is_block(slots.base_slot) or block not in self._free:
            return False
        if not 0 < slots.generation < GENERATIONS:
            return False
        del self._free[block]
        self._owner[block] = slots.generation
        self._highest[block] = max(self._highest[block], slots.generation)
        return True

    def free_all(self) -> None:
        """Take back everything; generations go on."""
        self._owner.clear()
        self._free = OrderedDict.fromkeys(range(len(self._highest)))

    def start_after(self, generation: int) -> None:
        """No free slot gets a generation up to this one, which an earlier controller may have used."""
        for block in self._free:
            self._highest[block] = max(self._highest[block], generation)

    def _give(self, block: int) -> Slots:
        self._highest[block] = self._owner[block] = self._highest[block] % (GENERATIONS - 1) + 1
        return Slots(block * self.fragments, self._highest[block])

    def _owned(self, slots: Slots) -> int:
        """The block of slots; ValueError if these are not its owner's."""
        block = slots.base_slot // self.fragments
        if not self._is_block(slots.base_slot) or block not in self._owner:
            raise ValueError(f"{slots} are not in use")
        if self._owner[block] != slots.generation:
            raise ValueError(f"{slots} belong to generation {self._owner[block]}")
        return block

    def _is_block(self, base_slot: int) -> bool:
        return base_slot % self.fragments == 0 and 0 <= base_slot // self.fragments < len(self._highest)
