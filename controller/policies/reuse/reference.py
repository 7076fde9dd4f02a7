"""All that is done for each access, in Python: the reference for the compiled core (`native/`), which makes
the same decisions, and what runs where that cannot be compiled."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator

from controller.policies.capacity import Capacity
from controller.policies.events import Key
from controller.policies.reuse.learned import LearnedValue
from controller.policies.reuse.native import IN_POOL, LEARNED, UNKNOWN, Facts
from controller.policies.reuse.reuse_history import History
from controller.policies.reuse.reuse_model import Learner, ReuseModel
from controller.policies.reuse.reuse_prior import Counts
from controller.policies.reuse.shadows import MIN_BLOCKS, Shadow, make_shadows


class Reference:
    """What is remembered of blocks, what experts hold, and the pool by that: see `native.Core`."""

    def __init__(
        self,
        capacity_blocks: int,
        capacity_slots: int,
        shadows: bool,
        remembered: int,
        hurdle: float,
        prefix: bool,
    ) -> None:
        self._blocks, self._slots = capacity_blocks, capacity_slots
        self._model = ReuseModel()
        self._history = History(self._model, remembered)
        self._capacity = Capacity(capacity_blocks, capacity_slots or None)
        self._learned = LearnedValue(self._capacity, self._model, self._history, hurdle, prefix)
        capacity = capacity_blocks * (capacity_slots or 1)
        made = make_shadows(capacity, capacity_slots or 1) if shadows else []
        self._shadows: list[tuple[int, Shadow]] = [
            (2 * LEARNED << n, shadow) for n, shadow in enumerate(made)
        ]
        sets = 2 << len(made)
        self._everyone = sets - 1
        self._gains = [0.0] * sets
        self._pool_s = self._asked_s = 0.0
        self._seconds: list[float] = []
        self._holders: dict[Key, int] = {}
        self._pool: dict[Key, int] = {}
        """Holders of what is in the pool."""
        self._sets: list[OrderedDict[Key, None]] = [OrderedDict() for _ in range(sets)]
        self._order = list(range(sets))

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
        parent, learned = block.parent, self._learned
        pool_bit = self._everyone + 1
        had = self._holders.get(key, 0) | (pool_bit if key in self._pool else 0)
        block.served = served = had & (self._everyone | pool_bit if parent is None else parent.served)
        saved_s = times * self._seconds[block.place]
        self._asked_s += saved_s
        if served & pool_bit:
            self._pool_s += saved_s
        if served & self._everyone:
            self._gains[served & self._everyone] += saved_s
        learned.ask(block, times)
        for evicted in learned.evicted:
            self._let_go(evicted, LEARNED)
        holders = LEARNED if block.held else 0
        size = max(block.fragments * self._blocks, self._slots) if self._slots else 1
        for bit, shadow in self._shadows:
            shadow.ask(key, size)
            holders |= bit
            for evicted in shadow.evicted:
                self._let_go(evicted, bit)
        self._put(key, holders)
        return IN_POOL if key in self._pool else holders

    def _let_go(self, key: Key, bit: int) -> None:
        self._put(key, self._holders.get(key, 0) & ~bit)

    def _put(self, key: Key, holders: int) -> None:
        if holders:
            self._holders[key] = holders
        else:
            self._holders.pop(key, None)
        before = self._pool.get(key)
        if before is not None:
            del self._sets[before][key]
            self._sets[holders][key] = None
            self._pool[key] = holders

    def resize(self, blocks: int, slots: int, /) -> None:
        if blocks < 1 or bool(slots) != bool(self._slots):
            raise ValueError("capacities that cannot be")
        self._capacity.blocks, self._capacity.slots = blocks, slots or None
        self._learned.shrink()
        for evicted in self._learned.evicted:
            self._let_go(evicted, LEARNED)
        capacity = max(self._blocks * slots if slots else blocks, MIN_BLOCKS * (self._slots or 1))
        for _, shadow in self._shadows:
            shadow.resize(capacity)

    def end_tick(self) -> int:
        self._history.end_tick()
        return self._history.reused

    def take_gains(self) -> tuple[list[float], float, float]:
        taken = self._gains, self._pool_s, self._asked_s
        self._gains, self._pool_s, self._asked_s = [0.0] * len(self._gains), 0.0, 0.0
        return taken

    def set_order(self, order: list[int], /) -> None:
        self._order = order

    def set_worths(self, seconds: list[float], steps: list[int], /) -> None:
        self._seconds, self._learned.steps = list(seconds), list(steps)

    def refresh(self, ticks: float, learner: Learner) -> None:
        self._model.refresh(ticks, learner)
        self._learned.learned_anew()

    def counts(self) -> Counts:
        return self._model.counts

    def enter(self, key: Key, /) -> None:
        if key not in self._pool:
            holders = self._pool[key] = self._holders.get(key, 0)
            self._sets[holders][key] = None

    def leave(self, key: Key, /) -> None:
        del self._sets[self._pool.pop(key)][key]

    def least(self, most: int, /) -> list[tuple[Key, int]]:
        found: list[tuple[Key, int]] = []
        for holders in self._order:
            for key in self._sets[holders]:
                if len(found) >= most:
                    return found
                found.append((key, holders))
        return found

    def holders(self, key: Key, /) -> int:
        return self._holders.get(key, 0)

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
