"""The worker's side: blocks from the pool into vLLM's KV tensors in time, and computed ones back.

vLLM's runners call a connector in different orders: with speculative decoding, the V1 runner asks for what
has finished and what has failed before it lets the connector store, and others ask after that. So each of
these calls ends the loads of the forward pass itself. Nothing here raises: what fails is computed, or not
stored.

When a step raises an error, the V1 runner lets the connector store all the same, and vLLM's own cache has the
step's blocks as if they had been computed. So nothing of such a step is stored, and if the engine goes on,
the pool is left until that cache is empty.
"""

from __future__ import annotations

import logging
import sys
from concurrent.futures import wait
from dataclasses import replace
from typing import TYPE_CHECKING

from engines.vllm.jobs import Report
from engines.vllm.loads import Load
from engines.vllm.outbox import Outbox

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from engines.vllm.jobs import BlockRun, Jobs
    from engines.vllm.memory import BlockMemory
    from hostlib.engine import BlockingPool

IDLE_WAIT_S = 0.005
"""Longest time that a step waits for a load if the engine can't compute anything."""
LOAD_MARGIN_S = 5.0
"""Seconds above `transfer_timeout_s` after which a load of which nothing is heard has failed."""
CLOSING_S = 5.0
"""Longest time to wait, when the engine ends, for what is still to be stored."""

_log = logging.getLogger("weir")


class WorkerSide:
    """See the module."""

    def __init__(
        self,
        pool: BlockingPool,
        layers: Sequence[Sequence[str]],
        memory: BlockMemory,
        *,
        rank: int,
        background: bool,
        recompute_ms: int = 0,
        is_loaded: Callable[[int, str], bool] = lambda number, name: True,
        reads_later: bool = True,
        notes_stored: bool = False,
    ) -> None:
        """Make it; `layers` are the names of the layers in each object of a block.

        `is_loaded` says whether the engine has loaded the adapter of a number from files with this name.
        `reads_later` says whether blocks may be copied while the engine goes on to compute, `notes_stored`
        whether the scheduler wants to know what was stored.
        """
        self._pool, self._memory, self._rank = pool, memory, rank
        self._background, self._recompute_ms = background, recompute_ms
        self._is_loaded = is_loaded
        self._patience_s = pool.config.transfer_timeout_s + LOAD_MARGIN_S
        self._group_of = {name: index for index, names in enumerate(layers) for name in names}
        self._stores_shard = rank % pool.space.ranks_of_shard == 0
        """Whether this rank stores: of ranks that hold the same KV, the first one does."""
        self._outbox = Outbox(
            pool, memory, rank, recompute_ms, reads_later=reads_later, notes_stored=notes_stored
        )
        self._in_pass: list[Load] = []
        """Loads that this step's forward pass waits for."""
        self._waited: set[int] = set()
        """Groups of layers that this step's forward pass has waited for."""
        self._waits_at_start = False
        """Whether loads are waited for before the forward pass, as the layers do not wait for them."""
        self._loads: dict[str, Load] = {}
        """Loads in the background."""
        self._failed: set[int] = set()
        self._told: dict[str, tuple[int, set[int]]] = {}
        """Requests of which a step said that their loads are over, until the scheduler has heard it: with the
        step, and the blocks that failed."""
        self._untold: dict[str, set[int]] = {}
        """Requests of which the scheduler did not hear it, with the blocks that failed."""
        self._is_silent = False
        """Whether the pool's client was silent in a load: nothing is asked of it any more."""
        self._generation = 0
        """Number of the generation of weights that the scheduler's keys are of, as of the last step."""
        self._left_generation = -1
        """Number of the generation in which the engine's KV may be wrong, or of other weights."""
        self._ended_step = 0
        """Number of the last step that ended without an error."""
        self._former_error = id(None)
        """Identity of the error that the engine's caller was handling already when the step began."""

    def weights_changed(self, reason: str) -> None:
        """Handle other weights that this process gives the model, of which the scheduler may not know."""
        self._leave()

    def adapter_changed(self, name: str) -> None:
        """Do nothing: what is loaded of an adapter is compared with each run of blocks."""

    def begin_step(self, jobs: Jobs) -> None:
        """Begin a step before it writes anything: read no block any more that it may overwrite."""
        self._generation = jobs.generation
        self._former_error = id(sys.exception())
        if jobs.step != self._ended_step + 1:
            self._leave()
        if jobs.drops_waiting:
            self._outbox.drop_waiting()
        for request_id in self._loads.keys() & set(jobs.voids):
            self._loads[request_id].void()
        self._tell_again(jobs)
        self._outbox.take_back(jobs.given)
        self._outbox.decide(jobs.settled, jobs.dropped)

    def start_loads(self, jobs: Jobs) -> None:
        """Begin to fetch what the scheduler wants loaded."""
        self._waited.clear()
        self._failed |= jobs.wrong
        for run in jobs.loads:
            is_possible = self._has_adapter_of(run) and self._uses_pool
            wanted = run if is_possible else replace(run, keys=[])
            load = Load(wanted, self._memory, self._pool, self._rank, self._recompute_ms, self._patience_s)
            if self._background:
                self._loads[run.request_id] = load
            else:
                self._in_pass.append(load)
        if self._waits_at_start:
            for index in set(self._group_of.values()):
                self._wait_for(index)

    def wait_for_layer(self, layer_name: str) -> None:
        """Wait, before a layer's attention, until what this forward pass needs of it has arrived, or
        failed."""
        index = self._group_of.get(layer_name)
        if index is not None:
            self._wait_for(index)

    def store(self, jobs: Jobs) -> None:
        """Copy the blocks that the forward pass completed, and send them while the engine goes on.

        All layers at once and not in `save_kv_layer`: on a CPU the copies take a few milliseconds.
        """
        self._end_pass()
        if self._stores_shard and self._uses_pool and not self._has_failed:
            runs = [run for run in jobs.stores if self._has_adapter_of(run)]
            self._outbox.store(jobs.step, runs, is_sure=jobs.is_sure)

    def finished_loads(self, aborted: set[str], jobs: Jobs) -> set[str]:
        """Return the requests whose loading in the background is over; those `aborted` are given up."""
        self._end_pass()
        given_up = aborted & self._loads.keys()
        for request_id in given_up:
            self._loads[request_id].give_up()
        if not jobs.computes and not given_up:
            self._wait_a_moment()
        done, self._untold = self._untold, {}
        for request_id in [name for name, load in self._loads.items() if load.is_over]:
            load = self._loads.pop(request_id)
            failed = load.finish()
            self._is_silent |= load.was_silent
            # Nobody reads the blocks of an aborted request.
            done[request_id] = set() if request_id in given_up else failed
        for request_id, failed in done.items():
            self._failed |= failed
            self._told[request_id] = (jobs.step, failed)
        return set(done)

    def take_failed_blocks(self) -> set[int]:
        """Return the ids of blocks that could not be loaded since the last call."""
        self._end_pass()
        failed, self._failed = self._failed, set()
        return failed

    def report(self, jobs: Jobs) -> Report:
        """Return what the scheduler has to know of this step."""
        if not self._has_failed:
            self._ended_step = jobs.step
        stored = self._outbox.take_stored()
        refusals = self._outbox.take_refusals()
        return Report(jobs.step, refusals, {self._rank: stored} if stored else {}, self._left_generation)

    def close(self) -> None:
        """Give up loads; what was computed last is stored if that is quick."""
        for load in [*self._in_pass, *self._loads.values()]:
            load.give_up()
        self._in_pass.clear()
        self._loads.clear()
        self._outbox.close(CLOSING_S)

    def _leave(self) -> None:
        """Neither store nor load anything until the scheduler has keys of another generation."""
        self._left_generation = self._generation
        self._outbox.drop_waiting()
        for load in self._loads.values():
            load.void()

    def _tell_again(self, jobs: Jobs) -> None:
        """Say once more which loads are over, if the scheduler got nothing of the step that said so.

        What a step was to load that ended before, is lost. vLLM keeps the blocks of all these requests, also
        of aborted ones, until it hears of them.
        """
        if not self._told and not jobs.lost:
            return
        for request_id in [name for name, (step, _) in self._told.items() if step in jobs.lost]:
            _, self._untold[request_id] = self._told.pop(request_id)
        known = self._loads.keys() | self._told.keys() | self._untold.keys()
        for run in [run for runs in jobs.lost.values() for run in runs]:
            if run.request_id not in known:
                self._untold[run.request_id] = set(run.block_ids)
        self._told = {name: told for name, told in self._told.items() if told[0] > jobs.reported}

    @property
    def _has_failed(self) -> bool:
        """Return whether an error ends this step right now."""
        return id(sys.exception()) != self._former_error

    @property
    def _uses_pool(self) -> bool:
        """Return whether the pool's client answers, and the engine's KV is of this generation's keys."""
        return not self._is_silent and self._generation != self._left_generation

    def _has_adapter_of(self, run: BlockRun) -> bool:
        """Return whether the engine computes a run's request with the adapter that its keys are made for."""
        return run.adapter is None or self._is_loaded(*run.adapter)

    def _end_pass(self) -> None:
        """End the forward pass: all that it waited for has arrived or failed."""
        loads, self._in_pass = self._in_pass, []
        if loads and self._waited != set(self._group_of.values()) and not self._has_failed:
            _log.warning(
                "The model's layers do not wait for their KV: loads are waited for before each forward pass."
            )
            self._waits_at_start = True
            for load in loads:
                load.finish()
                self._failed |= load.block_ids  # what was computed may have been computed without them
        for load in loads:
            self._failed |= load.finish()
            self._is_silent |= load.was_silent

    def _wait_for(self, index: int) -> None:
        self._waited.add(index)
        for load in self._in_pass:
            load.wait_for(index)

    def _wait_a_moment(self) -> None:
        """Wait a moment, instead of asking in circles while there is nothing to compute."""
        waiting = {load.future for load in self._loads.values() if load.future is not None}
        if waiting:
            wait(waiting, IDLE_WAIT_S, return_when="FIRST_COMPLETED")
