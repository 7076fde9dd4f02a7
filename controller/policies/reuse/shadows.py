"""Shadow caches: what the published policies would hold, as keys without blocks.

libcachesim's do not say what they evict, and the pool has to follow: these are the same algorithms, and hit
exactly as often as libcachesim's do where all blocks are alike, which the tests compare. Where they differ in
size each counts as that, and as many leave as make room.

Three beside the learned value: MQ leads where popularity lasts, LIRS where most is asked for once, ARC where
what is recent counts. LRU, S3-FIFO and LFU with ageing were tried, too: on generated shapes (6,000 requests,
seeds 1 and 2) the best of seven, chosen afterwards, saves under 0.1 % more than the best of these four."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Iterator
from typing import ClassVar

from controller.policies.events import Key


class Shadow(ABC):
    """A cache of keys that admits whatever is asked for."""

    name: ClassVar[str]

    def __init__(self, capacity: int) -> None:
        """Capacity and sizes have the same unit; by default a block is 1."""
        self.capacity = capacity
        self.evicted: list[Key] = []
        """What the last `ask` pushed out."""
        self._asked_for: Key | None = None
        self._sizes: dict[Key, int] = {}
        """Of what is held or remembered, where it is not 1."""

    def ask(self, key: Key, size: int = 1) -> bool:
        """Ask for a block, which it then holds; whether it held it already.

        The size counts when it is first heard of, until it is forgotten.
        """
        self.evicted, self._asked_for = [], key
        if size != 1:
            self._sizes.setdefault(key, size)
        return self._ask(key)

    def resize(self, capacity: int) -> None:
        """From now on it has so much room; what is too much leaves with what is asked for."""
        self.capacity = capacity

    @abstractmethod
    def _ask(self, key: Key) -> bool:
        """As `ask`."""

    @abstractmethod
    def __contains__(self, key: object) -> bool:
        """Whether it holds the block."""

    @abstractmethod
    def __iter__(self) -> Iterator[Key]:
        """What it holds."""

    def _size(self, key: Key) -> int:
        return self._sizes.get(key, 1)

    def _forgotten(self, key: Key) -> None:
        if key != self._asked_for:
            self._sizes.pop(key, None)


class Queue(OrderedDict[Key, int]):
    """Keys in order, each with a number, and the sizes of all in sum; the first is the next to leave."""

    def __init__(self, shadow: Shadow) -> None:
        super().__init__()
        self.total = 0
        self._size_of = shadow._size

    def add(self, key: Key, number: int = 0) -> None:
        """Behind all others."""
        self[key] = number
        self.total += self._size_of(key)

    def cut(self, key: Key) -> int:
        """Out of the queue; its number."""
        self.total -= self._size_of(key)
        return self.pop(key)

    @property
    def head(self) -> Key:
        """The first; the queue is not empty."""
        return next(iter(self))


MQ_QUEUES = 8
MQ_LIFETIME = 10_000
MQ_GHOSTS = 4
"""Multi-Queue's parameters, as libcachesim has them: ghosts per slot, lifetime in accesses."""


class MqShadow(Shadow):
    """Multi-Queue (Zhou, Philbin and Li, USENIX 2001): LRU queues by log2 of the count, which ghosts keep."""

    name = "mq"

    def __init__(self, capacity: int) -> None:
        super().__init__(capacity)
        self._queues = [Queue(self) for _ in range(MQ_QUEUES)]
        """By key, when the block leaves for the queue below, if not asked for until then."""
        self._counts: dict[Key, int] = {}
        self._places: dict[Key, Queue] = {}
        """The queue that each block is in."""
        self._used = 0
        self._ghosts = Queue(self)
        """Counts of what it evicted."""
        self._now = 0
        self._due = 0
        """Until then no queue's head can be out of its lifetime."""

    def __contains__(self, key: object) -> bool:
        return key in self._places

    def __iter__(self) -> Iterator[Key]:
        return iter(self._places)

    def _ask(self, key: Key) -> bool:
        self._now = now = self._now + 1
        places = self._places
        queue = places.get(key)
        if queue is not None:
            count = self._counts[key] = self._counts[key] + 1
            queue.cut(key)
        else:
            size = self._size(key)
            while self._used + size > self.capacity and places:
                self._evict()
            count = self._counts[key] = (self._ghosts.cut(key) if key in self._ghosts else 0) + 1
            self._used += size
        level = count.bit_length() - 1
        new = places[key] = self._queues[level if level < MQ_QUEUES else MQ_QUEUES - 1]
        new.add(key, now + MQ_LIFETIME)
        if now > self._due:
            self._adjust(now)
        return queue is not None

    def _adjust(self, now: int) -> None:
        """Move what was not asked for in its lifetime down, at most one block of each queue."""
        below = self._queues[0]
        for queue in self._queues[1:]:
            if queue:
                head = queue.head
                if queue[head] < now:
                    queue.cut(head)
                    below.add(head, now + MQ_LIFETIME)
                    self._places[head] = below
            below = queue
        self._due = min((queue[queue.head] for queue in self._queues[1:] if queue), default=now + MQ_LIFETIME)

    def _evict(self) -> None:
        queue = next(queue for queue in self._queues if queue)
        key = queue.head
        queue.cut(key)
        size = self._size(key)
        self.evicted.append(key)
        self._used -= size
        del self._places[key]
        ghosts = self._ghosts
        while ghosts.total + size > MQ_GHOSTS * self.capacity and ghosts:
            forgotten = ghosts.head
            ghosts.cut(forgotten)
            self._forgotten(forgotten)
        ghosts.add(key, self._counts.pop(key))


LIRS_COLD = 100
"""One in so many slots is for blocks of long recency, as libcachesim has it."""
LIRS_MIN_COLD_BLOCKS = 2
"""With one, libcachesim hits blocks that it has evicted."""
LIRS_STACK = 2
"""Keys a slot that the stack remembers."""


class LirsShadow(Shadow):
    """LIRS (Jiang and Zhang, SIGMETRICS'02): most of the room for blocks whose last two uses were near."""

    name = "lirs"

    def __init__(self, capacity: int, largest: int = 1) -> None:
        """There is room for two of the largest blocks among the cold ones."""
        super().__init__(capacity)
        self._largest = largest
        self.resize(capacity)
        self._hot = 0
        """Size of the hot blocks in the stack; they are all there."""
        self._stack = Queue(self)
        """Whether hot, by key, what was asked for longest ago first."""
        self._cold = Queue(self)
        """Cold blocks that it holds, in the stack or not."""
        self._ghosts = Queue(self)
        """Cold blocks in the stack that it does not hold, in the order in which they were evicted."""

    def resize(self, capacity: int) -> None:
        super().resize(capacity)
        self._cold_room = max(LIRS_MIN_COLD_BLOCKS * self._largest, capacity // LIRS_COLD)
        self._hot_room = capacity - self._cold_room

    def __contains__(self, key: object) -> bool:
        return key in self._cold or bool(self._stack.get(key, 0))  # type: ignore[call-overload]

    def __iter__(self) -> Iterator[Key]:
        yield from (key for key, is_hot in self._stack.items() if is_hot)
        yield from self._cold

    def _ask(self, key: Key) -> bool:
        stack, cold = self._stack, self._cold
        is_hot = stack.get(key)
        if is_hot is None:
            had = self._ask_unstacked(key)
        else:
            stack.move_to_end(key)
            had = bool(is_hot) or key in cold
            if is_hot:
                self._prune()
            else:
                self._warm(key, had)
        ghosts = self._ghosts
        while stack.total > LIRS_STACK * self.capacity and ghosts:
            ghost = ghosts.head
            ghosts.cut(ghost)
            stack.cut(ghost)
            self._forgotten(ghost)
        return had

    def _warm(self, key: Key, had: bool) -> None:
        """A cold block that is in the stack becomes a hot one."""
        if had:
            self._cold.cut(key)
        elif key in self._ghosts:
            self._ghosts.cut(key)
        stack, size = self._stack, self._size(key)
        while self._hot + size > self._hot_room and stack[stack.head]:
            self._cool()
        if key in stack:
            stack[key] = 1
        else:
            stack.add(key, 1)
        self._hot += size

    def _ask_unstacked(self, key: Key) -> bool:
        cold, size = self._cold, self._size(key)
        had = key in cold
        if had:
            cold.move_to_end(key)
            if self._hot + size > self._hot_room and self._stack:
                self._cool()
        elif self._hot + size <= self._hot_room:
            self._hot += size
            self._stack.add(key, 1)
            return False
        else:
            self._make_room(size)
            cold.add(key)
        self._stack.add(key)
        return had

    def _cool(self) -> None:
        """The hot block asked for longest ago becomes a cold one."""
        key = self._stack.head
        self._stack.cut(key)
        size = self._size(key)
        self._hot -= size
        self._make_room(size)
        self._cold.add(key)
        self._prune()

    def _make_room(self, size: int) -> None:
        """Evict the oldest cold blocks, if there is no room for another."""
        cold = self._cold
        while cold.total + size > self._cold_room and cold:
            key = cold.head
            cold.cut(key)
            self.evicted.append(key)
            if key in self._stack:
                self._ghosts.add(key)
            else:
                self._forgotten(key)

    def _prune(self) -> None:
        """What is asked for longest ago in the stack is hot."""
        stack = self._stack
        while len(stack) > 1:
            key = stack.head
            if stack[key]:
                return
            stack.cut(key)
            if key in self._ghosts:
                self._ghosts.cut(key)
                self._forgotten(key)


class ArcShadow(Shadow):
    """ARC (Megiddo and Modha, FAST'03): what was asked for once, and what more often, as ghosts divide it."""

    name = "arc"

    def __init__(self, capacity: int) -> None:
        super().__init__(capacity)
        self._once, self._often = Queue(self), Queue(self)
        self._gone = (Queue(self), Queue(self))
        """What left either."""
        self._wanted = 0.0
        """Room for what was asked for once."""

    def resize(self, capacity: int) -> None:
        super().resize(capacity)
        self._wanted = min(self._wanted, float(capacity))

    def __contains__(self, key: object) -> bool:
        return key in self._once or key in self._often

    def __iter__(self) -> Iterator[Key]:
        yield from self._once
        yield from self._often

    def _ask(self, key: Key) -> bool:
        once, often, size = self._once, self._often, self._size(key)
        for queue in (once, often):
            if key in queue:
                queue.cut(key)
                often.add(key)
                return True
        gone_once, gone_often = self._gone
        if key in gone_once or key in gone_often:
            self._adapt(key, size)
        else:
            self._make_room_for_new(size)
            once.add(key)
        return False

    def _adapt(self, key: Key, size: int) -> None:
        """A ghost is asked for: there should be more room for its like."""
        gone_once, gone_often = self._gone
        was_often = key in gone_often
        mine, other = (gone_often, gone_once) if was_often else (gone_once, gone_often)
        step = max(1.0, other.total / mine.total) * size
        self._wanted = (
            max(0.0, self._wanted - step) if was_often else min(float(self.capacity), self._wanted + step)
        )
        self._make_room(size, was_often)
        mine.cut(key)
        self._often.add(key)

    def _make_room_for_new(self, size: int) -> None:
        gone_once, gone_often = self._gone
        if self._once.total + gone_once.total + size > self.capacity:
            if self._once.total + size <= self.capacity:
                self._forget_first(gone_once)
            elif self._once:
                self.evicted.append(self._once.head)
                self._forget_first(self._once)
        elif self._held + gone_once.total + gone_often.total + size > 2 * self.capacity:
            self._forget_first(gone_often)
        self._make_room(size, was_often=False)

    @property
    def _held(self) -> int:
        return self._once.total + self._often.total

    def _make_room(self, size: int, was_often: bool) -> None:
        once, often = self._once, self._often
        while self._held + size > self.capacity and (once or often):
            once_first = once.total > self._wanted or (was_often and once.total == self._wanted) or not often
            side = 0 if once and once_first else 1
            queue = (once, often)[side]
            key = queue.head
            queue.cut(key)
            self._gone[side].add(key)
            self.evicted.append(key)

    def _forget_first(self, queue: Queue) -> None:
        if queue:
            key = queue.head
            queue.cut(key)
            self._forgotten(key)


MIN_BLOCKS = 20
"""Below that, parts of these policies have no room."""


EXPERTS = ("learned", MqShadow.name, LirsShadow.name, ArcShadow.name)
"""All experts, in the order of their bits."""


def make_shadows(capacity: int, largest: int = 1) -> list[Shadow]:
    """One of each, of the same capacity."""
    return [MqShadow(capacity), LirsShadow(capacity, largest), ArcShadow(capacity)]
