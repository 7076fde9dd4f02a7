"""The learned value: the expert that keeps the blocks that save most per slot and tick, by what was learned
of their like.

value = index(class, age) * worth: the rate of hits that holding the block can reach (`reuse_model.py`), times
the seconds that a hit saves (`worth.py`), by the slots that the block takes.

- Blocks that it does not hold are remembered: their counts and ages go on.
- A block is of use only behind its prefix: only leaves are evicted, and a block whose parent is known but
  not held is not admitted.
- A newcomer must be worth more, slot for slot, than each block that it displaces, by a margin.
"""

from __future__ import annotations

import math
from bisect import insort
from collections import OrderedDict
from collections.abc import Iterator
from functools import cache

from controller.policies.events import Key
from controller.policies.reuse_history import MAX_TIMES, Block, Cohort, History
from controller.policies.reuse_model import ReuseModel, bucket_of
from controller.policies.reuse_parts import Parts, Tuning
from controller.policies.room import Room
from controller.policies.worth import STEPS_PER_OCTAVE, Worth

HISTORY_BLOCKS = 100_000
"""Blocks remembered at least; some hundred bytes each, where a block itself is tens of megabytes."""
HISTORY_PER_SLOT = 4
REFRESH_TICKS = 64
"""What was learned is put to use every so many ticks at least, and whenever an eighth more has been seen."""


class LearnedValue:
    """A shadow like those of `shadows.py`, but one that may refuse a block, and remembers what it lacks."""

    name = "learned"

    def __init__(
        self,
        capacity_blocks: int,
        worth: Worth,
        parts: Parts | None = None,
        tuning: Tuning | None = None,
        capacity_slots: int | None = None,
    ) -> None:
        self.capacity_blocks = capacity_blocks
        self._room = Room(capacity_blocks, capacity_slots)
        self.evicted: tuple[Key, ...] = ()
        """What the last `ask` pushed out."""
        parts = parts or Parts()
        self._parts = parts
        self._hurdle = 1.0 + (tuning or Tuning()).margin
        self._worth = worth
        self._model = ReuseModel(parts, tuning)
        remembered = max(HISTORY_BLOCKS, HISTORY_PER_SLOT * capacity_blocks) if parts.memory else 0
        self._history = History(self._model, remembered)
        self._refreshed_at = 0
        """The tick at which what was learned was put to use last."""
        self.blocks = self._history.blocks
        self._held: dict[Key, None] = {}
        self._queues: dict[int, OrderedDict[Cohort, None]] = {}
        """Cohorts with blocks that are held, by column, the oldest first."""
        self._order: list[tuple[float, Cohort]] = []
        """The cheapest cohort of each column, cheapest last; made anew every tick."""
        self._ranked_at = -1
        """The tick for which the order holds."""
        self._descent: tuple[Block, Block] | None = None

    def __contains__(self, key: object) -> bool:
        return key in self._held

    def __iter__(self) -> Iterator[Key]:
        return iter(self._held)

    def passed(self, times: int) -> bool:
        """So many requests are about to be counted; whether a tick ended before them."""
        history = self._history
        history.accesses_left -= times if times < MAX_TIMES else MAX_TIMES
        if history.accesses_left > 0:
            return False
        history.end_ticks()
        ticks = history.tick - self._refreshed_at
        if ticks >= REFRESH_TICKS or 8 * ticks >= history.tick:
            self._refreshed_at = history.tick
            if self._parts.learning:
                self._model.refresh(ticks)
            self._worth.refresh()
        return True

    def ask(self, block: Block, times: int) -> bool:
        """Ask for a block; whether it was held. It is now, if it is worth it."""
        self.evicted = ()
        held = block.held
        if held:
            self._file_out(block)
        self._history.asked(block, times, self._worth.steps[block.place] - _size_steps(block.fragments))
        if held:
            self._file_in(block)
        else:
            self._consider(block)
        return held

    def resize(self, block: Block, fragments: int) -> None:
        """A block takes so many slots; if it is held, from now on."""
        if block.held:
            self._room.left(block.key)
            self._room.entered(block.key, fragments)
        block.fragments = fragments

    def age(self, block: Block) -> int:
        """Ticks since a block was asked for last."""
        return self._history.tick - block.cohort.tick

    def chance(self, block: Block) -> float:
        """How likely a block is to be asked for again."""
        cohort = block.cohort
        return self._model.chance[cohort.kind][bucket_of(self._history.tick - cohort.tick)]

    def value(self, block: Block) -> float:
        """Seconds that holding a block can save per tick, and per slot that it takes."""
        cohort = block.cohort
        return self._index(cohort) * cohort.worth

    def cheapest_value(self) -> float | None:
        """The lowest value among what is held; None where there is room for any block."""
        if self._room.fits(1):
            return None
        cheapest = self._cheapest()
        return cheapest[0] if cheapest else None

    def _consider(self, block: Block) -> None:
        """Hold a newcomer if there is room, or if it is worth more than what it would displace."""
        parent = block.parent
        prefix = self._parts.prefix
        if prefix and parent is not None and not parent.held:
            return
        while not self._room.fits(block.fragments):
            # Of several victims some may go for nothing: the room is for what comes next.
            cheapest = self._cheapest()
            if cheapest is None:
                return
            value, victim = cheapest
            cohort = block.cohort  # of now: the block was asked for a moment ago
            newcomer = self._model.index[cohort.kind][0] * cohort.worth
            if newcomer <= value * self._hurdle or (victim is parent and prefix):
                return
            self._release(victim)
            self.evicted = (*self.evicted, victim.key)
        self._hold(block)

    def _cheapest(self) -> tuple[float, Block] | None:
        """The lowest value held, and the block to evict for it: the last leaf behind it, as a rule."""
        if self._ranked_at != self._history.tick:
            self._rank()
        order = self._order
        while order and not order[-1][1].held:
            column = order.pop()[1].column
            if column in self._queues:
                insort(order, self._cheapest_of(column), key=_dearest_first)
        if not order:
            return None
        value, cohort = order[-1]
        block = next(reversed(cohort.held.values()))
        return value, self._leaf_behind(block) if block.children and self._parts.prefix else block

    def _leaf_behind(self, top: Block) -> Block:
        """The last block behind this one; goes on from where the last search for it ended."""
        block = top
        if self._descent is not None and self._descent[0] is top and self._descent[1].held:
            block = self._descent[1]
        while block.children:
            block = next(reversed(block.children.values()))
        self._descent = (top, block.parent) if block is not top and block.parent is not None else None
        return block

    def _index(self, cohort: Cohort) -> float:
        return self._model.index[cohort.kind][bucket_of(self._history.tick - cohort.tick)]

    def _rank(self) -> None:
        self._order = sorted(map(self._cheapest_of, self._queues), key=_dearest_first)
        self._ranked_at = self._history.tick

    def _cheapest_of(self, column: int) -> tuple[float, Cohort]:
        """The lower valued of a column's oldest and youngest cohort: the index rises with age, then falls."""
        queue = self._queues[column]
        oldest, youngest = next(iter(queue)), next(reversed(queue))
        old_value, young_value = self._index(oldest), self._index(youngest)
        value, cohort = (old_value, oldest) if old_value < young_value else (young_value, youngest)
        return value * cohort.worth, cohort

    def _hold(self, block: Block) -> None:
        block.held = True
        self._held[block.key] = None
        self._room.entered(block.key, block.fragments)
        parent = block.parent
        if parent is not None:
            if parent.children is None:
                parent.children = {}
            parent.children[block.key] = block
        self._file_in(block)

    def _release(self, block: Block) -> None:
        self._file_out(block)
        block.held = False
        del self._held[block.key]
        self._room.left(block.key)
        if block.parent is not None and block.parent.children:
            block.parent.children.pop(block.key, None)
        self._history.released(block)

    def _file_in(self, block: Block) -> None:
        """Queue a block for eviction."""
        cohort = block.cohort
        if not cohort.held:
            column = cohort.column
            queue = self._queues.get(column)
            if queue is None:
                queue = self._queues[column] = OrderedDict()
            queue[cohort] = None
            if cohort.tick == self._ranked_at:
                value = self._model.index[cohort.kind][0] * cohort.worth
                insort(self._order, (value, cohort), key=_dearest_first)
        cohort.held[block.key] = block

    def _file_out(self, block: Block) -> None:
        """Take a block out of the queues."""
        cohort = block.cohort
        del cohort.held[block.key]
        if not cohort.held:
            queue = self._queues[cohort.column]
            del queue[cohort]
            if not queue:
                del self._queues[cohort.column]


@cache
def _size_steps(fragments: int) -> int:
    """What a block's size takes off its worth, in steps of worth; nothing takes less than a slot."""
    return round(math.log2(max(1, fragments)) * STEPS_PER_OCTAVE)


def _dearest_first(ranked: tuple[float, Cohort]) -> float:
    return -ranked[0]
