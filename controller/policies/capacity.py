"""Capacity of a pool: entries of its index, and slots, of which a block takes one for each fragment."""

from __future__ import annotations

from controller.policies.events import Key


class Capacity:
    """Counts what is held against `blocks` and `slots`; without `slots` only blocks are counted."""

    def __init__(self, blocks: int, slots: int | None = None) -> None:
        if slots is not None and slots < 1:
            raise ValueError(f"a pool holds at least one fragment, not {slots}")
        self.blocks, self.slots = blocks, slots
        self.held_blocks = self.held_slots = 0
        self._fragments: dict[Key, int] = {}

    def fits(self, fragments: int, gone_blocks: int = 0, gone_slots: int = 0) -> bool:
        """Return whether there is room for a block beside what is held, without so many blocks and their
        slots."""
        if self.held_blocks - gone_blocks >= self.blocks:
            return False
        return self.slots is None or self.held_slots - gone_slots + fragments <= self.slots

    @property
    def is_overfull(self) -> bool:
        """Return whether more is held than there is room for, which was more."""
        return self.held_blocks > self.blocks or (self.slots is not None and self.held_slots > self.slots)

    def fragments(self, key: Key) -> int:
        """Return the number of fragments of a block in the pool; 1 where nobody counts them."""
        return self._fragments.get(key, 1)

    def entered(self, key: Key, fragments: int) -> None:
        """Count a block that entered."""
        self.held_blocks += 1
        if self.slots is not None:
            self._fragments[key] = fragments
            self.held_slots += fragments

    def left(self, key: Key) -> None:
        """Count a block that left no longer."""
        self.held_blocks -= 1
        if self.slots is not None:
            self.held_slots -= self._fragments.pop(key)
