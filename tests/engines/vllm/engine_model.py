"""A small model of vLLM 0.32's engine core, with the connector's two sides and a pool in a test's hand."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from types import SimpleNamespace
from typing import Any, cast

from engines.vllm.events import PoolEvents
from engines.vllm.foreign import EngineFaults
from engines.vllm.scheduler import SchedulerSide
from engines.vllm.worker import WorkerSide
from hostlib.engine.space import KeyChain, KvSpace
from tests.engines.vllm.engine_blocks import BlockPool, Request
from tests.engines.vllm.engine_memory import KvOfModel, kv_of_all
from tests.engines.vllm.engine_runner import RunnerModel, StepFailedError
from tests.engines.vllm.engine_scheduler import Scheduled, SchedulerModel
from tests.engines.vllm.pool_in_hand import PoolInHand


class ModelKeys:
    """As `EngineKeys`, which needs torch."""

    def __init__(self, space: KvSpace, pool: PoolInHand) -> None:
        self.space, self._seal = space, pool.seal
        self.on_generation: Callable[[str], None] = lambda name: None
        self.on_media: Callable[[Future[dict[int, bytes]]], None] = lambda media: media.set_result({})

    def begin_media(self, request: Any) -> Future[dict[int, bytes]]:
        """Nothing to name; that takes as long as a test says."""
        named: Future[dict[int, bytes]] = Future()
        self.on_media(named)
        return named

    def of(self, request: Any, media: Any) -> Any:
        chain = KeyChain(self.space, self._seal)
        size = self.space.block_tokens

        def extend(blocks: int) -> list[bytes]:
            for number in range(len(chain.keys), blocks):
                chain.extend(request.all_token_ids[number * size : (number + 1) * size])
            return chain.keys

        return SimpleNamespace(extend=extend, keys=chain.keys, adapter=None)

    def new_generation(self) -> None:
        self.space = self.space.new_generation()
        self.on_generation(self.space.generation)


class EngineModel:
    """What a user does to an engine, and its loop."""

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
        events: PoolEvents | None = None,
        applies_others_adapters: bool = False,
    ) -> None:
        """`depth` is the number of steps on their way at once, `order` that of the runner's calls."""
        self.pool, self._depth = pool, depth
        self.cache = BlockPool(blocks, pool.space.block_tokens)
        self.scheduler = SchedulerModel(
            self.cache,
            budget=budget,
            draft_tokens=draft_tokens,
            is_async=depth > 1,
            defers_frees=depth > 1 and loads,
        )
        self.keys = ModelKeys(pool.space, pool)
        self._weights_of = {self.keys.space.generation: 0}
        self.keys.on_generation = lambda name: self._weights_of.update({name: self.runner.weights})
        self.side = self.scheduler.side = SchedulerSide(
            cast(Any, pool),
            cast(Any, self.keys),
            self.scheduler,
            background=background,
            loads=loads,
            stores=stores,
            events=events,
            faults=EngineFaults(
                recomputes_wrong=order == "v2",
                schedules_ahead=depth > 1,
                applies_others_adapters=applies_others_adapters,
            ),
        )
        ranks = range(pool.space.tensor_parallel)
        self.memories = [KvOfModel(pool.space.object_bytes, rank) for rank in ranks]
        self.workers = [
            WorkerSide(
                cast(Any, pool),
                [["0"], ["1"]],
                memory,
                rank=memory.rank,
                background=background,
                notes_stored=events is not None,
            )
            for memory in self.memories
        ]
        self.runner = RunnerModel(
            self.workers,
            self.memories,
            self.scheduler.requests,
            order=order,
            block_tokens=self.cache.size,
            happen=pool.happen,
        )
        self.queue: deque[Scheduled] = deque()
        self.names: dict[bytes, bytes] = {}
        """What has to be stored under each object's key."""
        self._named: set[tuple[str, tuple[int, ...]]] = set()

    # What a user does

    def add(
        self, request_id: str, tokens: list[int], max_tokens: int = 4, adapter: str | None = None
    ) -> Request:
        request = Request(request_id, list(tokens), len(tokens), max_tokens)
        if adapter is not None:
            request.lora_request = SimpleNamespace(lora_name=adapter, load_inplace=False)
        self.scheduler.add(request)
        return request

    def unfinished(self) -> list[str]:
        """Names of the requests that can be aborted."""
        return [name for name, one in self.scheduler.requests.items() if one.state != "finished"]

    def abort(self, request_id: str) -> None:
        self.scheduler.abort(request_id)

    def reset(self, *, running: bool) -> bool:
        """reset_prefix_cache(reset_running_requests, reset_connector=True).

        vLLM raises an error if it preempts all requests, and yet some hold blocks; here that is False.
        """
        if running:
            self.scheduler.preempt_all()
        is_cleared = self.cache.reset()
        return not (running and not is_cleared) and self.side.reset() and is_cleared

    def change_weights(self) -> None:
        """As `collective_rpc("reload_weights")`, in step with the workers."""
        while self.queue:
            self.scheduler.update(self.queue.popleft())
        self.runner.weights += 1
        self.side.weights_changed("reload_weights")

    def load_weights(self) -> None:
        """Training loads weights in the workers' processes, of which the scheduler is not told."""
        while self.queue:
            self.scheduler.update(self.queue.popleft())
        self.runner.weights += 1
        if self.workers[0]._generation != self.side._generation:  # nothing was computed in this one
            self._weights_of[self.keys.space.generation] = self.runner.weights
        for worker in self.workers:
            worker.weights_changed("load_weights")

    def sleep(self) -> None:
        """/sleep and /wake_up: requests are preempted, and the KV memory comes back with anything in it."""
        self.scheduler.preempt_all()
        while self.queue:
            self.scheduler.update(self.queue.popleft())
        self.cache.reset()
        self.side.reset()
        self.side.weights_changed("sleep")
        for memory in self.memories:
            memory.content = {place: bytes(len(content)) for place, content in memory.content.items()}

    def fail(self, moment: str = "forward", *, aborts: bool = True) -> None:
        """A step raises an error. Whoever runs the engine aborts all requests if `aborts`, and goes on.

        vLLM's own cache has the blocks of the step as if they had been computed, and its scheduler gets
        nothing that the workers said of it.
        """
        step = self.scheduler.schedule()
        for name in step.counts:
            self._name(self.scheduler.requests[name])
        self.runner.raises = moment
        with suppress(StepFailedError):
            self.runner.execute(step)
        self.runner.raises = None
        self.scheduler.forget(step)
        for name in self.unfinished() if aborts else ():
            self.abort(name)

    # The core's loop

    @property
    def is_busy(self) -> bool:
        return bool(self.scheduler.has_requests or self.queue)

    def step(self) -> None:
        """`step_with_batch_queue`: schedule a step, and look at the oldest one if the queue is full."""
        if self.scheduler.has_requests:
            step = self.scheduler.schedule()
            for name in step.counts:
                self._name(self.scheduler.requests[name])
            self.runner.execute(step)
            self.queue.append(step)
            if len(self.queue) < self._depth and (step.counts or self.scheduler.has_requests):
                return
        if self.queue:
            self.scheduler.update(self.queue.popleft())

    def run(self, limit: int | None = None) -> None:
        """Until nothing is left to do; `limit` steps at most, by default in proportion to the requests."""
        limit = limit or 400 * (1 + len(self.scheduler.requests))
        for _ in range(limit):
            if not self.is_busy:
                break
            self.step()
            self.pool.happen()
        assert not self.is_busy, f"no end after {limit} steps"
        self.step()

    def _name(self, request: Request) -> None:
        """Note what belongs under the keys of a request's blocks."""
        space, tokens = self.keys.space, request.sequence(request.num_tokens + 8)
        if (space.generation, tuple(tokens)) in self._named:
            return
        self._named.add((space.generation, tuple(tokens)))
        kv, size = kv_of_all(tokens, self._weights_of[space.generation]), self.cache.size
        for number, key in enumerate(space.block_keys(self.pool.seal, tokens)):
            content = b"".join(kv[number * size : (number + 1) * size])
            for memory in self.memories:
                for index in range(len(space.object_bytes)):
                    name = space.object_key(self.pool.seal, key, index, memory.rank)
                    self.names[name] = memory.object(content, index)
