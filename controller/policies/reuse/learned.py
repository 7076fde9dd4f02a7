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
from collections import OrderedDict
from collections.abc import Iterator
from functools import cache

from controller.policies.capacity import Capacity
from controller.policies.events import Key
from controller.policies.reuse.reuse_classes import CLASSES
from controller.policies.reuse.reuse_history import Block, History
from controller.policies.reuse.reuse_model import ReuseModel, bucket_of
from controller.policies.reuse.worth import STEPS_PER_OCTAVE


class LearnedValue:
    """A shadow like those of `shadows.py`, but one that may refuse a block."""

    name = "learned"

    def __init__(
        self, capacity: Capacity, model: ReuseModel, history: History, hurdle: float, is_prefix: bool = True
    ) -> None:
        """A newcomer must be worth `hurdle` times what it displaces; `is_prefix`: see above."""
        self.evicted: list[Key] = []
        """What the last `ask` pushed out."""
        self.steps: list[int] = []
        """What a hit is worth by place, as `Worth` has it."""
        self._capacity, self._model, self._history = capacity, model, history
        self._hurdle, self._is_prefix = hurdle, is_prefix
        self._held: dict[Key, None] = {}
        self._queues: dict[int, OrderedDict[Key, Block]] = {}
        """What is held by column, in the order of the last time asked."""
        self._cheapest_of: dict[int, tuple[float, int, Block]] = {}
        """Of each column that did not change meanwhile: value, column, block."""
        self._ranked_at = 0
        """The tick for which that holds."""

    def __contains__(self, key: object) -> bool:
        return key in self._held

    def __iter__(self) -> Iterator[Key]:
        return iter(self._held)

    def ask(self, block: Block, times: int) -> None:
        """Ask for a block; it is held now, if it is worth it."""
        self.evicted = []
        held = block.held
        if held:
            self._file_out(block)
        self._history.asked(block, times, self.steps[block.place] - _size_steps(block.fragments))
        if held:
            self._file_in(block)
        else:
            self._consider(block)

    def give_up(self, block: Block) -> bool:
        """Do not hold a block any more; False if blocks behind it are held."""
        self.evicted = []
        if block.children:
            return False
        if block.held:
            self._release(block)
        return True

    def shrink(self) -> None:
        """Give up what is worth least until the rest fits into less room."""
        self.evicted = []
        while self._capacity.is_overfull and (cheapest := self._cheapest()) is not None:
            self._release(cheapest[1])

    def resize(self, block: Block, fragments: int) -> None:
        """Set the slots that a block takes; if it is held, it takes them from now on."""
        if block.held:
            self._capacity.left(block.key)
            self._capacity.entered(block.key, fragments)
        block.fragments = fragments

    def chance(self, block: Block) -> float:
        """Return the probability that a block is asked for again."""
        return self._model.chance[block.kind][bucket_of(self._history.tick - block.tick)]

    def value(self, block: Block) -> float:
        """Return the seconds that holding a block can save per tick, and per slot that it takes."""
        index = self._model.index[block.kind][bucket_of(self._history.tick - block.tick)]
        return index * float(2.0 ** (block.column // CLASSES / STEPS_PER_OCTAVE))

    def cheapest_value(self) -> float | None:
        """Return the lowest value among what is held; None where there is room for any block."""
        cheapest = None if self._capacity.fits(1) else self._cheapest()
        return cheapest[0] if cheapest else None

    def learned_anew(self) -> None:
        """Take the model's new tables into account."""
        self._cheapest_of.clear()

    def _consider(self, block: Block) -> None:
        """Hold a newcomer if there is room, or if it is worth more than what it would displace."""
        parent = block.parent
        if self._is_prefix and parent is not None and not parent.held:
            return
        while not self._capacity.fits(block.fragments):
            # Of several victims some may go for nothing: the room is for what comes next.
            cheapest = self._cheapest()
            if cheapest is None:
                return
            value, victim = cheapest
            if self.value(block) <= value * self._hurdle or (victim is parent and self._is_prefix):
                return
            self._release(victim)
        self._hold(block)

    def _cheapest(self) -> tuple[float, Block] | None:
        """Return the lowest value held, and the block to evict for it: the last leaf behind it, as a rule.

        Of a column the oldest or the youngest: the index rises with age, then falls.
        """
        if self._ranked_at != self._history.tick:
            self._ranked_at = self._history.tick
            self._cheapest_of.clear()
        ranked = self._cheapest_of
        for column, queue in self._queues.items():
            if column not in ranked:
                oldest, youngest = queue[next(iter(queue))], queue[next(reversed(queue))]
                old_value, young_value = self.value(oldest), self.value(youngest)
                if young_value < old_value:
                    ranked[column] = young_value, column, youngest
                else:
                    ranked[column] = old_value, column, oldest
        if not ranked:
            return None
        value, _, block = min(ranked.values())
        while self._is_prefix and block.children:
            block = next(reversed(block.children.values()))
        return value, block

    def _hold(self, block: Block) -> None:
        block.held = True
        self._held[block.key] = None
        self._capacity.entered(block.key, block.fragments)
        if block.parent is not None:
            block.parent.children[block.key] = block
        self._file_in(block)

    def _release(self, block: Block) -> None:
        self._file_out(block)
        block.held = False
        del self._held[block.key]
        self._capacity.left(block.key)
        if block.parent is not None:
            del block.parent.children[block.key]
        self.evicted.append(block.key)

    def _file_in(self, block: Block) -> None:
        """Queue a block for eviction."""
        column = block.column
        self._queues.setdefault(column, OrderedDict())[block.key] = block
        self._cheapest_of.pop(column, None)

    def _file_out(self, block: Block) -> None:
        """Take a block out of the queues."""
        column = block.column
        queue = self._queues[column]
        del queue[block.key]
        if not queue:
            del self._queues[column]
        self._cheapest_of.pop(column, None)


@cache
def _size_steps(fragments: int) -> int:
    """Return the steps of worth that a block loses by its size. A block of one slot loses none."""
    return round(math.log2(max(1, fragments)) * STEPS_PER_OCTAVE)
