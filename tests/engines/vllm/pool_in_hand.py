"""A pool whose every answer a test decides: what is there, what fails, when something happens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from hostlib.engine import Item, KvSpace, PoolConfig
from hostlib.engine.pool import KvPool
from hostlib.protocol.seal import PUBLIC_SECRET, Seal

OnMoved = Callable[[int, bool], None]
SPACE = KvSpace(
    name="m",
    model="weights:1",
    layout="l",
    dtype="uint8",
    block_tokens=4,
    object_bytes=(8, 8),
    tensor_parallel=1,
)


class PoolInHand:
    """What scheduler and worker need of `BlockingPool`. Shared by all ranks."""

    def __init__(self, space: KvSpace = SPACE) -> None:
        self.space, self.seal = space, Seal(0, PUBLIC_SECRET)
        self.config = PoolConfig.from_mapping({"address": "10.0.0.1", "homes": ["10.0.0.2"]})
        self.blocks = KvPool(None, self.config, self.seal, space)  # type: ignore[arg-type] # names objects
        self.is_answering = True
        self.objects: dict[bytes, bytes] = {}
        self.broken: set[bytes] = set()
        """Keys of objects that are found and can't be loaded."""
        self.has_room = True
        """Whether offered blocks are read at once."""
        self.answers_at_once = True
        self.waiting: list[Callable[[], None]] = []
        """What happens when the test says so."""
        self.questions = 0
        self.offered_blocks = 0
        self.failed: list[bytes] = []
        self.retained: list[tuple[list[bytes], int]] = []

    def happen(self) -> None:
        """Let all that waits happen."""
        while self.waiting:
            self.waiting.pop(0)()

    def holds(self, block_key: bytes) -> bool:
        """Whether the last object of a block is there, of every rank."""
        last, ranks = len(self.space.object_bytes) - 1, range(self.space.tensor_parallel)
        return all(self.space.object_key(self.seal, block_key, last, rank) in self.objects for rank in ranks)

    def begin_exists(self, block_keys: Sequence[bytes], first: int = 0) -> Future[int]:
        self.questions += 1
        keys = block_keys[first:]

        def count() -> int:
            return next((number for number, key in enumerate(keys) if not self.holds(key)), len(keys))

        return self._later(count)

    def begin_load(self, items: Sequence[Item], on_moved: OnMoved) -> Future[list[bool]]:
        def load() -> list[bool]:
            arrived = []
            for number, item in enumerate(items):
                content = None if item.block.key in self.broken else self.objects.get(item.block.key)
                if content is not None:
                    memoryview(item.buffer)[:] = content
                on_moved(number, content is not None)
                arrived.append(content is not None)
            return arrived

        return self._later(load)

    def begin_store_blocks(self, blocks: Sequence[Callable[[], list[Item] | None]]) -> Future[int]:
        self.offered_blocks += len(blocks)

        def store() -> int:
            for number, block in enumerate(blocks):
                items = block() if self.is_answering else None
                if items is None:
                    return number
                for item in items:
                    self.objects.setdefault(item.block.key, bytes(item.buffer))
                    self.broken.discard(item.block.key)
            return len(blocks)

        return self._later(store, at_once=self.has_room)

    def begin_retain(self, block_keys: Sequence[bytes], seconds: int) -> Future[int]:
        self.retained.append((list(block_keys), seconds))
        return self._later(lambda: len(block_keys))

    def failed_to_load(self, block_keys: Sequence[bytes]) -> None:
        self.failed += block_keys

    def _later(self, work: Callable[[], Any], *, at_once: bool | None = None) -> Future[Any]:
        future: Future[Any] = Future()

        def run() -> None:
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(work())
                except Exception as error:
                    future.set_exception(error)

        if self.answers_at_once if at_once is None else at_once:
            run()
        else:
            self.waiting.append(run)
        return future


@dataclass
class BytesMemory:
    """KV memory of one rank: an object of a block is some bytes."""

    object_bytes: tuple[int, ...]
    rank: int = 0
    content: dict[tuple[int, int], bytes] = field(default_factory=dict)
    fails: bool = False
    spoiled: set[tuple[int, int]] = field(default_factory=set)
    """Objects that hold what is no number."""

    def read(self, block_id: int, index: int) -> memoryview | None:
        if self.fails:
            raise RuntimeError("no copy")
        if (block_id, index) in self.spoiled:
            return None
        return memoryview(self.content.get((block_id, index), bytes(self.object_bytes[index])))

    def empty(self, index: int) -> memoryview:
        return memoryview(bytearray(self.object_bytes[index]))

    def write(self, block_id: int, index: int, content: memoryview) -> None:
        if self.fails:
            raise RuntimeError("no copy")
        self.content[block_id, index] = bytes(content)
