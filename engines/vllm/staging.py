"""Copies of computed blocks on their way to the pool, bounded by `waiting_bytes`.

Copies of a step that is not settled stay here until the scheduler has decided about it. A step's blocks are copied
one after the other while there is room. Where there is none, the step waits for the pool to take earlier copies, for
a small part of the time that it computed; what has no room then is refused.
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engines.vllm.jobs import Refusal
from engines.vllm.references import run_references
from hostlib.engine import Item

if TYPE_CHECKING:
    from collections.abc import Iterable
    from concurrent.futures import Future

    from engines.vllm.jobs import BlockRun
    from engines.vllm.loads import BlockMemory
    from hostlib.engine import BlockingPool

GROUP_BLOCKS = 16
"""Number of blocks that are offered to the pool together."""
WAIT_SHARE = 0.1
"""Longest time that a step waits for room, as a share of the time since the step before."""

_log = logging.getLogger("weir")


@dataclass(slots=True)
class _Group:
    """Copies of neighbouring blocks."""

    run: BlockRun
    objects: list[list[Item]]
    size: int


class Staging:
    """See the module."""

    def __init__(self, pool: BlockingPool, memory: BlockMemory, rank: int, recompute_ms: int) -> None:
        self._pool, self._memory, self._rank, self._recompute_ms = pool, memory, rank, recompute_ms
        self._limit = int(pool.config.waiting_bytes)
        self._size = 0
        """Bytes of all copies."""
        self._sending = 0
        """Groups that were offered to the pool and are not done."""
        self._changed = threading.Condition()
        self._unsettled: dict[int, list[_Group]] = {}
        self._refusals: list[Refusal] = []
        self._said: set[str] = set()
        self._stepped_s = time.monotonic()

    def decide(self, settled: int, dropped: Iterable[int]) -> None:
        """Send the copies of the steps up to `settled`, but for those that were dropped."""
        for step in dropped:
            for group in self._unsettled.pop(step, ()):
                self._release(group.size)
        for step in [step for step in self._unsettled if step <= settled]:
            for group in self._unsettled.pop(step):
                self._send(group)

    def store(self, step: int, runs: Iterable[BlockRun], *, is_sure: bool) -> None:
        """Copy the blocks that a step has computed, and send the copies if the step is sure."""
        now_s = time.monotonic()
        deadline_s = now_s + WAIT_SHARE * (now_s - self._stepped_s)
        for run in runs:
            for start in range(0, len(run.keys), GROUP_BLOCKS):
                group = self._copied(run.part(start, start + GROUP_BLOCKS), deadline_s)
                if group is None:
                    continue
                if is_sure:
                    self._send(group)
                else:
                    self._unsettled.setdefault(step, []).append(group)
        self._stepped_s = time.monotonic()

    def take_refusals(self) -> list[Refusal]:
        """Blocks that turned out not to be stored since the last call."""
        with self._changed:
            refusals, self._refusals = self._refusals, []
        return refusals

    def close(self, patience_s: float) -> None:
        """Wait until what was sent is done, so long at most; what is not settled is not stored."""
        self._unsettled.clear()
        with self._changed:
            self._changed.wait_for(lambda: not self._sending, patience_s)

    def _copied(self, run: BlockRun, deadline_s: float) -> _Group | None:
        """Copies of the blocks that have room, from the first one on; the others are refused."""
        block_bytes = self._pool.space.block_bytes
        blocks = 0
        while blocks < len(run.keys) and self._has_room(block_bytes, deadline_s):
            blocks += 1
        if blocks < len(run.keys):
            self._refuse(run.part(blocks, len(run.keys)))
        if not blocks:
            return None
        taken, size = run.part(0, blocks), blocks * block_bytes
        try:
            return _Group(taken, self._objects(taken), size)
        except Exception:
            self._say("Blocks can't be copied out of the engine's memory, and are not stored.", exception=True)
            self._release(size)
            self._refuse(taken)
            return None

    def _objects(self, run: BlockRun) -> list[list[Item]]:
        """Copies of the objects of each block."""
        objects: list[list[Item]] = [[] for _ in run.keys]
        for index in range(len(self._pool.space.object_bytes)):
            references = run_references(self._pool, run, index, self._rank, self._recompute_ms)
            for block_id, reference, items in zip(run.block_ids, references, objects, strict=True):
                items.append(Item(reference, self._memory.read(block_id, index)))
        return objects

    def _has_room(self, size: int, deadline_s: float) -> bool:
        """Reserve room for one block, if there is any before the deadline and the pool answers."""
        with self._changed:
            while self._pool.is_answering:
                if self._size + size <= self._limit:
                    self._size += size
                    return True
                left_s = deadline_s - time.monotonic()
                if left_s <= 0 or not self._sending:
                    self._say(
                        f"Not all computed blocks are stored: copies that the pool has not received yet take the "
                        f"{self._limit} bytes of 'waiting_bytes'. Set it to more to store more of a long prompt."
                    )
                    return False
                self._changed.wait(left_s)
            return False

    def _send(self, group: _Group) -> None:
        with self._changed:
            self._sending += 1
        try:
            future = self._pool.begin_store_blocks(group.objects)
        except Exception:
            self._say("Blocks can't be offered to the pool, and are not stored.", exception=True)
            self._on_sent(group, are_held=False)
            return
        future.add_done_callback(lambda done: self._on_sent(group, are_held=_all_held(done, group)))

    def _on_sent(self, group: _Group, *, are_held: bool) -> None:
        """Also in the pool's thread."""
        if not are_held:
            self._refuse(group.run)
        with self._changed:
            self._sending -= 1
        self._release(group.size)

    def _release(self, size: int) -> None:
        with self._changed:
            self._size -= size
            self._changed.notify_all()

    def _refuse(self, run: BlockRun) -> None:
        with self._changed:
            self._refusals.append(Refusal(run.request_id, run.first, run.keys))

    def _say(self, text: str, *, exception: bool = False) -> None:
        """Log each message once."""
        if text not in self._said:
            self._said.add(text)
            _log.warning(text, exc_info=exception)


def _all_held(stored: Future[int], group: _Group) -> bool:
    failed = stored.cancelled() or stored.exception() is not None
    return not failed and stored.result() == len(group.objects)
