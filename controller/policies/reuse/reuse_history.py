"""Memory of the reuse-value policy of blocks, in the pool or not: counts, gaps, parents, and times of
requests.

Time is counted in tokens asked for: a tick is TICK_TOKENS of them. Blocks of one class that were last asked
for in the same tick age together, so that ageing is work per class and tick, not per block.
"""

from __future__ import annotations

from collections import OrderedDict
from weakref import WeakValueDictionary

from controller.policies.events import Key
from controller.policies.reuse.reuse_ages import AGE_EDGES
from controller.policies.reuse.reuse_classes import CLASSES, MAX_CHILDREN, class_of, lineage_of, new_class
from controller.policies.reuse.reuse_model import ReuseModel, bucket_of

GAP_MEMORY = 32
MAX_STEPS = 64
"""Largest number of steps of worth, up or down: sixteen octaves each way."""


class Block:
    """A block that the policy remembers."""

    __slots__ = (
        "__weakref__",
        "again",
        "born",
        "children",
        "column",
        "count",
        "fragments",
        "gap_ticks",
        "held",
        "is_last",
        "key",
        "kind",
        "lineage",
        "parent",
        "place",
        "tick",
    )

    def __init__(self, key: Key) -> None:
        self.key = key
        self.place = 0
        """What a hit saves, as a place of Worth."""
        self.fragments = 1
        """Slots that it takes."""
        self.held = False
        """Whether the learned value would have it in the pool."""
        self.children: dict[Key, Block] = {}
        """Its children among those held."""
        self.tick = self.kind = self.column = 0
        """When it was asked for last, its class, and step of worth * CLASSES + class."""
        self.begin(None, False)

    def begin(self, parent: Block | None, is_last: bool) -> None:
        """Begin anew: the block is heard of for the first time, or again after it was forgotten."""
        self.parent = parent
        self.is_last = is_last
        """Whether it ended the chain that it came with."""
        self.count = 0
        self.gap_ticks = 0.0
        """Mean time between the times it was asked for, the last GAP_MEMORY of them above all."""
        self.born = self.again = 0
        """Blocks that grew from it, and those of them that were asked for again."""
        self.lineage = 0
        """What became of others that grew from the same block, or how often that one had been asked for."""
        if parent is not None:
            is_new = parent.count == 1
            self.lineage = parent.lineage if is_new else lineage_of(parent.count, parent.born, parent.again)
            parent.born += 1
            if parent.born >= MAX_CHILDREN:
                parent.born //= 2
                parent.again //= 2


class History:
    """Blocks by key, and the clock; tells the model what happens."""

    def __init__(self, model: ReuseModel, remembered: int) -> None:
        self.blocks: OrderedDict[Key, Block] = OrderedDict()
        """What was asked for longest ago first."""
        self.tick = 0
        self.reused = 0
        """How often any block was asked for again, ever."""
        self._model = model
        self._remembered = remembered
        self._alive: WeakValueDictionary[Key, Block] = WeakValueDictionary()
        """Forgotten blocks that others know as their parent, too."""
        self._tracked: dict[int, list[int]] = {0: [0] * CLASSES}
        """Blocks by class that were last asked for in a tick."""

    def begin(self, key: Key, parent: Block | None, is_last: bool) -> Block:
        """Remember a block from now on."""
        block = self._alive.get(key)
        if block is None:
            block = self._alive[key] = Block(key)
        block.begin(parent, is_last)
        self.blocks[key] = block
        return block

    def asked(self, block: Block, times: int, step: int) -> None:
        """Count a request for a block whose hits are worth so many steps."""
        tick, count = self.tick, block.count
        if count:
            age = tick - block.tick
            self._untrack(block)
            gap_ticks = age / times
            block.gap_ticks += (gap_ticks - block.gap_ticks) / (count if count < GAP_MEMORY else GAP_MEMORY)
            block.count = count = count + times
            kind = class_of(count, block.gap_ticks)
            self._model.moved(block.kind, age, kind)
            if block.count - times == 1 and block.parent is not None:
                block.parent.again += 1
            self.reused += 1
        else:
            block.count = count = times
            kind = new_class(block.lineage, block.is_last) if count == 1 else class_of(count, 0.0)
            self._model.entered(kind)
        if times > 1:
            self._model.repeated(kind, times - 1)
        block.tick, block.kind = tick, kind
        block.column = max(-MAX_STEPS, min(MAX_STEPS - 1, step)) * CLASSES + kind
        self._tracked[tick][kind] += 1
        self.blocks.move_to_end(block.key)

    def end_tick(self) -> None:
        """Let the clock go on by one tick."""
        self.tick += 1
        self._tracked[self.tick] = [0] * CLASSES
        self._tracked.pop(self.tick - AGE_EDGES[-1] - 1, None)
        model = self._model
        for bucket, edge in enumerate(AGE_EDGES, 1):
            for kind, blocks in enumerate(self._tracked.get(self.tick - edge, ())):
                if blocks:
                    model.aged(kind, bucket, blocks)
        self._forget()
        model.ticked()

    def _forget(self) -> None:
        """Forget what was asked for longest ago, if that is too much; what is held is not forgotten."""
        blocks = self.blocks
        for _ in range(len(blocks)):
            if len(blocks) <= self._remembered:
                return
            key, block = next(iter(blocks.items()))
            if block.held:
                blocks.move_to_end(key)
                continue
            self._model.left(block.kind, bucket_of(self.tick - block.tick))
            self._untrack(block)
            del blocks[key]
            block.parent = None  # else those before it would be remembered for as long as others name it

    def _untrack(self, block: Block) -> None:
        tracked = self._tracked.get(block.tick)
        if tracked is not None:
            tracked[block.kind] -= 1
