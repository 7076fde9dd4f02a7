"""What the reuse-value policy remembers of blocks, in the pool or not: counts, gaps, parents, and when they
were asked for.

Time is counted in accesses: the clock advances by one tick every TICK_ACCESSES. Blocks of one class and
worth that were last asked for in the same tick form a cohort, so that ageing is work per cohort, not per
block."""

from __future__ import annotations

from collections import deque

from controller.policies.events import Key
from controller.policies.reuse_classes import CLASSES, class_of, lineage_of, new_class
from controller.policies.reuse_model import AGE_EDGES, TICK_ACCESSES, ReuseModel, bucket_of
from controller.policies.worth import STEPS_PER_OCTAVE

GAP_MEMORY = 32
MAX_TIMES = 4096
"""More requests than that in one event are not believed."""


class Cohort:
    """Blocks of one class and worth that were last asked for in the same tick."""

    __slots__ = ("column", "held", "kind", "tick", "tracked", "worth")

    def __init__(self, column: int, tick: int) -> None:
        self.column = column
        """Step of worth * CLASSES + class."""
        self.kind = column % CLASSES
        self.worth = float(2.0 ** (column // CLASSES / STEPS_PER_OCTAVE))
        """What a hit of one of its blocks saves, beside those of others."""
        self.tick = tick
        self.tracked = 0
        """Blocks in it, held or not."""
        self.held: dict[Key, Block] = {}
        """Those that the learned value holds, in the order in which they were asked for."""


class Block:
    """What is remembered of a block."""

    __slots__ = (
        "children",
        "cohort",
        "count",
        "fragments",
        "gap_ticks",
        "held",
        "is_last",
        "key",
        "lineage",
        "parent",
        "place",
        "served",
    )

    cohort: Cohort

    def __init__(self, key: Key, parent: Block | None, place: int, is_last: bool) -> None:
        self.key = key
        self.parent = parent
        self.place = place
        """What a hit saves, as a place of Worth."""
        self.fragments = 1
        """Slots that it takes."""
        self.served = 0
        """Experts (bits) that had it and all blocks before it in its chain when it was asked for last."""
        self.count = 0
        self.gap_ticks = 0.0
        """Mean time between the times it was asked for, the last GAP_MEMORY of them above all."""
        self.held = False
        """Whether the learned value would have it in the pool."""
        self.is_last = is_last
        """Whether it ended the chain that it came with."""
        self.lineage = 0
        """How often the block it grew from had been asked for, as a class."""
        self.children: dict[Key, Block] | None = None
        """Its children among those held, if it ever had any."""
        if parent is not None:
            self.lineage = parent.lineage if parent.count == 1 else lineage_of(parent.count)


class History:
    """Blocks by key, their cohorts, and the clock; tells the model what happens."""

    def __init__(self, model: ReuseModel, remembered: int) -> None:
        self.blocks: dict[Key, Block] = {}
        self.tick = 0
        self._model = model
        self._remembered = remembered
        self.accesses_left = TICK_ACCESSES
        """Until this tick ends; whoever counts accesses takes them off."""
        self._current: dict[int, Cohort] = {}
        """The cohorts of this tick, by column."""
        self._cohorts: dict[int, dict[int, Cohort]] = {0: self._current}
        """By tick, then by column."""
        self._asked: list[Key] = []
        """Blocks asked for in this tick."""
        self._released: list[Key] = []
        """Those that ceased to be held in it."""
        self._log: deque[tuple[int, list[Key], list[Key]]] = deque([(0, self._asked, self._released)])
        """The same for all ticks whose blocks may still be remembered, the oldest first."""
        self._logged = 0

    def end_ticks(self) -> None:
        """End as many ticks as the accesses since the last one make."""
        while self.accesses_left <= 0:
            self.accesses_left += TICK_ACCESSES
            self._next_tick()

    def asked(self, block: Block, times: int, step: int) -> None:
        """A block was asked for, whose hits are worth so many steps: it moves to a cohort of now."""
        tick, count = self.tick, block.count
        if count:
            cohort = block.cohort
            age = tick - cohort.tick
            cohort.tracked -= 1
            if not cohort.tracked:
                self._drop_cohort(cohort)
            gap_ticks = age / times
            block.gap_ticks += (gap_ticks - block.gap_ticks) / (count if count < GAP_MEMORY else GAP_MEMORY)
            block.count = count = count + times
            kind = class_of(count, block.gap_ticks)
            self._model.moved(cohort.kind, age, kind)
        else:
            block.count = count = times
            kind = new_class(block.lineage, block.is_last) if count == 1 else class_of(count, 0.0)
            self._model.entered(kind)
        if times > 1:
            self._model.repeated(kind, times - 1)
        column = step * CLASSES + kind
        current = self._current.get(column)
        if current is None:
            current = self._current[column] = Cohort(column, tick)
        current.tracked += 1
        block.cohort = current
        self._asked.append(block.key)

    def released(self, block: Block) -> None:
        """A block is no longer held and may be forgotten one day."""
        self._released.append(block.key)

    def _forget(self) -> None:
        """Start a new log and forget what was asked for longest ago; what is held is not forgotten."""
        self._logged += len(self._asked) + len(self._released)
        while self._logged > self._remembered:
            tick, asked, released = self._log.popleft()
            self._logged -= len(asked) + len(released)
            for key in (*asked, *released):
                block = self.blocks.get(key)
                if block is not None and not block.held and block.cohort.tick <= tick:
                    self._drop(block)
        self._asked, self._released = [], []
        self._log.append((self.tick, self._asked, self._released))

    def _drop(self, block: Block) -> None:
        cohort = block.cohort
        self._model.left(cohort.kind, bucket_of(self.tick - cohort.tick))
        cohort.tracked -= 1
        if not cohort.tracked:
            self._drop_cohort(cohort)
        del self.blocks[block.key]

    def _drop_cohort(self, cohort: Cohort) -> None:
        cohorts = self._cohorts[cohort.tick]
        del cohorts[cohort.column]
        if not cohorts and cohort.tick != self.tick:
            del self._cohorts[cohort.tick]

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
