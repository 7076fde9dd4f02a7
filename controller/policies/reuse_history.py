"""What the reuse-value policy remembers of blocks, in the pool or not: counts, lineage, and when they were
asked for.

Time is counted in accesses: the clock advances by one tick every TICK_ACCESSES. Blocks of one class and
home that were last asked for in the same tick form a cohort, so that ageing is work per cohort, not per
block."""

from __future__ import annotations

from collections import deque

from controller.policies.events import Key
from controller.policies.reuse_classes import CLASSES, class_of, lineage_of
from controller.policies.reuse_model import AGE_EDGES, TICK_ACCESSES, ReuseModel, bucket_of
from controller.policies.reuse_parts import Parts

REFRESH_TICKS = 64
GAP_MEMORY = 32
MAX_HOMES = 64
MAX_TIMES = 4096
"""More requests than that in one event are not believed."""


class Cohort:
    """Blocks of one class and home that were last asked for in the same tick."""

    __slots__ = ("column", "held", "kind", "tick", "tracked")

    def __init__(self, column: int, tick: int) -> None:
        self.column = column
        self.kind = column % CLASSES
        self.tick = tick
        self.tracked = 0
        """Blocks in it, in the pool or not."""
        self.held: dict[Key, Block] = {}
        """Those in the pool that may be evicted, in the order in which they were asked for."""


class Block:
    """What is remembered of a block."""

    __slots__ = ("children", "cohort", "count", "gap_ticks", "in_pool", "key", "lineage", "parent")

    cohort: Cohort

    def __init__(self, key: Key, parent: Block | None) -> None:
        self.key = key
        self.parent = parent
        self.count = 0
        self.gap_ticks = 0.0
        """Mean time between the times it was asked for, the last GAP_MEMORY of them above all."""
        self.in_pool = False
        self.lineage = 0
        """How often the block it grew from had been asked for."""
        self.children: dict[Key, Block] | None = None
        """Its children in the pool, if it ever had any."""
        if parent is not None:
            self.lineage = parent.lineage if parent.count == 1 else lineage_of(parent.count)


class History:
    """Blocks by key, their cohorts, and the clock; tells the model what happens."""

    def __init__(self, model: ReuseModel, parts: Parts, remembered: int) -> None:
        self.blocks: dict[Key, Block] = {}
        self.tick = 0
        self._model = model
        self._parts = parts
        self._remembered = remembered
        self._accesses_left = TICK_ACCESSES
        self._current: dict[int, Cohort] = {}
        """The cohorts of this tick, by column: home place * CLASSES + class."""
        self._cohorts: dict[int, dict[int, Cohort]] = {0: self._current}
        """By tick, then by column."""
        self._asked: list[Key] = []
        """Blocks asked for in this tick, and those that left the pool in it."""
        self._log: deque[tuple[int, list[Key]]] = deque([(0, self._asked)])
        """The same for all ticks whose blocks may still be remembered, the oldest first."""
        self._logged = 0
        self._home_places: dict[int, int] = {0: 0}

    def home_place(self, home: int) -> int:
        """A small number for a storage node; those beyond MAX_HOMES share one."""
        places = self._home_places
        if home not in places:
            if len(places) >= MAX_HOMES:
                return 0
            places[home] = len(places)
        return places[home]

    def missed(
        self, key: Key, parent_key: Key | None, times: int, chain_blocks: int, is_last: bool, home: int
    ) -> Block:
        """A block was asked for that is not in the pool; the event says what is known of its chain."""
        self._advance(times)
        block = self.blocks.get(key)
        if block is None:
            parent = None if parent_key is None else self.blocks.get(parent_key)
            block = self.blocks[key] = Block(key, parent)
        self._ask(block, times)
        lineage = block.lineage if self._parts.lineage else 0
        if not self._parts.place:
            chain_blocks, is_last = 0, False
        kind = class_of(block.count, block.gap_ticks, lineage, chain_blocks, is_last)
        self._move(block, (self.home_place(home) if home else 0) * CLASSES + kind, times)
        return block

    def hit(self, block: Block, times: int) -> None:
        """A block was asked for that is in the pool, or was until just now."""
        self._advance(times)
        self._ask(block, times)
        kind = class_of(block.count, block.gap_ticks, block.lineage, 0, False)
        self._move(block, block.cohort.column // CLASSES * CLASSES + kind, times)

    def left_pool(self, block: Block) -> None:
        """A block left the pool and may be forgotten one day."""
        self._asked.append(block.key)

    def _ask(self, block: Block, times: int) -> None:
        if block.count:
            gap_ticks = (self.tick - block.cohort.tick) / times
            block.gap_ticks += (gap_ticks - block.gap_ticks) / min(block.count, GAP_MEMORY)
        block.count += times

    def _move(self, block: Block, column: int, times: int) -> None:
        """Put a block that was just asked for into the cohort of now."""
        kind = column % CLASSES
        if block.count > times:
            cohort = block.cohort
            self._model.reused(cohort.kind, bucket_of(self.tick - cohort.tick))
            self._detach(cohort)
        self._model.entered(kind)
        if times > 1:
            self._model.repeated(kind, times - 1)
        current = self._current.get(column)
        if current is None:
            current = self._current[column] = Cohort(column, self.tick)
        current.tracked += 1
        block.cohort = current
        self._asked.append(block.key)

    def _forget(self) -> None:
        """Start a new log and forget what was asked for longest ago; what is in the pool is not forgotten."""
        self._logged += len(self._asked)
        while self._logged > self._remembered:
            tick, keys = self._log.popleft()
            self._logged -= len(keys)
            for key in keys:
                block = self.blocks.get(key)
                if block is not None and not block.in_pool and block.cohort.tick <= tick:
                    self._drop(block)
        self._asked = []
        self._log.append((self.tick, self._asked))

    def _drop(self, block: Block) -> None:
        cohort = block.cohort
        self._model.left(cohort.kind, bucket_of(self.tick - cohort.tick))
        self._detach(cohort)
        del self.blocks[block.key]

    def _detach(self, cohort: Cohort) -> None:
        cohort.tracked -= 1
        if not cohort.tracked:
            cohorts = self._cohorts[cohort.tick]
            del cohorts[cohort.column]
            if not cohorts and cohort.tick != self.tick:
                del self._cohorts[cohort.tick]

    def _advance(self, times: int) -> None:
        self._accesses_left -= min(times, MAX_TIMES)
        while self._accesses_left <= 0:
            self._accesses_left += TICK_ACCESSES
            self._next_tick()

    def _next_tick(self) -> None:
        if not self._current:
            del self._cohorts[self.tick]
        self.tick += 1
        self._current = self._cohorts[self.tick] = {}
        model = self._model
        for bucket, edge in enumerate(AGE_EDGES, 1):
            for cohort in self._cohorts.get(self.tick - edge, {}).values():
                model.aged(cohort.kind, bucket, cohort.tracked)
        self._forget()
        model.ticked()
        if self._parts.learning and self.tick % REFRESH_TICKS == 0:
            model.refresh(REFRESH_TICKS)
