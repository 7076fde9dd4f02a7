"""A small model of vLLM 0.32's engine core: its scheduler's bookkeeping, its runners' calls of a connector.

It follows `v1/core/sched/scheduler.py`, `v1/worker/kv_connector_model_runner_mixin.py` (V1) and
`v1/worker/gpu/kv_connector.py` (V2) in the order of all calls and in what they do to blocks and counters. KV
is a number a token, made of all numbers before it: whatever was computed on something wrong is wrong as well.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import blake2b
from types import SimpleNamespace
from typing import Any, cast

from engines.vllm.jobs import Jobs
from engines.vllm.scheduler import SchedulerSide
from engines.vllm.worker import WorkerSide
from hostlib.engine.space import KeyChain, KvSpace
from tests.engines.vllm.pool_in_hand import BytesMemory, PoolInHand

ALPHABET = 3


def kv_of(before: list[bytes], token: int, weights: int) -> bytes:
    """One token's KV."""
    return blake2b(b"".join(before) + b"%d,%d" % (token, weights), digest_size=4).digest()


@dataclass(eq=False)
class Block:
    block_id: int
    users: int = 0
    prefix: tuple[int, ...] | None = None
    """What it is found by in the engine's prefix cache."""


@dataclass(eq=False)
class Request:
    request_id: str
    tokens: list[int]
    prompt_tokens: int
    max_tokens: int
    num_computed_tokens: int = 0
    blocks: list[Block] = field(default_factory=list)
    state: str = "waiting"
    in_flight: int = 0
    """Steps that compute it and were not looked at yet."""
    unseen: int = 0
    """Tokens that these steps will say at most."""
    rejected: int = 0
    """Drafts in these steps that will turn out to be wrong."""
    stale: int = 0
    """Steps in flight whose output does not count any more."""
    cached: int = 0
    skip_reading_prefix_cache: bool = False
    lora_request: Any = None
    starts: int = 0

    @property
    def num_tokens(self) -> int:
        return len(self.tokens)

    @property
    def all_token_ids(self) -> list[int]:
        return self.tokens

    def sequence(self, length: int) -> list[int]:
        """Its tokens, and those that the model will say."""
        tokens = list(self.tokens)
        while len(tokens) < length:
            tokens.append((sum(tokens) + len(tokens)) % ALPHABET)
        return tokens[:length]


class ModelKeys:
    """As `EngineKeys`, which needs torch."""

    def __init__(self, space: KvSpace, pool: PoolInHand) -> None:
        self.space, self._seal = space, pool.seal
        self.on_generation: Callable[[str], None] = lambda name: None

    def of(self, request: Any) -> Any:
        chain = KeyChain(self.space, self._seal)
        size = self.space.block_tokens

        def extend(blocks: int) -> list[bytes]:
            for number in range(len(chain.keys), blocks):
                chain.extend(request.all_token_ids[number * size : (number + 1) * size])
            return chain.keys

        return SimpleNamespace(extend=extend, keys=chain.keys, adapter=request.lora_request)

    def new_generation(self) -> None:
        self.space = self.space.new_generation()
        self.on_generation(self.space.generation)


@dataclass(eq=False)
class Scheduled:
    """A step on its way."""

    counts: dict[str, int]
    starts: dict[str, int]
    """Number of the first token that each request computes."""
    tables: dict[str, list[Block]]
    drafts: dict[str, int]
    accepted: dict[str, int]
    """Of the drafts, those that turn out to be right."""
    speaks: set[str]
    """Requests that get a token."""
    sync_loads: bool
    finished: set[str]
    jobs: Jobs
    peer_loads: list[list[int]]
    stale: set[str] = field(default_factory=set)
    finished_loads: set[str] = field(default_factory=set)
    invalid: set[int] = field(default_factory=set)
    reports: list[Any] = field(default_factory=list)


class EngineModel:
    """Implements `OwnCache`, too."""

    def __init__(
        self,
        pool: PoolInHand,
        *,
        blocks: int = 24,
        budget: int = 12,
        background: bool = False,
        depth: int = 1,
        order: str = "v1",
        draft_tokens: int = 0,
        loads: bool = True,
        stores: bool = True,
    ) -> None:
        self.pool, self.size, self.budget = pool, pool.space.block_tokens, budget
        self.background, self.depth, self.order, self.draft_tokens = background, depth, order, draft_tokens
        self.weights = 0
        self.free = deque(Block(number) for number in range(blocks))
        self.all_blocks = list(self.free)
        self.prefixes: dict[tuple[int, ...], Block] = {}
        self.requests: dict[str, Request] = {}
        self.waiting: deque[Request] = deque()
        self.running: list[Request] = []
        self.queue: deque[Scheduled] = deque()
        self.finished_ids: set[str] = set()
        self.loaded_ids: set[str] = set()
        self.failed_ids: set[str] = set()
        self.memories = [KvOfModel(self, rank) for rank in range(pool.space.tensor_parallel)]
        self.keys = ModelKeys(pool.space, pool)
        self.weights_of = {self.keys.space.generation: 0}
        self.keys.on_generation = lambda name: self.weights_of.update({name: self.weights})
        self.side = SchedulerSide(
            cast(Any, pool),
            cast(Any, self.keys),
            self,
            background=background,
            loads=loads,
            stores=stores,
        )
        self.workers = [
            WorkerSide(cast(Any, pool), [["0"], ["1"]], memory, rank=rank, background=background)
            for rank, memory in enumerate(self.memories)
        ]
        self.peer_offers: dict[str, int] = {}
        """Blocks that another connector says it has of a request."""
        self.peer_fails = False
        self.layers: tuple[str, ...] = ("0", "1")
        """Layers whose attention waits for its KV."""
        self.accepts: Callable[[int], int] = lambda drafts: 0
        self.steps = 0
        self.names: dict[bytes, bytes] = {}
        """What has to be stored under each object's key."""

    # The engine's own cache, as the connector sees it

    def blocks(self, request_id: str) -> list[Block]:
        return self.requests[request_id].blocks if request_id in self.requests else []

    def evict(self, block_ids: set[int]) -> None:
        for block_id in block_ids:
            self._forget(self.all_blocks[block_id])

    def is_empty(self) -> bool:
        return len(self.free) == len(self.all_blocks) and not self.prefixes

    # What a user does

    def add(self, request_id: str, tokens: list[int], max_tokens: int = 4) -> Request:
        request = Request(request_id, list(tokens), len(tokens), max_tokens)
        self.requests[request_id] = request
        self.waiting.append(request)
        self.side.added(request)
        return request

    def abort(self, request_id: str) -> None:
        request = self.requests[request_id]
        delay = request.state == "loading" and request_id not in self.loaded_ids
        self.loaded_ids.discard(request_id)
        self.failed_ids.discard(request_id)
        if request in self.running:
            self.running.remove(request)
        if request in self.waiting:
            self.waiting.remove(request)
        request.state = "finished"
        self._finish(request, delay)

    def reset(self, *, running: bool) -> bool:
        """reset_prefix_cache(reset_running_requests, reset_connector=True)."""
        while running and self.running:
            self._preempt(self.running.pop())
        cleared = len(self.free) == len(self.all_blocks)
        if cleared:
            for block in list(self.prefixes.values()):
                self._forget(block)
        return self.side.reset() and cleared

    def change_weights(self) -> None:
        """As `collective_rpc("reload_weights")`, in step with the workers."""
        while self.queue:
            self._update()
        self.weights += 1
        self.side.weights_changed("reload_weights")

    # One turn of the core's loop

    @property
    def is_busy(self) -> bool:
        return bool(self.requests or self.finished_ids or self.queue)

    def step(self) -> None:
        """`step_with_batch_queue`: schedule a step, and look at the oldest one if the queue is full."""
        self.steps += 1
        if self.requests or self.finished_ids:
            self.queue.append(self._schedule())
            self._execute(self.queue[-1])
            if len(self.queue) < self.depth and self.queue[-1].counts:
                return
        if self.queue:
            self._update()

    def run(self, limit: int | None = None) -> None:
        """Until nothing is left to do; `limit` steps at most, by default in proportion to the requests."""
        limit = limit or 400 * (1 + len(self.requests))
        for _ in range(limit):
            if not self.is_busy:
                break
            self.step()
            self.pool.happen()
        assert not self.is_busy, f"no end after {limit} steps"
        self.step()

    # Scheduler

    def _schedule(self) -> Scheduled:
        budget, sync = self.budget, False
        counts: dict[str, int] = {}
        grown: list[tuple[str, list[int]]] = []
        peer_loads: list[list[int]] = []
        preempted = False
        drafts: dict[str, int] = {}
        index = 0
        while index < len(self.running) and budget > 0:
            request = self.running[index]
            known = request.num_tokens + request.unseen
            planned = self.draft_tokens if request.num_computed_tokens >= request.prompt_tokens else 0
            count = min(known - request.num_computed_tokens + planned, budget)
            said = request.num_tokens + request.in_flight
            if count <= 0 or (request.unseen and said >= request.prompt_tokens + request.max_tokens):
                index += 1
                continue
            new = self._grow(request, request.num_computed_tokens + count)
            while new is None:
                victim = self.running.pop()
                self._preempt(victim)
                preempted = True
                if victim is request:
                    break
                new = self._grow(request, request.num_computed_tokens + count)
            if new is None:
                break
            counts[request.request_id] = count
            if request.num_computed_tokens + count > known:
                drafts[request.request_id] = request.num_computed_tokens + count - known
            grown.append((request.request_id, [block.block_id for block in new]))
            self._cache(request, request.num_computed_tokens + count)
            budget -= count
            index += 1
        skipped: deque[Request] = deque()
        while not preempted and budget > 0 and self.waiting:
            request = self.waiting.popleft()
            if request.state == "loading":
                if request.request_id not in self.loaded_ids:
                    skipped.append(request)
                    continue
                self._loaded(request)
            if request.stale:
                skipped.append(request)
                continue
            external, is_async, peer = 0, False, False
            local: list[Block] = []
            if request.num_computed_tokens == 0:
                local = self._hit(request)
                offered, is_async = self.side.matched_tokens(request, len(local) * self.size)
                if offered is None:
                    skipped.append(request)
                    continue
                external = offered
                claimed = self.peer_offers.pop(request.request_id, 0) * self.size
                claimed = (
                    min(claimed, (request.num_tokens - 1) // self.size * self.size) - len(local) * self.size
                )
                if not external and claimed > 0:
                    external, peer = claimed, True
            computed = (
                len(local) * self.size + external
                if request.num_computed_tokens == 0
                else request.num_computed_tokens
            )
            count = 0 if is_async else min(request.num_tokens - computed, budget)
            if request.num_computed_tokens == 0:
                for block in local:
                    self._use(block)
                request.blocks = list(local)
            new = self._grow(request, computed + count)
            if new is None:
                if request.num_computed_tokens == 0:
                    self._free(request)
                self.waiting.appendleft(request)
                break
            table = SimpleNamespace(get_block_ids=lambda r=request: ([block.block_id for block in r.blocks],))
            self.side.allocated(request, table, 0 if peer else external)
            if peer:
                peer_loads.append(
                    [
                        block.block_id
                        for block in request.blocks[len(local) : len(local) + external // self.size]
                    ]
                )
            if is_async:
                request.num_computed_tokens, request.state = computed, "loading"
                skipped.append(request)
                continue
            sync = sync or external > 0
            request.state = "running"
            request.starts += 1
            request.num_computed_tokens = computed
            self.running.append(request)
            counts[request.request_id] = count
            self._cache(request, computed + count)
            budget -= count
        self.waiting.extendleft(reversed(skipped))
        output = SimpleNamespace(
            num_scheduled_tokens=counts,
            total_num_scheduled_tokens=sum(counts.values()),
            has_sync_kv_loads=sync,
            scheduled_cached_reqs=SimpleNamespace(
                req_ids=[name for name, _ in grown],
                resumed_req_ids=set(),
                new_block_ids=[(ids,) for _, ids in grown],
            ),
        )
        starts = {
            name: self.requests[name].num_computed_tokens - self.requests[name].rejected for name in counts
        }
        tables = {name: self.requests[name].blocks for name in counts}
        jobs = self.side.jobs(output)
        finished, self.finished_ids = self.finished_ids, set()
        speaks = set()
        accepted = {name: min(self.accepts(count), count) for name, count in drafts.items()}
        for name, count in counts.items():
            request = self.requests[name]
            request.num_computed_tokens += count
            request.in_flight += 1
            if request.num_computed_tokens >= request.num_tokens + request.unseen:
                speaks.add(name)
                request.unseen += 1 + drafts.get(name, 0)
                request.rejected += drafts.get(name, 0) - accepted.get(name, 0)
        return Scheduled(counts, starts, tables, drafts, accepted, speaks, sync, finished, jobs, peer_loads)

    def _update(self) -> None:
        step = self.queue.popleft()
        skip = self._invalid(step) if step.invalid else set()
        for name in step.counts:
            request = self.requests.get(name)
            if request is None:
                continue
            request.in_flight -= 1
            if name in skip:
                continue
            if request.stale:
                request.stale -= 1
                continue
            drafts = step.drafts.get(name, 0)
            rejected = drafts - step.accepted.get(name, 0)
            if name in step.speaks:
                request.unseen -= 1 + drafts
                request.rejected -= rejected
            if request.state != "running":
                continue
            if name not in step.speaks:
                continue  # not all of the prompt yet
            request.num_computed_tokens -= rejected
            request.tokens = request.sequence(request.num_tokens + 1 + drafts - rejected)
            if request.num_tokens >= request.prompt_tokens + request.max_tokens:
                self.running.remove(request)
                request.state = "finished"
                self._finish(request, delay=False)
        report = step.reports[0]
        for other in step.reports[1:]:
            report = report.merged(other)
        self.side.reported(report, step.invalid, failed_load=False)
        for name in step.finished_loads:
            request = self.requests[name]
            if request.state == "loading":
                self.loaded_ids.add(name)
            else:
                assert request.state == "finished"
                self._free(request)
                del self.requests[name]

    def _invalid(self, step: Scheduled) -> set[str]:
        """`_update_requests_with_invalid_blocks`."""
        affected = set()
        marked: set[int] = set()
        loading = [request for request in self.waiting if request.state == "loading"]
        for request in [*loading, *self.running]:
            computed = request.num_computed_tokens - step.counts.get(request.request_id, 0)
            is_affected = has_marked = False
            for number, block in enumerate(request.blocks[: -(-computed // self.size)]):
                if block.block_id not in step.invalid:
                    continue
                is_affected = True
                if block.block_id in marked:
                    continue
                marked.add(block.block_id)
                if not has_marked:
                    has_marked = True
                    request.num_computed_tokens = number * self.size
            if is_affected:
                if not has_marked:
                    request.num_computed_tokens = computed - request.rejected
                if request.state == "loading":
                    self.failed_ids.add(request.request_id)
                else:
                    affected.add(request.request_id)
                    request.stale = sum(request.request_id in other.counts for other in self.queue)
                    request.unseen = request.rejected = 0
        return affected

    def _loaded(self, request: Request) -> None:
        """`_update_waiting_for_remote_kv`."""
        name = request.request_id
        self.loaded_ids.discard(name)
        if name in self.failed_ids and not request.num_computed_tokens:
            self._free(request)
        else:
            self._cache(request, request.num_computed_tokens)
        self.failed_ids.discard(name)
        if request.num_computed_tokens == request.num_tokens:
            request.num_computed_tokens -= 1
        request.state = "waiting"

    def _preempt(self, request: Request) -> None:
        self._free(request)
        request.num_computed_tokens, request.state = 0, "waiting"
        request.stale, request.unseen, request.rejected = request.in_flight, 0, 0
        self.waiting.appendleft(request)

    def _finish(self, request: Request, delay: bool) -> None:
        self.side.finished(request.request_id)
        self.finished_ids.add(request.request_id)
        if not delay:
            self._free(request)
            del self.requests[request.request_id]

    # Blocks

    def _grow(self, request: Request, tokens: int) -> list[Block] | None:
        lacking = -(-tokens // self.size) - len(request.blocks)
        if lacking > len(self.free):
            return None
        new = []
        for _ in range(lacking):
            block = self.free.popleft()
            self._forget(block)
            block.users = 1
            new.append(block)
        request.blocks += new
        return new

    def _use(self, block: Block) -> None:
        if not block.users:
            self.free.remove(block)
        block.users += 1

    def _free(self, request: Request) -> None:
        for block in reversed(request.blocks):
            block.users -= 1
            if not block.users:
                self.free.append(block)
        request.blocks, request.cached = [], 0

    def _forget(self, block: Block) -> None:
        if block.prefix is not None:
            if self.prefixes.get(block.prefix) is block:
                del self.prefixes[block.prefix]
            block.prefix = None

    def _hit(self, request: Request) -> list[Block]:
        hit = []
        for number in range((request.num_tokens - 1) // self.size):
            block = self.prefixes.get(tuple(request.tokens[: (number + 1) * self.size]))
            if block is None:
                break
            hit.append(block)
        request.cached = len(hit)
        return hit

    def _cache(self, request: Request, tokens: int) -> None:
        whole = min(tokens, request.num_tokens) // self.size
        for number in range(request.cached, whole):
            block, prefix = request.blocks[number], tuple(request.tokens[: (number + 1) * self.size])
            if block.prefix is None:
                block.prefix = prefix
                self.prefixes.setdefault(prefix, block)
        request.cached = max(request.cached, whole)

    # Workers

    def _execute(self, step: Scheduled) -> None:
        for request_id in step.counts:
            self._name(self.requests[request_id])
        for worker, memory in zip(self.workers, self.memories, strict=True):
            self._execute_on(worker, memory, step)

    def _execute_on(self, worker: WorkerSide, memory: KvOfModel, step: Scheduled) -> None:
        jobs = step.jobs
        worker.begin_step(jobs)
        if step.sync_loads:
            worker.start_loads(jobs)
        for ids in step.peer_loads:
            for block_id in ids:
                memory.load_of_peer(block_id, fails=self.peer_fails)
        if step.sync_loads:
            self.pool.happen()
        if step.counts:
            for layer in self.layers:
                worker.wait_for_layer(layer)
            self._compute(memory, step)
        if not step.sync_loads:
            worker.start_loads(jobs)
        defers = self.order == "v1 with drafts" and bool(step.counts)
        if not defers:
            worker.store(jobs)
        finished = worker.finished_loads(step.finished, jobs)
        step.finished_loads = finished if worker is self.workers[0] else self._of_all(step, finished)
        step.invalid |= worker.take_failed_blocks()
        if self.peer_fails:
            step.invalid |= {block_id for ids in step.peer_loads for block_id in ids}
        step.reports.append(worker.report(jobs))
        if defers:
            worker.store(jobs)

    def _of_all(self, step: Scheduled, finished: set[str]) -> set[str]:
        assert step.finished_loads == finished, "the model's ranks load in step"
        return finished

    def _compute(self, memory: KvOfModel, step: Scheduled) -> None:
        """All requests write a layer before any of them reads it, so what they share comes first."""
        rows = []
        for name, count in step.counts.items():
            request, start = self.requests[name], step.starts[name]
            right = request.sequence(start + count)
            true_until = start + count - step.drafts.get(name, 0) + step.accepted.get(name, 0)
            for place in range(start, start + count):
                token = right[place] if place < true_until else right[place] + ALPHABET
                rows.append((place, step.tables[name], token))
        for place, table, token in sorted(rows, key=lambda row: row[0]):
            before = [memory.token(table[at // self.size].block_id, at % self.size) for at in range(place)]
            memory.put_token(
                table[place // self.size].block_id, place % self.size, kv_of(before, token, self.weights)
            )

    def _name(self, request: Request) -> None:
        """Note what belongs under the keys of a request's blocks."""
        space, tokens = self.keys.space, request.sequence(request.num_tokens + 8)
        weights = self.weights_of[space.generation]
        kv: list[bytes] = []
        for token in tokens:
            kv.append(kv_of(kv, token, weights))
        for number, key in enumerate(space.block_keys(self.pool.seal, tokens)):
            content = b"".join(kv[number * self.size : (number + 1) * self.size])
            for memory in self.memories:
                for index in range(len(space.object_bytes)):
                    name = space.object_key(self.pool.seal, key, index, memory.rank)
                    self.names[name] = memory.object(content, index)


class KvOfModel(BytesMemory):
    """KV memory of one rank."""

    def __init__(self, engine: EngineModel, rank: int) -> None:
        super().__init__(engine.pool.space.object_bytes, rank)
        self._engine = engine

    def object(self, kv: bytes, index: int) -> bytes:
        """One object of a block whose tokens have this KV: half of it, mixed with the rank."""
        half = len(kv) // 2
        return bytes(byte ^ self.rank for byte in kv[index * half : (index + 1) * half])

    def token(self, block_id: int, place: int) -> bytes:
        kv = b"".join(self.content.get((block_id, index), bytes(8)) for index in range(2))
        return bytes(byte ^ self.rank for byte in kv[place * 4 : place * 4 + 4])

    def put_token(self, block_id: int, place: int, kv: bytes) -> None:
        index, at = divmod(place * 4, 8)
        content = bytearray(self.content.get((block_id, index), bytes(8)))
        content[at : at + 4] = bytes(byte ^ self.rank for byte in kv)
        self.content[block_id, index] = bytes(content)

    def load_of_peer(self, block_id: int, *, fails: bool) -> None:
        """Another connector writes: what belongs there, or something else."""
        owner = next(
            request
            for request in self._engine.requests.values()
            if block_id in {b.block_id for b in request.blocks}
        )
        number = next(n for n, block in enumerate(owner.blocks) if block.block_id == block_id)
        kv: list[bytes] = []
        for token in owner.sequence((number + 1) * 4):
            kv.append(kv_of(kv, token, self._engine.weights))
        content = b"".join(kv[number * 4 :])
        for index in range(2):
            right = self.object(content, index)
            self.content[block_id, index] = bytes(byte ^ 0x55 for byte in right) if fails else right
