"""Allocator of a pool's slots, and of the generation under which the next owner of each writes.

A block owns consecutive slots, as many as it has fragments, all under one generation: the switch adds the
fragment's number to the first slot. A slot holds a fragment only if its stored generation is that of the
block's entry. So slots need no clearing between owners, as long as no generation comes back to a slot. A new
owner's generation is one above the highest that any of its slots ever had; it would only repeat after some
2^32 owners of the slots around it. An empty slot holds generation 0, which is never given out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from controller.pool.free_runs import FreeRuns

GENERATIONS: Final = 1 << 32
"""Generations 0 .. GENERATIONS-1 exist: bit<32> in the P4 program."""


class Slots(NamedTuple):
    """Consecutive slots that one block owns."""

    base_slot: int
    generation: int
    fragments: int

    def overlaps(self, other: Slots) -> bool:
        """Return whether they have a slot in common."""
        return (
            self.base_slot < other.base_slot + other.fragments
            and other.base_slot < self.base_slot + self.fragments
        )


class SlotAllocator:
    """Runs of any length among `slots` slots."""

    def __init__(self, slots: int) -> None:
        self._highest = [0] * slots
        """Generation that each slot was last given under, or seen with."""
        self._owners: dict[int, Slots] = {}
        """By first slot."""
        self._free = FreeRuns(slots)

    @property
    def free_slots(self) -> int:
        """Return the number of slots that nobody owns."""
        return self._free.total

    @property
    def used_slots(self) -> int:
        """Slots that somebody owns."""
        return len(self._highest) - self._free.total

    def allocate(self, fragments: int) -> Slots | None:
        """Allocate slots for one block; return None if too few consecutive ones are free."""
        first = self._free.take(fragments)
        if first is None:
            return None
        end = first + fragments
        generation = max(self._highest[first:end]) % (GENERATIONS - 1) + 1
        self._highest[first:end] = [generation] * fragments
        slots = self._owners[first] = Slots(first, generation, fragments)
        return slots

    def free(self, slots: Slots) -> None:
        """Take back what `allocate` or `claim` gave; ValueError for anything else."""
        owner = self._owners.get(slots.base_slot)
        if owner is None:
            raise ValueError(f"{slots} are not in use")
        if owner != slots:
            raise ValueError(f"{slots} belong to {owner}")
        del self._owners[slots.base_slot]
        self._free.give_back(slots.base_slot, slots.fragments)

    def claim(self, slots: Slots) -> bool:
        """Take certain slots, which a switch already uses; False if they are none or in use."""
        first, generation, fragments = slots
        if first < 0 or fragments < 1 or not 0 < generation < GENERATIONS:
            return False
        if not self._free.take_at(first, fragments):
            return False
        for slot in range(first, first + fragments):
            self._highest[slot] = max(self._highest[slot], generation)
        self._owners[first] = slots
        return True

    def free_all(self) -> None:
        """Take back everything; generations go on."""
        self._owners.clear()
        self._free = FreeRuns(len(self._highest))

    def start_after(self, generation: int) -> None:
        """Give no free slot a generation up to this one, which an earlier controller may have used."""
        for first, length in self._free:
            for slot in range(first, first + length):
                self._highest[slot] = max(self._highest[slot], generation)

    def in_the_way(self, fragments: int, may_go: Callable[[Slots], bool]) -> list[Slots]:
        """Return the owners of the fewest slots that would make enough consecutive ones free; [] for none.

        It looks at every owner, for the rare case that the slots in use are few enough, but badly placed.
        """
        owners = [self._owners[first] for first in sorted(self._owners)]
        begins = [0, *(owner.base_slot + owner.fragments for owner in owners)]
        ends = [*(owner.base_slot for owner in owners), len(self._highest)]
        best: tuple[int, int] | None = None
        best_slots = len(self._highest) + 1
        first = used = 0
        for last, owner in enumerate(owners):
            if not may_go(owner):
                first, used = last + 1, 0
                continue
            used += owner.fragments
            while first < last and ends[last + 1] - begins[first + 1] >= fragments:
                used -= owners[first].fragments
                first += 1
            if ends[last + 1] - begins[first] >= fragments and used < best_slots:
                best, best_slots = (first, last), used
        return [] if best is None else owners[best[0] : best[1] + 1]
