"""Reuse value: keeps the blocks that save most per slot and tick, by what was learned of their like.

value = index(class, age) * worth(home): the rate of hits that holding the block can reach
(`reuse_model.py`), times the seconds that a hit saves, which is the transfer from its storage node under
that node's present load, or computing the block where that is faster.

- Blocks that left the pool, or never entered it, are remembered: their counts and ages go on.
- A block is of use only behind its prefix: only leaves are evicted, and a block whose parent is known but
  not in the pool is not admitted.
- A newcomer must be worth more than the block it displaces, by a margin.
"""

from __future__ import annotations

from bisect import insort
from collections import OrderedDict
from collections.abc import Iterator, Sequence

from controller.policies.base import NOTHING, Policy
from controller.policies.events import (
    Admit,
    Decision,
    Event,
    Evict,
    Found,
    Hits,
    HomeLoad,
    Key,
    Lost,
    Miss,
    Pin,
    Unpin,
)
from controller.policies.reuse_classes import CLASSES
from controller.policies.reuse_history import Block, Cohort, History
from controller.policies.reuse_model import ReuseModel, bucket_of
from controller.policies.reuse_parts import Parts
from workload.cost import DEFAULT_LINK_BIT_S, CostModel

MARGIN = 0.01
"""Hysteresis: by how much a newcomer's value must exceed that of the block it displaces."""
HISTORY_BLOCKS = 100_000
"""Blocks remembered at least; a few bytes each, where a block itself is tens of megabytes."""
HISTORY_PER_SLOT = 4


class ReuseValue(Policy):
    """The project's own policy; `parts` switches parts of it off, for the ablation."""

    name = "reuse"

    def __init__(
        self, capacity_blocks: int, cost: CostModel | None = None, parts: Parts | None = None
    ) -> None:
        super().__init__(capacity_blocks)
        self._cost = cost or CostModel()
        parts = parts or Parts()
        self._prefix = parts.prefix
        self._model = ReuseModel(parts)
        remembered = max(HISTORY_BLOCKS, HISTORY_PER_SLOT * capacity_blocks) if parts.memory else 0
        self._history = History(self._model, parts, remembered)
        self._held = 0
        self._queues: dict[int, OrderedDict[Cohort, None]] = {}
        """Cohorts with evictable blocks in the pool, by column, the oldest first."""
        self._order: list[tuple[float, Cohort]] = []
        """The cheapest cohort of each column, cheapest last; made anew every tick."""
        self._ranked_at = -1
        """The tick for which the order holds."""
        self._descent: tuple[Block, Block] | None = None
        self._worth_s: dict[int, float] = {}
        self._idle_worth_s = self._saved_s(0.0)

    def __contains__(self, key: object) -> bool:
        block = self._history.blocks.get(key)  # type: ignore[call-overload]
        return block is not None and block.in_pool

    def __len__(self) -> int:
        return self._held

    def __iter__(self) -> Iterator[Key]:
        return (key for key, block in self._history.blocks.items() if block.in_pool)

    def miss(self, event: Miss) -> Sequence[Decision]:
        key, _, depth, chain_blocks, parent, times, home = event
        block = self._history.blocks.get(key)
        if block is not None and block.in_pool:
            self._file_out(block)
        block = self._history.missed(key, parent, times, chain_blocks, depth == chain_blocks - 1, home)
        decisions: Sequence[Decision] = NOTHING
        if block.in_pool:
            self._file_in(block)
        else:
            decisions = self._consider(block)
        return decisions

    def hits(self, event: Hits) -> None:
        block = self._history.blocks.get(event.key)
        if block is None:
            return
        if block.in_pool:
            self._file_out(block)
        self._history.hit(block, event.times)
        if block.in_pool:
            self._file_in(block)

    def lost(self, event: Lost) -> None:
        block = self._history.blocks.get(event.key)
        if block is not None and block.in_pool:
            self._leave(block)

    def found(self, event: Found) -> Sequence[Decision]:
        block = self._history.blocks.get(event.key) or self._history.missed(event.key, None, 1, 0, False, 0)
        if block.in_pool:
            return NOTHING
        if self._held < self.capacity_blocks:
            self._enter(block)
            return NOTHING
        victim = self._cheapest()
        if victim is None:
            return (Evict(event.key),)
        evict = self._evict(victim[1])
        self._enter(block)
        return (evict,)

    def home_load(self, event: HomeLoad) -> None:
        self._worth_s[self._history.home_place(event.home)] = self._saved_s(event.wait_s)
        self._ranked_at = -1

    def handle(self, event: Event) -> Sequence[Decision]:
        if isinstance(event, Pin | Unpin):
            return self._pin(event)
        return super().handle(event)

    def _pin(self, event: Pin | Unpin) -> Sequence[Decision]:
        block = self._history.blocks.get(event.key)
        in_pool = block is not None and block.in_pool
        if block is not None and in_pool:
            self._file_out(block)
        super().handle(event)
        if block is not None and in_pool:
            self._file_in(block)
        return NOTHING

    def _saved_s(self, wait_s: float) -> float:
        """Seconds that a hit saves: the transfer behind what waits at the home, or computing the block."""
        transfer_s = self._cost.fetch_s(self._cost.block_bytes, DEFAULT_LINK_BIT_S)
        return min(transfer_s + wait_s, self._cost.block_prefill_s(0))

    def _consider(self, block: Block) -> Sequence[Decision]:
        """Admit a newcomer if there is room, or if it is worth more than what it would displace."""
        parent = block.parent
        if self._prefix and parent is not None and not parent.in_pool:
            return NOTHING
        if self._held < self.capacity_blocks:
            self._enter(block)
            return (Admit(block.key),)
        cheapest = self._cheapest()
        if cheapest is None:
            return NOTHING
        value, victim = cheapest
        own_value = self._young_value(block.cohort)
        if own_value <= value * (1.0 + MARGIN) or (victim is parent and self._prefix):
            return NOTHING
        evict = self._evict(victim)
        self._enter(block)
        return (evict, Admit(block.key))

    def _cheapest(self) -> tuple[float, Block] | None:
        """The lowest value in the pool, and the block to evict for it: the last leaf behind it, as a rule."""
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
        return value, self._leaf_behind(block) if block.children and self._prefix else block

    def _leaf_behind(self, top: Block) -> Block:
        """The last block behind this one that may go; goes on from where the last search for it ended."""
        block = top
        if self._descent is not None and self._descent[0] is top and self._descent[1].in_pool:
            block = self._descent[1]
        while block.children:
            child = next((c for c in reversed(block.children.values()) if c.key not in self.pinned), None)
            if child is None:
                break
            block = child
        self._descent = (top, block.parent) if block is not top and block.parent is not None else None
        return block

    def _young_value(self, cohort: Cohort) -> float:
        """The value of blocks that were asked for just now."""
        worth_s = self._worth_s.get(cohort.column // CLASSES, self._idle_worth_s)
        return self._model.index[cohort.kind][0] * worth_s

    def _rank(self) -> None:
        self._order = sorted(map(self._cheapest_of, self._queues), key=_dearest_first)
        self._ranked_at = self._history.tick

    def _cheapest_of(self, column: int) -> tuple[float, Cohort]:
        """The lower valued of a column's oldest and youngest cohort: the index rises with age, then falls."""
        tick, values, queue = self._history.tick, self._model.index[column % CLASSES], self._queues[column]
        oldest, youngest = next(iter(queue)), next(reversed(queue))
        old_value, young_value = (
            values[bucket_of(tick - oldest.tick)],
            values[bucket_of(tick - youngest.tick)],
        )
        value, cohort = (old_value, oldest) if old_value < young_value else (young_value, youngest)
        return value * self._worth_s.get(column // CLASSES, self._idle_worth_s), cohort

    def _enter(self, block: Block) -> None:
        block.in_pool = True
        self._held += 1
        parent = block.parent
        if parent is not None:
            if parent.children is None:
                parent.children = {}
            parent.children[block.key] = block
        self._file_in(block)

    def _evict(self, block: Block) -> Evict:
        cohort = block.cohort
        chance = self._model.chance[cohort.kind][bucket_of(self._history.tick - cohort.tick)]
        self._leave(block)
        return Evict(block.key, chance)

    def _leave(self, block: Block) -> None:
        self._file_out(block)
        block.in_pool = False
        self._held -= 1
        if block.parent is not None and block.parent.children:
            block.parent.children.pop(block.key, None)
        self._history.left_pool(block)

    def _file_in(self, block: Block) -> None:
        """Queue a block of the pool for eviction, unless it is pinned."""
        if block.key in self.pinned:
            return
        cohort = block.cohort
        if not cohort.held:
            queue = self._queues.get(cohort.column)
            if queue is None:
                queue = self._queues[cohort.column] = OrderedDict()
            queue[cohort] = None
            if cohort.tick == self._ranked_at:
                insort(self._order, (self._young_value(cohort), cohort), key=_dearest_first)
        cohort.held[block.key] = block

    def _file_out(self, block: Block) -> None:
        """Take a block of the pool out of the queues."""
        cohort = block.cohort
        if cohort.held.pop(block.key, None) is not None and not cohort.held:
            queue = self._queues[cohort.column]
            del queue[cohort]
            if not queue:
                del self._queues[cohort.column]


def _dearest_first(ranked: tuple[float, Cohort]) -> float:
    return -ranked[0]
