"""Work of the policy for each access, in Python.

It is the reference for the compiled core (`native/`), which makes the same decisions, and runs where that
can't be compiled.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from itertools import chain, islice

from controller.policies.capacity import Capacity
from controller.policies.events import Key
from controller.policies.reuse.learned import LearnedValue
from controller.policies.reuse.native import IN_POOL, UNKNOWN, Facts
from controller.policies.reuse.reuse_history import History
from controller.policies.reuse.reuse_model import Learner, ReuseModel


class Reference:
    """Reference implementation of `native.Core`."""

    def __init__(
        self,
        capacity_blocks: int,
        capacity_slots: int,
        remembered: int,
        hurdle: float,
        prefix: bool,
    ) -> None:
        self._slots = capacity_slots
        self._model = ReuseModel()
        self._history = History(self._model, remembered)
        self._capacity = Capacity(capacity_blocks, capacity_slots or None)
        self._learned = LearnedValue(self._capacity, self._model, self._history, hurdle, prefix)
        self._pool: dict[Key, bool] = {}
        """What is in the pool, and whether it is wanted there."""
        self._queues: tuple[OrderedDict[Key, None], OrderedDict[Key, None]] = (OrderedDict(), OrderedDict())
        """What is in the pool and not wanted, and what is, in the order in which it leaves."""

    def __contains__(self, key: object) -> bool:
        return key in self._pool

    def __len__(self) -> int:
        return len(self._pool)

    def __iter__(self) -> Iterator[Key]:
        return iter(self._pool)

    def ask(
        self, key: Key, parent_key: Key | None, is_last: bool, place: int, fragments: int, times: int, /
    ) -> int:
        block = self._history.blocks.get(key)
        if block is None:
            parent = None
            if parent_key is not None:
                parent = self._history.blocks.get(parent_key)
                if parent is None:
                    return UNKNOWN
            block = self._history.begin(key, parent, is_last)
        if block.fragments != fragments:
            self._learned.resize(block, fragments)
        block.place = place
        return self._ask_all(key, times)

    def hits(self, key: Key, times: int, /) -> int:
        return self._ask_all(key, times) if key in self._history.blocks else UNKNOWN

    def _ask_all(self, key: Key, times: int) -> int:
        block = self._history.blocks[key]
        self._learned.ask(block, times)
        self._give_up()
        self._put(key, block.held)
        return IN_POOL if key in self._pool else int(block.held)

    def give_up(self, key: Key, /) -> bool:
        block = self._history.blocks.get(key)
        is_given_up = block is None or self._learned.give_up(block)
        self._give_up()
        return is_given_up

    def _give_up(self) -> None:
        for key in self._learned.evicted:
            self._put(key, False)

    def _put(self, key: Key, is_wanted: bool) -> None:
        before = self._pool.get(key)
        if before is not None:
            del self._queues[before][key]
            self._queues[is_wanted][key] = None
            self._pool[key] = is_wanted

    def resize(self, blocks: int, slots: int, /) -> None:
        if blocks < 1 or bool(slots) != bool(self._slots):
            raise ValueError("capacities that cannot be")
        self._capacity.blocks, self._capacity.slots = blocks, slots or None
        self._learned.shrink()
        self._give_up()

    def end_tick(self) -> int:
        self._history.end_tick()
        return self._history.reused

    def set_worths(self, seconds: list[float], steps: list[int], /) -> None:
        self._learned.steps = list(steps)

    def refresh(self, ticks: float, learner: Learner) -> None:
        self._model.refresh(ticks, learner)
        self._learned.learned_anew()

    def enter(self, key: Key, /) -> None:
        if key not in self._pool:
            is_wanted = self._pool[key] = self.is_wanted(key)
            self._queues[is_wanted][key] = None

    def leave(self, key: Key, /) -> None:
        del self._queues[self._pool.pop(key)][key]

    def least(self, most: int, /) -> list[Key]:
        return list(islice(chain(*self._queues), most))

    def is_wanted(self, key: Key, /) -> bool:
        return key in self._learned

    def chance(self, key: Key, /) -> float | None:
        block = self._history.blocks.get(key)
        return None if block is None else self._learned.chance(block)

    def facts(self, key: Key, /) -> Facts | None:
        block = self._history.blocks.get(key)
        if block is None:
            return None
        parent = block.parent
        return (
            block.count,
            self._history.tick - block.tick,
            block.place,
            self._learned.value(block),
            parent.key if parent else None,
            parent.held if parent else False,
        )

    def cheapest_value(self) -> float | None:
        return self._learned.cheapest_value()

    def known(self) -> int:
        return len(self._history.blocks)
