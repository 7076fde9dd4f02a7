"""The worker's side: blocks from the pool into vLLM's KV tensors in time, and computed ones back."""

from __future__ import annotations

import logging
import threading
from concurrent.futures import CancelledError, Future, wait
from typing import TYPE_CHECKING

from engines.vllm.memory import KvMemory
from hostlib.engine import Item

if TYPE_CHECKING:
    from collections.abc import Callable

    import torch

    from engines.vllm.jobs import BlockRun, Jobs
    from engines.vllm.space import Layout
    from hostlib.engine import BlockingPool

IDLE_WAIT_S = 0.005
"""Where nothing can be computed, a step waits so long for a load instead of asking in circles."""
CLOSING_S = 5.0
"""For what is still to be stored when the engine ends."""

_log = logging.getLogger("weir")


class _Load:
    """Blocks of one request on their way: all first objects, then all second ones, and so on."""

    def __init__(
        self, run: BlockRun, memory: KvMemory, pool: BlockingPool, recompute_ms: int, rank: int
    ) -> None:
        self.failed: set[int] = set()
        """Ids of blocks that did not arrive."""
        self._memory = memory
        self._places: list[tuple[int, int, torch.Tensor]] = []
        objects = len(pool.space.object_bytes)
        self._arrived = [threading.Event() for _ in range(objects)]
        self._missing = [len(run.own_ids)] * objects
        self._writing = threading.Lock()
        self._given_up = False
        items = []
        for index in range(objects):
            references = pool.blocks.references(run.keys, index, recompute_ms, rank)[run.first :]
            for block_id, reference in zip(run.own_ids, references, strict=True):
                content = memory.empty(index)
                self._places.append((block_id, index, content))
                items.append(Item(reference, memoryview(content.numpy())))
        self.future: Future[list[bool]] = pool.begin_load(items, self._on_moved)

    def wait_for(self, index: int) -> None:
        """Until the objects of one group of layers are there, or known to fail."""
        self._arrived[index].wait()

    def give_up(self) -> None:
        """Nothing is written into the engine's memory any more."""
        with self._writing:
            self._given_up = True
        self.future.cancel()

    def _on_moved(self, item: int, arrived: bool) -> None:
        """In the pool's thread: the engine has these blocks reserved for this load, and reads none before."""
        block_id, index, content = self._places[item]
        try:
            with self._writing:
                if arrived and not self._given_up:
                    self._memory.write(block_id, index, content)
                else:
                    self.failed.add(block_id)
        except Exception:
            _log.exception("Block %d could not be put into the engine's memory.", block_id)
            self.failed.add(block_id)
        finally:
            self._missing[index] -= 1
            if not self._missing[index]:
                self._arrived[index].set()


class WorkerSide:
    """See the module."""

    def __init__(
        self,
        pool: BlockingPool,
        layout: Layout,
        background: bool,
        recompute_ms: int,
        of_all_ranks: Callable[[set[int]], set[int]] = lambda blocks: blocks,
    ) -> None:
        """`of_all_ranks` is called on all ranks at once, and gives each the union of what they have."""
        self._pool, self._layout, self._recompute_ms = pool, layout, recompute_ms
        self._background, self._of_all_ranks = background, of_all_ranks
        self._group_of = {name: index for index, names in enumerate(layout.groups) for name in names}
        self._memory: KvMemory | None = None
        self._loads: dict[str, _Load] = {}
        self._stores: set[Future[int]] = set()
        self._failed: set[int] = set()
        self._damaged: dict[int, int] = {}
        """Blocks that failed to load on any rank, with the report that says so: until the scheduler has acted
        on it, what is computed is wrong. Not of those loaded in the background: vLLM computes nothing on
        them before it knows."""
        self._reports = 0

    def register(self, kv_caches: dict[str, torch.Tensor]) -> None:
        """vLLM's KV tensors, by layer."""
        self._memory = KvMemory(self._layout, kv_caches)

    def start_loads(self, jobs: Jobs) -> None:
        """Begin to fetch what the scheduler wants loaded."""
        assert self._memory is not None
        self._damaged = {
            block_id: report for block_id, report in self._damaged.items() if report > jobs.failures_seen
        }
        for run in jobs.loads:
            self._loads[run.request_id] = _Load(
                run, self._memory, self._pool, self._recompute_ms, self._layout.rank
            )

    def wait_for_layer(self, layer_name: str) -> None:
        """Before a layer's attention: what this forward pass needs of it has arrived, or failed."""
        if not self._background:
            for load in self._loads.values():
                load.wait_for(self._group_of.get(layer_name, 0))

    def store(self, jobs: Jobs) -> None:
        """After the forward pass: copy the blocks that it completed, and send them while the engine goes on.

        All layers at once and not in `save_kv_layer`: on a CPU the copies take a few milliseconds.
        """
        assert self._memory is not None
        if not self._background and self._loads:
            # Ranks exchange what they compute, so a block that one lacks spoils what all of them store.
            self._failed |= self._of_all_ranks(self._end_loads(set(self._loads)))
            self._damaged.update(dict.fromkeys(self._failed, self._reports + 1))
        for run in jobs.stores:
            if not self._damaged.keys().isdisjoint(run.block_ids):
                continue  # computed from what did not arrive; the scheduler will have it computed again
            objects: list[list[Item]] = [[] for _ in run.own_ids]
            for index in range(len(self._layout.groups)):
                named = self._pool.blocks.references(run.keys, index, self._recompute_ms, self._layout.rank)
                references = named[run.first :]
                for block_id, reference, items in zip(run.own_ids, references, objects, strict=True):
                    content = self._memory.read(block_id, index)
                    items.append(Item(reference, memoryview(content.numpy())))
            future = self._pool.begin_store_blocks(objects)
            self._stores.add(future)
            future.add_done_callback(self._stores.discard)

    def finished_loads(self, aborted: set[str], jobs: Jobs) -> set[str]:
        """Requests whose loading in the background is over; those `aborted` are given up."""
        for request_id in aborted & self._loads.keys():
            self._loads[request_id].give_up()
        waiting = {load.future for load in self._loads.values()}
        if waiting:
            wait(waiting, 0.0 if jobs.computes else IDLE_WAIT_S, return_when="FIRST_COMPLETED")
        done = {request_id for request_id, load in self._loads.items() if load.future.done()}
        self._failed |= self._end_loads(done)
        return done

    def take_failed_blocks(self) -> set[int]:
        """Ids of blocks that could not be loaded since the last call."""
        failed, self._failed = self._failed, set()
        self._reports += bool(failed)
        return failed

    def close(self) -> None:
        """Give up loads; what was computed last is stored if that is quick."""
        for load in self._loads.values():
            load.give_up()
        self._loads.clear()
        wait(set(self._stores), CLOSING_S)

    def _end_loads(self, request_ids: set[str]) -> set[int]:
        """Ids of blocks that did not arrive."""
        failed: set[int] = set()
        for request_id in request_ids:
            load = self._loads.pop(request_id)
            try:
                load.future.result()
            except CancelledError:  # aborted: nobody reads these blocks
                continue
            failed |= load.failed
        return failed
