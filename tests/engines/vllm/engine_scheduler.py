"""A small model of vLLM 0.32's scheduler: `v1/core/sched/scheduler.py` and `async_scheduler.py`.

It has their order of queues, admission, reservations, preemption, deferred frees, drafts and stale output.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from engines.vllm.jobs import Jobs
from engines.vllm.scheduler import SchedulerSide
from tests.engines.vllm.engine_blocks import Block, BlockPool, Request


@dataclass(eq=False)
class Scheduled:
    """A step on its way."""

    counts: dict[str, int] = field(default_factory=dict)
    """Number of tokens that each request computes."""
    starts: dict[str, int] = field(default_factory=dict)
    """Number of the first token that each request computes."""
    tables: dict[str, list[Block]] = field(default_factory=dict)
    drafts: dict[str, int] = field(default_factory=dict)
    accepted: dict[str, int] = field(default_factory=dict)
    """Of the drafts, those that turn out to be right."""
    speaks: set[str] = field(default_factory=set)
    """Requests that get a token."""
    misled: set[str] = field(default_factory=set)
    """Requests that compute on wrong KV."""
    grown: dict[str, list[Block]] = field(default_factory=dict)
    """New blocks of requests that run already."""
    sync_loads: bool = False
    peer_loads: list[tuple[str, int, int]] = field(default_factory=list)
    """Request, and bounds of the blocks that another connector loads."""
    finished: set[str] = field(default_factory=set)
    jobs: Jobs = field(default_factory=lambda: Jobs(0, []))
    finished_loads: set[str] = field(default_factory=set)
    invalid: set[int] = field(default_factory=set)
    reports: list[Any] = field(default_factory=list)


class SchedulerModel:
    """Implements the connector's `OwnCache`, too."""

    def __init__(
        self, cache: BlockPool, *, budget: int, draft_tokens: int, is_async: bool, defers_frees: bool
    ) -> None:
        """`is_async` says whether steps are scheduled while others run, `defers_frees` whether blocks of
        steps in flight are kept until these are over."""
        self.cache, self.budget, self.draft_tokens = cache, budget, draft_tokens
        self.is_async, self._defers_frees = is_async, defers_frees
        self.side: SchedulerSide
        self.requests: dict[str, Request] = {}
        self.waiting: deque[Request] = deque()
        self.holding: deque[Request] = deque()
        """Waiting requests that hold blocks. They come first."""
        self.running: list[Request] = []
        self.accepts: Callable[[int], int] = lambda drafts: 0
        """Number of drafts that turn out to be right."""
        self.misled: set[str] = set()
        """Requests that got a token which was computed on wrong KV."""
        self.peer_offers: dict[str, int] = {}
        """Blocks that another connector says it has of a request."""
        self._prefilling: set[Request] = set()
        """Requests for whose further blocks room is reserved while others load."""
        self._finished: set[str] = set()
        self._loaded: set[str] = set()
        self._failed: set[str] = set()
        self._scheduled_steps = self._seen_steps = 0
        self._frees: deque[tuple[int, list[Block]]] = deque()

    # The engine's own cache, as the connector sees it

    def blocks(self, request_id: str) -> Sequence[Block]:
        return self.requests[request_id].blocks if request_id in self.requests else []

    def evict(self, block_ids: set[int]) -> None:
        for block_id in block_ids:
            self.cache.forget(self.cache.all[block_id])

    def is_empty(self) -> bool:
        return self.cache.is_unused and not self.cache.prefixes

    # Requests

    @property
    def has_requests(self) -> bool:
        return bool(self.requests or self._finished)

    def add(self, request: Request) -> None:
        self.requests[request.request_id] = request
        self.waiting.append(request)
        self.side.added(request)

    def abort(self, request_id: str) -> None:
        """`finish_requests`."""
        request = self.requests[request_id]
        is_loading = request.state == "loading" and request_id not in self._loaded
        self._loaded.discard(request_id)
        self._failed.discard(request_id)
        self._finish(request, keeps_blocks=is_loading)

    def preempt_all(self) -> None:
        while self.running:
            self._preempt(self.running.pop(), drops_output=True)

    def forget(self, step: Scheduled) -> None:
        """A step raised an error, and there is no output of it."""
        self._seen_steps += bool(step.counts)

    def _finish(self, request: Request, *, keeps_blocks: bool = False) -> None:
        for queue in (self.waiting, self.holding, self.running):
            if request in queue:
                queue.remove(request)
        request.state = "finished"
        self._prefilling.discard(request)
        self.side.finished(request.request_id)
        self._finished.add(request.request_id)
        if not keeps_blocks:
            self._free(request)
            del self.requests[request.request_id]

    def _preempt(self, request: Request, *, drops_output: bool = False) -> None:
        self._free(request)
        self._prefilling.discard(request)
        request.state, request.num_computed_tokens = "preempted", 0
        request.drops_stale = drops_output or (request.drops_stale and request.stale > 0)
        request.stale = request.in_flight
        request.placeholders = request.rejected = request.drafts = 0
        self.waiting.appendleft(request)

    def _can_be_freed(self, request: Request) -> bool:
        return not self._defers_frees or request.last_step <= self._seen_steps

    def _free(self, request: Request) -> None:
        can_be_freed = self._can_be_freed(request)
        blocks = self.cache.take_from(request)
        if can_be_freed:
            self.cache.give_back(blocks)
        elif blocks:
            self._frees.append((self._scheduled_steps, blocks))

    # Scheduling a step

    def schedule(self) -> Scheduled:
        step = Scheduled()
        left, has_preempted = self._schedule_running(step, self.budget)
        if not has_preempted:
            self._schedule_waiting(step, left)
        for name in step.counts:
            request = self.requests[name]
            step.starts[name] = request.num_computed_tokens - request.rejected
            step.tables[name] = request.blocks
        step.jobs = self.side.jobs(self._output(step))
        step.finished, self._finished = self._finished, set()
        if step.counts:
            self._scheduled_steps += 1
        self._advance(step)
        return step

    def _schedule_running(self, step: Scheduled, budget: int) -> tuple[int, bool]:
        """Return what is left of the budget, and whether a request was preempted."""
        has_preempted, index = False, 0
        while index < len(self.running) and budget > 0:
            request = self.running[index]
            known = request.num_tokens + request.placeholders
            count = min(known + request.drafts - request.num_computed_tokens, budget)
            said = request.num_computed_tokens + 2 - request.placeholders
            limit = request.prompt_tokens + request.max_tokens
            if count <= 0 or (request.placeholders and said >= limit):
                index += 1
                continue
            new = self.cache.allocate(request, request.num_computed_tokens + count)
            while new is None and self._can_be_freed(self.running[-1]):
                victim = self.running.pop()
                self._preempt(victim)
                has_preempted = True
                if victim is request:
                    break
                new = self.cache.allocate(request, request.num_computed_tokens + count)
            if new is None:
                break
            step.counts[request.request_id] = count
            step.grown[request.request_id] = new
            if request.num_computed_tokens + count > known:
                step.drafts[request.request_id] = request.num_computed_tokens + count - known
            request.drafts = 0
            self.cache.cache(request, request.num_computed_tokens + count)
            budget -= count
            index += 1
        return budget, has_preempted

    def _schedule_waiting(self, step: Scheduled, budget: int) -> None:
        skipped: list[Request] = []
        while budget > 0 and (self.holding or self.waiting):
            queue = self.holding or self.waiting
            request = queue[0]
            is_ready = request.state != "loading" or self._has_loaded(request)
            if not is_ready or (request.stale and not request.drops_stale):
                skipped.append(queue.popleft())
                continue
            started = self._start(request, step, budget)
            if started is None:
                break
            queue.popleft()
            if not started:
                skipped.append(request)
            budget -= started
        self.holding.extendleft(reversed([request for request in skipped if _holds_blocks(request)]))
        self.waiting.extendleft(reversed([request for request in skipped if not _holds_blocks(request)]))

    def _start(self, request: Request, step: Scheduled, budget: int) -> int | None:
        """Schedule a waiting request, and return how many tokens it computes.

        0 if it waits for an answer or its KV; None if it has no room, and nobody behind it gets any.
        """
        local: list[Block] = []
        external, is_async, is_peers, computed = 0, False, False, request.num_computed_tokens
        if not computed:
            local = self.cache.hit(request)
            offered, is_async = self.side.matched_tokens(request, len(local) * self.cache.size)
            if offered is None:
                return 0
            external = offered or self._peers_offer(request, len(local))
            is_peers = external > offered
            computed = len(local) * self.cache.size + external
        count, drafts = (0, 0) if is_async else self._tokens_of_start(request, step, computed, budget)
        if not is_async and not count:
            return None
        reserved = self._reserved() if is_async else 0
        new = self.cache.allocate(request, computed + count, local, reserved=reserved, whole=True)
        if new is None:
            return None
        ids = [block.block_id for block in request.blocks]
        table = SimpleNamespace(get_block_ids=lambda: (ids,))
        self.side.allocated(request, table, 0 if is_peers else external)
        if is_peers:
            end = len(local) + external // self.cache.size
            step.peer_loads.append((request.request_id, len(local), end))
        request.num_computed_tokens = computed
        if is_async:
            request.state = "loading"
            self._prefilling.add(request)
            return 0
        step.sync_loads |= external > 0
        step.counts[request.request_id] = count
        if drafts:
            step.drafts[request.request_id] = drafts
        request.state = "running"
        self.running.append(request)
        self.cache.cache(request, computed + count)
        if computed + count < request.num_tokens:
            self._prefilling.add(request)
        return count

    def _tokens_of_start(
        self, request: Request, step: Scheduled, computed: int, budget: int
    ) -> tuple[int, int]:
        """Tokens that a request computes first, and how many of them take the place of drafts."""
        count = request.num_tokens - computed
        if self.draft_tokens and count == 1 and (step.counts or computed):
            padded = 1 + self.draft_tokens
            return (padded, self.draft_tokens) if padded <= budget else (0, 0)
        return min(count, budget), 0

    def _peers_offer(self, request: Request, local_blocks: int) -> int:
        """Tokens behind the local ones that another connector says it has."""
        usable = min(self.peer_offers.pop(request.request_id, 0), (request.num_tokens - 1) // self.cache.size)
        return max(0, usable - local_blocks) * self.cache.size

    def _reserved(self) -> int:
        """Free blocks that a load leaves to those that hold some and can't be preempted."""
        ahead = 1 + self.draft_tokens if self.draft_tokens else 0
        needed = sum(self.cache.lacking(request, request.num_tokens + ahead) for request in self._prefilling)
        return needed + -(-self.draft_tokens // self.cache.size)

    def _output(self, step: Scheduled) -> SimpleNamespace:
        """`SchedulerOutput`."""
        return SimpleNamespace(
            num_scheduled_tokens=step.counts,
            total_num_scheduled_tokens=sum(step.counts.values()),
            has_sync_kv_loads=step.sync_loads,
            scheduled_cached_reqs=SimpleNamespace(
                req_ids=list(step.grown),
                resumed_req_ids=set(),
                new_block_ids=[([block.block_id for block in new],) for new in step.grown.values()],
            ),
        )

    def _advance(self, step: Scheduled) -> None:
        """`_update_after_schedule`."""
        step.accepted = {name: min(self.accepts(count), count) for name, count in step.drafts.items()}
        for name, count in step.counts.items():
            request = self.requests[name]
            request.num_computed_tokens += count
            request.in_flight += count
            request.last_step = self._scheduled_steps
            if request.num_computed_tokens < request.num_tokens + request.placeholders:
                continue
            self._prefilling.discard(request)
            step.speaks.add(name)
            request.placeholders += 1 + step.drafts.get(name, 0)
            request.rejected += step.drafts.get(name, 0) - step.accepted.get(name, 0)
            request.drafts = self.draft_tokens

    # Looking at a step that is over

    def update(self, step: Scheduled) -> None:
        """`update_from_output`."""
        if step.counts:
            self._seen_steps += 1
            while self._frees and self._frees[0][0] <= self._seen_steps:
                self.cache.give_back(self._frees.popleft()[1])
        failed = self._on_invalid(step) if step.invalid else set()
        for name, count in step.counts.items():
            request = self.requests.get(name)
            if request is None:
                continue
            request.in_flight -= count
            is_stale = request.stale > 0
            request.stale -= count if is_stale else 0
            is_dropped = name in failed or (is_stale and request.drops_stale)
            if not is_dropped and name in step.speaks and request.state != "finished":
                self._say(request, step, is_stale=is_stale)
                self.misled |= {name} & step.misled
        report = step.reports[0]
        for other in step.reports[1:]:
            report = report.merged(other)
        self.side.reported(report, step.invalid, failed_load=False)
        for name in step.finished_loads:
            if self.requests[name].state == "loading":
                self._loaded.add(name)
            else:
                assert self.requests[name].state == "finished"
                self._free(self.requests.pop(name))

    def _say(self, request: Request, step: Scheduled, *, is_stale: bool) -> None:
        """A request gets the tokens that a step computed."""
        accepted = step.accepted.get(request.request_id, 0)
        rejected = step.drafts.get(request.request_id, 0) - accepted
        said = request.num_tokens
        request.tokens = request.sequence(
            min(said + 1 + accepted, request.prompt_tokens + request.max_tokens)
        )
        if not is_stale:
            request.num_computed_tokens -= rejected
            request.rejected -= rejected
            request.placeholders -= rejected + request.num_tokens - said
        if self.is_async and request.state == "running":
            self.cache.cache(request, request.num_computed_tokens - request.placeholders)
        if request.is_over:
            self._finish(request)

    def _on_invalid(self, step: Scheduled) -> set[str]:
        """`_update_requests_with_invalid_blocks`: requests that compute again what failed to load."""
        affected: set[str] = set()
        marked: set[int] = set()
        loading = [request for request in self.holding if request.state == "loading"]
        for request in [*loading, *self.running]:
            computed = request.num_computed_tokens - step.counts.get(request.request_id, 0)
            wrong = [
                number
                for number, block in enumerate(request.blocks[: -(-computed // self.cache.size)])
                if block.block_id in step.invalid
            ]
            if not wrong:
                continue
            own = [number for number in wrong if request.blocks[number].block_id not in marked]
            marked.update(request.blocks[number].block_id for number in own)
            request.num_computed_tokens = own[0] * self.cache.size if own else computed - request.rejected
            if request.state == "loading":
                self._failed.add(request.request_id)
            else:
                affected.add(request.request_id)
                self._forget_steps_in_flight(request)
        return affected

    def _forget_steps_in_flight(self, request: Request) -> None:
        """What was scheduled on KV that failed to load does not count."""
        request.stale, request.drops_stale = request.in_flight, True
        request.placeholders = request.rejected = request.drafts = 0

    def _has_loaded(self, request: Request) -> bool:
        """`_update_waiting_for_remote_kv`, once a request's load is over."""
        name = request.request_id
        if name not in self._loaded:
            return False
        self._loaded.discard(name)
        if name in self._failed and not request.num_computed_tokens:
            self.cache.give_back(self.cache.take_from(request))
        else:
            self.cache.cache(request, request.num_computed_tokens)
        self._failed.discard(name)
        if request.num_computed_tokens == request.num_tokens:
            request.num_computed_tokens -= 1
        request.state = "waiting"
        return True


def _holds_blocks(request: Request) -> bool:
    return request.num_computed_tokens > 0 or request.state == "loading"
