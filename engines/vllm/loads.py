"""Blocks of one request on their way from the pool into the engine's memory."""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING

from hostlib.engine import Item

if TYPE_CHECKING:
    from concurrent.futures import Future

    from engines.vllm.jobs import BlockRun
    from engines.vllm.memory import BlockMemory
    from hostlib.engine import BlockingPool

_log = logging.getLogger("weir")


class Load:
    """Load of one run of blocks: all first objects of the blocks are fetched, then all second ones, and so
    on.

    Nothing here raises. Whatever goes wrong, the blocks that did not arrive whole are known when the load is
    over.
    """

    def __init__(
        self,
        run: BlockRun,
        memory: BlockMemory,
        pool: BlockingPool,
        rank: int,
        recompute_ms: int,
        patience_s: float,
    ) -> None:
        """Make a load. A pool that does not say within `patience_s` what has arrived has failed."""
        self.future: Future[list[bool]] | None = None
        """Done when all objects have arrived or failed; None if nothing was asked for."""
        self.block_ids = frozenset(run.block_ids)
        self.was_silent = False
        """Whether nothing was heard of it in time."""
        objects = len(pool.space.object_bytes)
        self._memory, self._deadline_s = memory, time.monotonic() + patience_s
        self._places: list[tuple[int, int, memoryview]] = []
        self._lacking = dict.fromkeys(run.block_ids, objects)
        """Number of objects that each block still lacks."""
        self._unmoved = [len(run.block_ids)] * objects
        self._settled = [threading.Event() for _ in range(objects)]
        self._writing = threading.Lock()
        self._given_up = False
        try:
            self._begin(run, pool, rank, recompute_ms)
        except Exception:
            _log.exception("%d blocks can't be loaded: they are computed.", len(run.block_ids))
            self.give_up()

    @property
    def is_over(self) -> bool:
        """Return whether nothing is written into the engine's memory any more."""
        if time.monotonic() > self._deadline_s and not all(event.is_set() for event in self._settled):
            self._on_silence()
        return all(event.is_set() for event in self._settled)

    def wait_for(self, index: int) -> None:
        """Wait until the objects of one group of layers are there, or known to fail."""
        if not self._settled[index].wait(max(0.0, self._deadline_s - time.monotonic())):
            self._on_silence()

    def finish(self) -> set[int]:
        """Wait until the load is over, and return the ids of the blocks that did not arrive whole."""
        for index in range(len(self._settled)):
            self.wait_for(index)
        with self._writing:
            return {block_id for block_id, objects in self._lacking.items() if objects}

    def give_up(self) -> None:
        """Write nothing into the engine's memory any more."""
        with self._writing:
            self._given_up = True
        if self.future is not None:
            self.future.cancel()
        for event in self._settled:
            event.set()

    def void(self) -> None:
        """Give up, and count all blocks as not arrived, also those that are there."""
        self.give_up()
        with self._writing:
            self._lacking = dict.fromkeys(self._lacking, 1)

    def _begin(self, run: BlockRun, pool: BlockingPool, rank: int, recompute_ms: int) -> None:
        if not run.keys:
            self.give_up()
            return
        items = []
        for index in range(len(self._settled)):
            references = pool.blocks.run_references(
                run.keys, index, recompute_ms, rank, first=run.first, parent=run.parent
            )
            for block_id, reference in zip(run.block_ids, references, strict=True):
                content = self._memory.empty(index)
                self._places.append((block_id, index, content))
                items.append(Item(reference, content))
        self.future = pool.begin_load(items, self._on_moved)
        self.future.add_done_callback(self._on_end)

    def _on_moved(self, item: int, arrived: bool) -> None:
        """Write an object into the engine's memory, in the pool's thread.

        The engine has these blocks reserved for this load, and reads none before.
        """
        block_id, index, content = self._places[item]
        try:
            with self._writing:
                if arrived and not self._given_up:
                    self._memory.write(block_id, index, content)
                    self._lacking[block_id] -= 1
        except Exception:
            _log.exception("Block %d could not be put into the engine's memory.", block_id)
        finally:
            self._unmoved[index] -= 1
            if not self._unmoved[index]:
                self._settled[index].set()

    def _on_end(self, future: Future[list[bool]]) -> None:
        """Settle a load that ended early, as with an error of the client: it moves nothing more."""
        if not future.cancelled() and future.exception() is not None:
            _log.error("A load failed, and its blocks are computed: %s", future.exception())
        self.give_up()

    def _on_silence(self) -> None:
        _log.error("The pool's client does not say what has arrived: the blocks are computed.")
        self.was_silent = True
        self.give_up()
