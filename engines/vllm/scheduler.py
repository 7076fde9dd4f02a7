"""The scheduler's side: which blocks of a request are in the pool, which a step loads and stores."""

from __future__ import annotations

from concurrent.futures import Future, TimeoutError
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engines.vllm.jobs import BlockRun, Jobs

if TYPE_CHECKING:
    from collections.abc import Iterable

    from vllm.v1.core.kv_cache_manager import KVCacheBlocks
    from vllm.v1.core.sched.output import SchedulerOutput
    from vllm.v1.request import Request

    from engines.vllm.keys import EngineKeys, RequestKeys
    from hostlib.engine import BlockingPool

LOOKUP_PAUSE_S = 0.01
"""How long the scheduler waits for an answer before it turns to other requests."""


@dataclass
class _Tracked:
    """A request that is waiting or running."""

    request: Request
    keys: RequestKeys
    lookup: Future[int] | None = None
    lookup_first: int = -1
    stored: int = 0
    """Blocks from the first on that are in the pool, or on their way there."""
    block_ids: list[int] = field(default_factory=list)

    def run(self, first: int, end: int) -> BlockRun:
        """Its blocks from number `first` to before `end`."""
        return BlockRun(self.request.request_id, self.keys.keys[:end], first, self.block_ids[:end])


class SchedulerSide:
    """See the module."""

    def __init__(self, pool: BlockingPool, keys: EngineKeys, background: bool) -> None:
        self._pool, self._keys, self._background = pool, keys, background
        self._block_tokens = pool.space.block_tokens
        self._tracked: dict[str, _Tracked] = {}
        self._loads: list[BlockRun] = []
        self._failures_seen = 0

    def matched_tokens(self, request: Request, computed_tokens: int) -> tuple[int | None, bool]:
        """Tokens that the pool has behind those `computed`; None while it has not answered."""
        tracked = self._track(request)
        if tracked is None:
            return 0, False
        first = computed_tokens // self._block_tokens
        usable = (request.num_tokens - 1) // self._block_tokens  # one token at least has to be computed
        if first >= usable:
            return 0, False
        keys = tracked.keys.extend(usable)
        if tracked.lookup is None or tracked.lookup_first != first:
            tracked.lookup = self._pool.begin_exists(keys[:usable], first)
            tracked.lookup_first = first
        try:
            found = tracked.lookup.result(LOOKUP_PAUSE_S)
        except TimeoutError:
            return None, False
        return found * self._block_tokens, self._background and found > 0

    def allocated(self, request: Request, blocks: KVCacheBlocks, external_tokens: int) -> None:
        """vLLM has made room; what it took of the pool's offer is to be loaded."""
        tracked = self._tracked.get(request.request_id)
        if tracked is None:
            return
        tracked.block_ids = list(blocks.get_block_ids()[0])
        if external_tokens:
            first, count = tracked.lookup_first, external_tokens // self._block_tokens
            end = first + count
            self._loads.append(tracked.run(first, end))
            tracked.stored = max(tracked.stored, end)
        tracked.lookup = None

    def jobs(self, output: SchedulerOutput) -> Jobs:
        """What this step loads, and the blocks that it completes."""
        jobs = Jobs(self._loads, [], self._failures_seen, output.total_num_scheduled_tokens > 0)
        self._loads = []
        for request_id, count in output.num_scheduled_tokens.items():
            tracked = self._tracked.get(request_id)
            if tracked is None or output.kv_connector_block_state is None:
                continue
            request = tracked.request
            # Tokens drafted ahead may be taken back; they are not among the request's.
            tokens = min(request.num_computed_tokens + count, request.num_tokens)
            full = tokens // self._block_tokens
            if full <= tracked.stored:
                continue
            block_ids = output.kv_connector_block_state.get_block_ids(request_id)
            if block_ids is None:
                continue
            tracked.keys.extend(full)
            tracked.block_ids = list(block_ids[0])
            jobs.stores.append(tracked.run(tracked.stored, full))
            tracked.stored = full
        return jobs

    def failed(self, block_ids: Iterable[int]) -> None:
        """These could not be loaded: vLLM computes them and what is behind them; they are stored again."""
        failed = set(block_ids)
        self._failures_seen += bool(failed)
        for tracked in self._tracked.values():
            for index, block_id in enumerate(tracked.block_ids[: tracked.stored]):
                if block_id in failed:
                    tracked.stored = index
                    break

    def finished(self, request_id: str) -> None:
        """The request is over, or aborted."""
        tracked = self._tracked.pop(request_id, None)
        if tracked is not None and tracked.lookup is not None:
            tracked.lookup.cancel()

    def _track(self, request: Request) -> _Tracked | None:
        """None for requests whose KV is not shared."""
        tracked = self._tracked.get(request.request_id)
        if tracked is None and (keys := self._keys.of(request)) is not None:
            tracked = self._tracked[request.request_id] = _Tracked(request, keys)
        return tracked
