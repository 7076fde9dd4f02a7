"""The scheduler's side: which blocks of a request are in the pool, which a step loads and stores.

Nothing here waits while the engine has something to compute, and the work of a step is in proportion to the
requests that it schedules and to the blocks that it completes, not to the length of the prompts.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Protocol

from engines.vllm.damage import Damage, Write
from engines.vllm.errors import AdapterChangedError
from engines.vllm.foreign import NO_FAULTS, EngineFaults, ForeignBlocks
from engines.vllm.jobs import BlockRun, Jobs, Refusal
from engines.vllm.key_memory import KeyMemory
from engines.vllm.lookups import Lookups
from engines.vllm.steps import Step, StepLog
from engines.vllm.tracked import Tracked
from hostlib.protocol.hints import MAX_RETAIN_S

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from vllm.v1.core.kv_cache_manager import KVCacheBlocks
    from vllm.v1.core.sched.output import SchedulerOutput
    from vllm.v1.request import Request

    from engines.vllm.events import PoolEvents
    from engines.vllm.jobs import Report
    from engines.vllm.keys import EngineKeys, RequestKeys
    from engines.vllm.steps import Block
    from hostlib.engine import BlockingPool

REMEMBERED_KEYS = 1 << 17
"""Number of blocks that the scheduler knows to be in the pool: they are not offered again. About 20 MB."""
RETAIN = "retain_s"
"""Key in a request's `kv_transfer_params` for the seconds that its blocks should be retained."""
MAX_RETAINED_BLOCKS = 8192
"""Most blocks of one request that are asked to be retained."""
IN_WORKER = "load_weights, or a step that raised an error"
"""Why the pool is left, where a worker says no more."""

_log = logging.getLogger("weir")


class OwnCache(Protocol):
    """The engine's own KV cache, as its scheduler sees it."""

    def blocks(self, request_id: str) -> Sequence[Block]:
        """Return the blocks of a request, in the order of its tokens; none if it holds none."""

    def evict(self, block_ids: set[int]) -> None:
        """Remove these blocks from the engine's prefix cache, so that no further request finds them there."""

    def is_empty(self) -> bool:
        """Return whether no request holds a block, and none can be found in the prefix cache."""


class SchedulerSide:
    """See the module. `loads` and `stores` say what the engine's role allows; `events` are told of blocks."""

    def __init__(
        self,
        pool: BlockingPool,
        keys: EngineKeys,
        own: OwnCache,
        *,
        background: bool,
        loads: bool = True,
        stores: bool = True,
        events: PoolEvents | None = None,
        faults: EngineFaults = NO_FAULTS,
    ) -> None:
        self._pool, self._keys, self._own = pool, keys, own
        self._background, self._may_load, self._may_store = background, loads, stores
        self._schedules_ahead = faults.schedules_ahead
        self._computes_again = not (faults.recomputes_wrong or faults.schedules_ahead)
        """Whether the engine computes blocks again that are reported as wrong after a step."""
        self._block_tokens = pool.space.block_tokens
        self._lookups = Lookups(pool)
        self._tracked: dict[str, Tracked] = {}
        self._loads: list[BlockRun] = []
        self._steps = StepLog()
        self._asked: dict[int, dict[int, list[BlockRun]]] = {}
        """What each step that has not come back was to load in the background, and what it was told of lost
        steps."""
        self._lost: dict[int, list[BlockRun]] = {}
        """Steps that never came back, of which the workers do not know so yet."""
        self._damage = Damage(self._block_tokens)
        self._foreign = ForeignBlocks(self._block_ids, self._block_tokens, faults)
        self._held = KeyMemory(REMEMBERED_KEYS)
        self._events = events
        self._given: list[int] = []
        self._is_left = False
        """Whether the pool is not used, because the engine's weights may have changed."""
        self._drops_waiting = False
        """Whether the workers are to forget what waits to be stored."""
        self._voids: list[str] = []
        """Requests of which the workers are to forget what they load."""
        self._generation = 0
        """Number of the generation of the engine's weights."""
        self._left_adapters: set[str] = set()
        """Names of adapters whose weights may have changed."""

    # Requests

    def added(self, request: Request) -> None:
        """Begin a new request."""
        lora = request.lora_request
        if lora is not None and lora.load_inplace and lora.lora_name not in self._left_adapters:
            self.adapter_changed(lora.lora_name)
        self._tracked[request.request_id] = Tracked(request, self._keys.begin_media(request))

    def matched_tokens(self, request: Request, computed_tokens: int) -> tuple[int | None, bool]:
        """Return the number of tokens that the pool has behind those `computed`; None while it has not
        answered.

        vLLM asks this of requests that start, or start over.
        """
        tracked = self._tracked_as(request)
        if not tracked.media.done():
            return None, False
        self._start(tracked)
        tracked.own_blocks = first = computed_tokens // self._block_tokens
        usable = (request.num_tokens - 1) // self._block_tokens  # one token at least has to be computed
        usable = min(usable, tracked.limit)
        if not self._may_load or self._is_left or tracked.keys is None or first >= usable:
            tracked.end_lookup()
            return 0, False
        if request.skip_reading_prefix_cache or self._lookups.is_resting:
            return 0, False
        keys = tracked.keys.extend(usable)[:usable]
        found = self._found(tracked, keys, first)
        if found is None:
            return None, False
        return found * self._block_tokens, self._background and found > 0

    def allocated(self, request: Request, blocks: KVCacheBlocks, external_tokens: int) -> None:
        """Note that vLLM has made room; what it took of the pool's offer is to be loaded."""
        tracked = self._tracked_as(request)
        lookup, tracked.lookup = tracked.lookup, None
        block_ids = list(blocks.get_block_ids()[0])
        given = block_ids[tracked.own_blocks :]
        self._given += given
        self._damage.forget(given)
        if not external_tokens:
            self._note_foreign(tracked, block_ids)
            return
        if lookup is None or tracked.keys is None or external_tokens % self._block_tokens:
            _log.error(
                "vLLM loads %d tokens that the pool did not offer: they are computed.", external_tokens
            )
            self._loads.append(BlockRun(request.request_id, [], None, 0, block_ids))
            self._note_foreign(tracked, block_ids)
            return
        first, blocks_loaded = lookup.first, external_tokens // self._block_tokens
        ids = block_ids[first : first + blocks_loaded]
        tracked.load = _run(request.request_id, tracked.keys, first, ids)
        self._loads.append(tracked.load)
        self._note_foreign(tracked, block_ids)

    def _note_foreign(self, tracked: Tracked, block_ids: list[int]) -> None:
        load, own = tracked.load, tracked.own_blocks
        known = own if load is None else load.first + len(load.block_ids)
        self._foreign.allocated(tracked.request, block_ids, own, known)

    def finished(self, request_id: str) -> None:
        """End a request that is over, or aborted."""
        tracked = self._tracked.pop(request_id, None)
        if tracked is not None:
            self._foreign.end(request_id)
            tracked.end_lookup()
            self._retain(tracked)

    def _retain(self, tracked: Tracked) -> None:
        """Ask storage nodes to retain what the pool has of a request, if the request says so."""
        seconds = _retain_s(tracked.request)
        if seconds and tracked.keys is not None:
            keys = tracked.keys.keys[:MAX_RETAINED_BLOCKS]
            held = next((number for number, key in enumerate(keys) if key not in self._held), len(keys))
            self._pool.begin_retain(keys[:held], seconds)

    # Steps

    def jobs(self, output: SchedulerOutput) -> Jobs:
        """Return what this step loads, and the blocks that it completes."""
        waits = bool(self._loads) and not self._background
        if not self._schedules_ahead:
            self._lose(self._steps.scheduled + 1)
        step = self._steps.begin(has_loads=waits or getattr(output, "has_sync_kv_loads", True))
        grown = _grown(output)
        jobs = Jobs(step.number, self._loads, given=self._given + grown, is_sure=step.is_sure)
        jobs.reported, jobs.lost = self._steps.reported, self._lost
        if self._background and (self._loads or self._lost):
            self._asked[step.number] = {step.number: self._loads, **self._lost}
        self._loads, self._given, self._lost = [], [], {}
        jobs.drops_waiting, self._drops_waiting = self._drops_waiting, False
        jobs.voids, self._voids = self._voids, []
        jobs.generation = self._generation
        computing = [
            self._tracked[name].request for name in output.num_scheduled_tokens if name in self._tracked
        ]
        self._foreign.step(grown, computing)
        if self._steps.is_overdue():
            self._on_failure(set())
        if self._damage:
            jobs.wrong = self._damage_of(output)
        if not step.is_sure:
            step.holders = [self._own.blocks(request_id) for request_id in output.num_scheduled_tokens]
        if self._may_store and not self._is_left and self._pool.is_answering:
            for request_id, count in output.num_scheduled_tokens.items():
                tracked = self._tracked.get(request_id)
                if tracked is not None and tracked.keys is not None:
                    jobs.stores += self._stores(tracked, tracked.keys, count, step)
        jobs.settled, jobs.dropped = self._steps.settled, self._steps.take_dropped()
        jobs.computes = output.total_num_scheduled_tokens > 0
        if not jobs.computes and self._steps.in_flight == 1:
            self._wait_a_moment()
        return jobs

    def reported(self, report: Report | None, failed_blocks: Collection[int], *, failed_load: bool) -> None:
        """End a step. Some connector could not load `failed_blocks` on some rank: vLLM computes them.

        `failed_load` says that a load failed of which vLLM does not know the blocks.
        """
        if report is not None:
            self._lose(report.step)
        if failed_blocks or failed_load:
            self._on_failure(set(failed_blocks))
        if report is not None:
            for refusal in report.refusals:
                self._refused(refusal)
            if self._events is not None:
                self._events.stored(report.stored)
            self._steps.report(report.step)
            self._asked.pop(report.step, None)
            if report.left_generation == self._generation:
                self.weights_changed(IN_WORKER)

    # Weights

    def weights_changed(self, reason: str) -> None:
        """Handle a change of the engine's weights that is about to happen, or may be.

        What its own cache holds is of the former ones. Until it is empty, the pool is left.
        """
        if not self._is_left:
            _log.warning(
                "The pool is left until the engine's cache is cleared: its KV may be wrong, or of other "
                "weights (%s).",
                reason,
            )
        self._leave()
        self._resume()

    def adapter_changed(self, name: str) -> None:
        """Stop sharing the KV of an adapter whose weights change under the same name."""
        _log.warning(
            "KV of adapter %s is not shared until the engine's cache is cleared: its weights change.", name
        )
        self._left_adapters.add(name)
        for tracked in self._tracked.values():
            lora = tracked.request.lora_request
            if lora is not None and lora.lora_name == name:
                self._leave_request(tracked)

    def reset(self) -> bool:
        """Begin a new generation of the engine's weights: no KV from before is found, none of it is stored.

        False, and the pool is left, as long as the engine's own cache still holds KV from before.
        """
        self._leave()
        if self._resume():
            return True
        _log.warning("The pool is left: requests hold blocks, so that the engine's own cache is not cleared.")
        return False

    def _leave(self) -> None:
        """Ask for nothing and store nothing any more; requests that have begun are not shared any more."""
        self._is_left = self._drops_waiting = True
        if self._events is not None:
            self._events.clear()
        for tracked in self._tracked.values():
            self._leave_request(tracked)

    def _leave_request(self, tracked: Tracked) -> None:
        tracked.end_lookup()
        if tracked.load is not None:
            self._voids.append(tracked.request.request_id)
        tracked.keys, tracked.is_new = None, True

    def _resume(self) -> bool:
        """Use the pool again if nothing is left in the engine's cache; whether it is used."""
        if not self._own.is_empty():
            return False
        self._left_adapters.clear()
        if self._is_left:
            self._is_left = False
            self._generation += 1
            self._keys.new_generation()
            self._held.clear()
            _log.warning("The engine's KV has a new generation: from now on no other engine shares it.")
        return True

    # Look-ups

    def _tracked_as(self, request: Request) -> Tracked:
        if request.request_id not in self._tracked:
            self.added(request)
        return self._tracked[request.request_id]

    def _start(self, tracked: Tracked) -> None:
        if self._is_left or self._left_adapters:
            self._resume()
        if tracked.is_new and not self._is_left and not self._has_left_adapter(tracked.request):
            self._name(tracked)
        tracked.load = None
        tracked.offered.begin()

    def _name(self, tracked: Tracked) -> None:
        lora = tracked.request.lora_request
        try:
            tracked.keys, tracked.is_new = self._keys.of(tracked.request, tracked.media), False
        except AdapterChangedError:
            assert lora is not None
            self.adapter_changed(lora.lora_name)

    def _has_left_adapter(self, request: Request) -> bool:
        """Return whether the weights of the request's adapter may change, or have changed, under the same
        name.

        With `load_inplace` in the request itself, vLLM reads the adapter anew whenever it likes.
        """
        lora = request.lora_request
        return lora is not None and (lora.load_inplace or lora.lora_name in self._left_adapters)

    def _found(self, tracked: Tracked, keys: list[bytes], first: int) -> int | None:
        """Number of blocks from number `first` on that can be loaded; None while that is not known."""
        lookup = tracked.lookup
        if lookup is None or lookup.first != first:
            tracked.end_lookup()
            lookup = tracked.lookup = self._lookups.begin(keys, first)
        if self._lookups.poll(lookup) and lookup.found is not None:
            there, rest = keys[first : first + lookup.found], keys[first + lookup.found :]
            self._held.add(there)
            if self._events is not None:
                self._events.found(tracked.request, first, there)
            if self._pool.is_answering:
                self._is_gone(rest)
        return lookup.found

    def _is_gone(self, keys: Sequence[bytes]) -> None:
        """Note that these blocks are not in the pool."""
        self._held.discard(keys)
        if self._events is not None:
            self._events.gone(keys)

    def _wait_a_moment(self) -> None:
        """Wait a moment, instead of asking in circles while the engine has nothing to compute."""
        lookups = [one.lookup for one in self._tracked.values() if one.lookup is not None]
        media = [one.media for one in self._tracked.values() if not one.media.done()]
        self._lookups.wait(lookups, media)

    # What is stored

    def _stores(self, tracked: Tracked, names: RequestKeys, count: int, step: Step) -> list[BlockRun]:
        """Return the blocks of a request that are whole after this step, right, and not known to be in the
        pool."""
        request = tracked.request
        # Tokens drafted ahead may be taken back; they are not among the request's.
        full = min(request.num_computed_tokens + count, request.num_tokens) // self._block_tokens
        full = tracked.offered.due(full, step.number)
        if full <= tracked.offered.blocks:
            return []
        blocks = self._own.blocks(request.request_id)
        if self._damage:
            full = min(full, self._damage.sound_blocks([block.block_id for block in blocks]))
        sound = self._foreign.sound_blocks(request.request_id)
        full = full if sound is None else min(full, sound)
        keys = names.extend(full)
        runs = []
        for first, end in self._held.missing(keys, tracked.offered.blocks, full):
            run = _run(request.request_id, names, first, [block.block_id for block in blocks[first:end]])
            runs.append(run)
            step.offers.append(Refusal(request.request_id, first, run.keys))
            self._held.add(run.keys)
            if self._events is not None:
                self._events.offered(request, first, run.keys)
        tracked.offered.blocks = max(tracked.offered.blocks, full)
        return runs

    def _refused(self, refusal: Refusal) -> None:
        """Offer blocks that were not stored again later, if the request still runs then."""
        self._held.discard(refusal.keys)
        tracked = self._tracked.get(refusal.request_id)
        if tracked is not None:
            tracked.offered.refuse(refusal.first, self._steps.settled)

    def _block_ids(self, request_id: str) -> list[int]:
        """Return the ids of the blocks that a request holds."""
        return [block.block_id for block in self._own.blocks(request_id)]

    # What went wrong

    def _lose(self, number: int) -> None:
        """Count the steps before this one that have not come back as lost, as after an error in one.

        It is not known which loads failed in them. So their blocks count as not loaded.
        """
        lost = self._steps.lose(number)
        if not lost:
            return
        for step in lost:
            self._lost |= self._asked.pop(step.number, {step.number: []})
        held = {block.block_id for step in lost for blocks in step.holders for block in blocks}
        if held:
            self._on_failure(held)
        self.weights_changed(IN_WORKER)

    def _on_failure(self, failed: set[int]) -> None:
        """Take back what was computed on blocks that did not arrive; learn which of the pool these are.

        Blocks that are known to be wrong were reported again, and what they spoil has been followed.
        """
        failed = failed - self._damage.block_ids
        dropped = self._steps.drop()
        for step in dropped:
            for offer in step.offers:
                self._held.discard(offer.keys)
                tracked = self._tracked.get(offer.request_id)
                if tracked is not None:
                    tracked.offered.take_back(offer.first)
        held_by = [blocks for step in dropped for blocks in step.holders]
        held_by += [self._own.blocks(request_id) for request_id in self._tracked]
        self._damage.spread(failed, ([block.block_id for block in blocks] for blocks in held_by))
        self._own.evict(self._damage.block_ids)
        for tracked in self._tracked.values():
            if tracked.load is not None:
                self._load_failed(tracked, tracked.load, failed)

    def _load_failed(self, tracked: Tracked, load: BlockRun, failed: set[int]) -> None:
        """Look no longer for what failed to load, for this request; for others the pool looks closer."""
        numbers = [number for number, block_id in enumerate(load.block_ids) if block_id in failed]
        if numbers:
            keys = [load.keys[number] for number in numbers]
            self._is_gone(keys)
            self._pool.failed_to_load(keys)
            first = load.first + numbers[0]
            tracked.limit = min(tracked.limit, first)
            tracked.offered.take_back(first)

    def _damage_of(self, output: SchedulerOutput) -> set[int]:
        """Follow wrong blocks through this step; return those that have to be reported again after it.

        Of requests that share a block which failed to load, vLLM has the first one compute it, and the others
        go on. They must not if that one computes it in parts, is aborted, or has to give way. vLLM can't be
        told so where it schedules steps ahead or computes such blocks wrong. There, no requests share blocks
        that the pool loads, but they may share those of another connector.
        """
        held = {request_id: self._block_ids(request_id) for request_id in self._tracked}
        self._damage.keep({block_id for ids in held.values() for block_id in ids})
        writes = []
        for request_id, count in output.num_scheduled_tokens.items():
            tracked = self._tracked.get(request_id)
            if tracked is not None:
                start = tracked.request.num_computed_tokens
                writes.append(Write(held[request_id], start, start + count))
        wrong = self._damage.step(writes)
        self._own.evict(self._damage.block_ids)
        return wrong if self._computes_again else set()


def _retain_s(request: Request) -> int:
    """Return the seconds for which a request wants its blocks retained; 0 for not at all."""
    params = getattr(request, "kv_transfer_params", None)
    seconds = params.get(RETAIN) if isinstance(params, dict) else None
    if not isinstance(seconds, int) or isinstance(seconds, bool):
        return 0
    return max(0, min(seconds, MAX_RETAIN_S))


def _run(request_id: str, names: RequestKeys, first: int, block_ids: list[int]) -> BlockRun:
    """Return a run of a request, whose keys these are, from block number `first` on."""
    keys = names.keys
    parent, wanted = keys[first - 1] if first else None, keys[first : first + len(block_ids)]
    return BlockRun(request_id, wanted, parent, first, block_ids, names.adapter)


def _grown(output: SchedulerOutput) -> list[int]:
    """Return the ids of the blocks that running requests got. Those of requests that start have come by
    `allocated`."""
    cached = output.scheduled_cached_reqs
    grown = []
    for request_id, block_ids in zip(cached.req_ids, cached.new_block_ids, strict=True):
        if block_ids is not None and request_id not in cached.resumed_req_ids:
            grown += block_ids[0]
    return grown
