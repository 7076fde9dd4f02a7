"""Computed blocks on their way to the pool.

A block is copied out of the engine's memory when the pool has room for it, which may be some steps after it
was computed. Until then the engine's memory is its only copy. Before the engine gives a block to another
request, it takes the block back here, and the block is not stored. Blocks of a step that is not settled are
offered when the scheduler has decided about the step.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING

from engines.vllm.jobs import Refusal
from hostlib.engine import Item

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from concurrent.futures import Future

    from engines.vllm.jobs import BlockRun
    from engines.vllm.memory import BlockMemory
    from hostlib.engine import BlockingPool
    from hostlib.protocol.transfer import BlockRef

RUN_BLOCKS = 64
"""Most blocks that are offered to the pool together: if one is refused, those behind it are not stored."""

MAX_REFUSALS = 4096
"""Most refusals that wait to be reported."""
MAX_STORED = 16_384
"""Most blocks that were stored and wait to be reported."""

_log = logging.getLogger("weir")


class _Reader:
    """Copies one block when the pool has room for it."""

    def __init__(self, outbox: Outbox, block_id: int, references: Sequence[BlockRef]) -> None:
        """Make it; `references` name the block's objects in order."""
        self.block_id, self.references = block_id, references
        self._outbox = outbox

    def __call__(self) -> list[Item] | None:
        return self._outbox.read(self)


class Outbox:
    """See the module. `read` is called in the pool's thread as well."""

    def __init__(
        self,
        pool: BlockingPool,
        memory: BlockMemory,
        rank: int,
        recompute_ms: int,
        *,
        reads_later: bool,
        notes_stored: bool = False,
    ) -> None:
        """Make an outbox. `reads_later` says whether blocks may be read while the engine goes on,
        `notes_stored` whether somebody takes note of those that were stored."""
        self._pool, self._memory, self._rank, self._recompute_ms = pool, memory, rank, recompute_ms
        self._reads_later = reads_later
        self._unsettled: dict[int, list[tuple[BlockRun, list[_Reader]]]] = {}
        self._unread: dict[int, set[_Reader]] = {}
        """Readers that have not copied their block yet, by the block's id."""
        self._reading = threading.Lock()
        self._sending: set[Future[int]] = set()
        self._refusals: deque[Refusal] = deque(maxlen=MAX_REFUSALS)
        self._stored: deque[bytes] | None = deque(maxlen=MAX_STORED) if notes_stored else None
        self._has_said_failure = False

    def take_back(self, block_ids: Iterable[int]) -> None:
        """Take back blocks that the engine is about to write to. When this returns, nobody reads them any
        more."""
        if not self._unread:
            return
        with self._reading:
            for block_id in block_ids:
                self._unread.pop(block_id, None)

    def drop_waiting(self) -> None:
        """Store nothing of what has not been copied yet."""
        with self._reading:
            self._unread.clear()
        self._unsettled.clear()

    def decide(self, settled: int, dropped: Iterable[int]) -> None:
        """Offer the blocks of the steps up to `settled`, but not of those that were dropped."""
        for step in dropped:
            for _, readers in self._unsettled.pop(step, ()):
                self._forget(readers)
        for step in [step for step in self._unsettled if step <= settled]:
            for run, readers in self._unsettled.pop(step):
                self._offer(run, readers)

    def store(self, step: int, runs: Iterable[BlockRun], *, is_sure: bool) -> None:
        """Offer blocks that a step has computed, or keep them until the step is settled."""
        for whole_run in runs:
            for start in range(0, len(whole_run.keys), RUN_BLOCKS):
                run = whole_run.part(start, start + RUN_BLOCKS)
                readers = self._readers(run)
                if is_sure:
                    self._offer(run, readers)
                else:
                    self._unsettled.setdefault(step, []).append((run, readers))

    def read(self, reader: _Reader) -> list[Item] | None:
        """Copy a block, unless the engine has taken it back or it holds what is no number."""
        items = []
        with self._reading:
            if reader not in self._unread.get(reader.block_id, ()):
                return None
            self._forget_reader(reader)
            for index, reference in enumerate(reader.references):
                content = self._memory.read(reader.block_id, index)
                if content is None:
                    return None
                items.append(Item(reference, content))
        return items

    def take_refusals(self) -> list[Refusal]:
        """Return the blocks that turned out not to be stored since the last call."""
        return [self._refusals.popleft() for _ in range(len(self._refusals))]

    def take_stored(self) -> list[bytes]:
        """Return the keys of the blocks that were stored since the last call, if these are noted."""
        if self._stored is None:
            return []
        return [self._stored.popleft() for _ in range(len(self._stored))]

    def close(self, patience_s: float) -> None:
        """Wait until what was offered is stored, so long at most. Afterwards nothing is read any more."""
        deadline_s = time.monotonic() + patience_s
        for future in list(self._sending):
            try:
                future.exception(max(0.0, deadline_s - time.monotonic()))
            except (TimeoutError, CancelledError):
                break
        self.drop_waiting()

    def _readers(self, run: BlockRun) -> list[_Reader]:
        by_index = [
            self._pool.blocks.run_references(
                run.keys, index, self._recompute_ms, self._rank, first=run.first, parent=run.parent
            )
            for index in range(len(self._pool.space.object_bytes))
        ]
        readers = []
        with self._reading:
            for block_id, *references in zip(run.block_ids, *by_index, strict=True):
                reader = _Reader(self, block_id, references)
                self._unread.setdefault(block_id, set()).add(reader)
                readers.append(reader)
        return readers

    def _offer(self, run: BlockRun, readers: list[_Reader]) -> None:
        try:
            future = self._pool.begin_store_blocks(readers)
        except Exception:
            if not self._has_said_failure:
                self._has_said_failure = True
                _log.warning("Blocks can't be offered to the pool, and are not stored.", exc_info=True)
            self._refuse(run, 0)
            self._forget(readers)
            return
        if not self._reads_later:
            self._forget(readers)
        self._sending.add(future)
        future.add_done_callback(lambda done: self._on_end(run, readers, done))

    def _on_end(self, run: BlockRun, readers: list[_Reader], future: Future[int]) -> None:
        """Handle the end of a store, also in the pool's thread."""
        self._sending.discard(future)
        failed = future.cancelled() or future.exception() is not None
        held = 0 if failed else future.result()
        if self._stored is not None:
            self._stored.extend(run.keys[:held])
        if held < len(run.keys):
            self._refuse(run, held)
            self._forget(readers)

    def _refuse(self, run: BlockRun, held: int) -> None:
        rest = run.part(held, len(run.keys))
        self._refusals.append(Refusal(rest.request_id, rest.first, rest.keys))

    def _forget(self, readers: list[_Reader]) -> None:
        with self._reading:
            for reader in readers:
                self._forget_reader(reader)

    def _forget_reader(self, reader: _Reader) -> None:
        unread = self._unread.get(reader.block_id)
        if unread is not None:
            unread.discard(reader)
            if not unread:
                del self._unread[reader.block_id]
