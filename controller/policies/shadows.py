"""Shadow caches: what the published policies would hold, as keys without blocks.

libcachesim's do not say what they evict, and the pool has to follow: these are the same algorithms, and hit
exactly as often as libcachesim's do, which the tests compare. Every block counts as one.

Two are enough beside the learned value: on the generated shapes (seeds 1 to 3) the better of the three saves
within 0.2 % of what the best of six experts with LRU, ARC and S3-FIFO does. MQ leads where popularity lasts,
LIRS where most is asked for once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Iterator
from typing import ClassVar

from controller.policies.events import Key


class Shadow(ABC):
    """A cache of keys that admits whatever is asked for."""

    name: ClassVar[str]
    evicted: tuple[Key, ...] = ()
    """What the last `ask` pushed out."""

    def __init__(self, capacity_blocks: int, sample: int = 1) -> None:
        """It hears of the accesses to one of `sample` blocks."""
        self.capacity_blocks = capacity_blocks

    @abstractmethod
    def ask(self, key: Key) -> bool:
        """Ask for a block, which it then holds; whether it held it already."""

    @abstractmethod
    def __contains__(self, key: object) -> bool:
        """Whether it holds the block."""

    @abstractmethod
    def __iter__(self) -> Iterator[Key]:
        """What it holds."""


MQ_QUEUES = 8
MQ_LIFETIME = 10_000
MQ_GHOSTS = 4
"""Multi-Queue's parameters, as libcachesim has them: ghosts per slot, lifetime in accesses."""


class MqShadow(Shadow):
    """Multi-Queue (Zhou, Philbin and Li, USENIX 2001): LRU queues by log2 of the count, which ghosts keep."""

    name = "mq"

    def __init__(self, capacity_blocks: int, sample: int = 1) -> None:
        super().__init__(capacity_blocks, sample)
        self._queues: list[OrderedDict[Key, int]] = [OrderedDict() for _ in range(MQ_QUEUES)]
        """By key, when the block leaves for the queue below, if not asked for until then."""
        self._counts: dict[Key, int] = {}
        self._places: dict[Key, OrderedDict[Key, int]] = {}
        """The queue that each block is in."""
        self._ghosts: OrderedDict[Key, int] = OrderedDict()
        self._lifetime = max(1, MQ_LIFETIME // sample)
        self._now = 0
        self._due = 0
        """Until then no queue's head can be out of its lifetime."""

    def __contains__(self, key: object) -> bool:
        return key in self._places

    def __iter__(self) -> Iterator[Key]:
        return iter(self._places)

    def ask(self, key: Key) -> bool:
        self.evicted = ()
        self._now = now = self._now + 1
        places = self._places
        queue = places.get(key)
        if queue is not None:
            count = self._counts[key] = self._counts[key] + 1
            del queue[key]
        else:
            if len(places) >= self.capacity_blocks:
                self._evict()
            count = self._counts[key] = self._ghosts.pop(key, 0) + 1
        level = count.bit_length() - 1
        new = places[key] = self._queues[level if level < MQ_QUEUES else MQ_QUEUES - 1]
        new[key] = now + self._lifetime
        if now > self._due:
            self._adjust(now)
        return queue is not None

    def _adjust(self, now: int) -> None:
        """Move what was not asked for in its lifetime down, at most one block of each queue."""
        below = self._queues[0]
        for queue in self._queues[1:]:
            if queue:
                head = next(iter(queue))
                if queue[head] < now:
                    del queue[head]
                    below[head] = now + self._lifetime
                    self._places[head] = below
            below = queue
        self._due = min(
            (queue[next(iter(queue))] for queue in self._queues[1:] if queue), default=now + self._lifetime
        )

    def _evict(self) -> None:
        for queue in self._queues:
            if queue:
                break
        key = queue.popitem(last=False)[0]
        self.evicted = (key,)
        del self._places[key]
        if len(self._ghosts) >= MQ_GHOSTS * self.capacity_blocks:
            self._ghosts.popitem(last=False)
        self._ghosts[key] = self._counts.pop(key)


LIRS_COLD = 0.01
"""Share of the capacity for blocks of long recency, as libcachesim has it."""
LIRS_MIN_COLD_BLOCKS = 2
"""With one, libcachesim hits blocks that it has evicted."""
LIRS_STACK = 2
"""Keys a slot that the stack remembers."""


class LirsShadow(Shadow):
    """LIRS (Jiang and Zhang, SIGMETRICS'02): most of the room for blocks whose last two uses were near."""

    name = "lirs"

    def __init__(self, capacity_blocks: int, sample: int = 1) -> None:
        super().__init__(capacity_blocks, sample)
        cold_blocks = max(LIRS_MIN_COLD_BLOCKS, int(capacity_blocks * LIRS_COLD))
        self._hot_blocks = capacity_blocks - cold_blocks
        self._cold_blocks = cold_blocks
        self._hot = 0
        """Hot blocks in the stack; they are all there."""
        self._stack: OrderedDict[Key, bool] = OrderedDict()
        """Whether hot, by key, what was asked for longest ago first."""
        self._cold: OrderedDict[Key, None] = OrderedDict()
        """Cold blocks that it holds, in the stack or not."""
        self._ghosts: OrderedDict[Key, None] = OrderedDict()
        """Cold blocks in the stack that it does not hold, in the order in which they were evicted."""

    def __contains__(self, key: object) -> bool:
        return key in self._cold or self._stack.get(key, False)  # type: ignore[call-overload]

    def __iter__(self) -> Iterator[Key]:
        yield from (key for key, is_hot in self._stack.items() if is_hot)
        yield from self._cold

    def ask(self, key: Key) -> bool:
        self.evicted = ()
        stack, cold = self._stack, self._cold
        is_hot = stack.get(key)
        if is_hot is None:
            had = self._ask_unstacked(key)
        else:
            stack.move_to_end(key)
            had = is_hot or key in cold
            if is_hot:
                self._prune()
            else:
                if had:
                    del cold[key]
                if self._hot >= self._hot_blocks:
                    self._cool()
                self._ghosts.pop(key, None)
                stack[key] = True
                self._hot += 1
        while len(stack) > LIRS_STACK * self.capacity_blocks and self._ghosts:
            del stack[self._ghosts.popitem(last=False)[0]]
        return had

    def _ask_unstacked(self, key: Key) -> bool:
        cold = self._cold
        had = key in cold
        if had:
            cold.move_to_end(key)
            if self._hot >= self._hot_blocks:
                self._cool()
        elif self._hot < self._hot_blocks:
            self._hot += 1
            self._stack[key] = True
            return False
        else:
            self._make_room()
            cold[key] = None
        self._stack[key] = False
        return had

    def _cool(self) -> None:
        """The hot block asked for longest ago becomes a cold one."""
        key, _ = self._stack.popitem(last=False)
        self._hot -= 1
        self._make_room()
        self._cold[key] = None
        self._prune()

    def _make_room(self) -> None:
        """Evict the oldest cold block, if there is no room for another."""
        if len(self._cold) >= self._cold_blocks:
            key = self._cold.popitem(last=False)[0]
            self.evicted = (key,)
            if key in self._stack:
                self._ghosts[key] = None

    def _prune(self) -> None:
        """What is asked for longest ago in the stack is hot."""
        stack = self._stack
        while len(stack) > 1:
            key = next(iter(stack))
            if stack[key]:
                return
            del stack[key]
            self._ghosts.pop(key, None)


MIN_BLOCKS = 20
"""Below that, parts of these policies have no room."""
SHADOWS: tuple[type[Shadow], ...] = (MqShadow, LirsShadow)
