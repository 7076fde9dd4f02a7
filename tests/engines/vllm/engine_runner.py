"""A small model of vLLM's workers: in which order its two runners call a connector, what they compute.

`v1/worker/kv_connector_model_runner_mixin.py` is V1, `v1/worker/gpu/kv_connector.py` is V2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from engines.vllm.worker import WorkerSide
from tests.engines.vllm.engine_blocks import ALPHABET, Block, Request
from tests.engines.vllm.engine_memory import KvOfModel, kv_of, kv_of_all
from tests.engines.vllm.engine_scheduler import Scheduled


class StepFailedError(Exception):
    """An error that ends a step, as when memory runs out."""


MOMENTS = ("before", "forward", "after")
"""When a step may raise an error: while its batch is made, before the forward pass has computed anything, and
when a token is chosen, as by a logits processor."""


class RunnerModel:
    """All ranks of an engine."""

    def __init__(
        self,
        workers: Sequence[WorkerSide],
        memories: Sequence[KvOfModel],
        requests: Mapping[str, Request],
        *,
        order: str,
        block_tokens: int,
        happen: Callable[[], None],
    ) -> None:
        """`happen` lets the pool go on, as it does while an engine waits for it."""
        self._ranks = list(zip(workers, memories, strict=True))
        self._requests, self._order, self._size, self._happen = requests, order, block_tokens, happen
        self.weights = 0
        """Number of the weights that it computes with."""
        self.layers: tuple[str, ...] = ("0", "1")
        """Layers whose attention waits for its KV."""
        self.peer_fails = False
        """Whether another connector's loads fail."""
        self.peer_lies = False
        """Whether another connector loads wrong KV, as that of another adapter, and says nothing."""
        self.raises: str | None = None
        """When steps raise an error, of `MOMENTS`; None if they don't."""
        self._lost: set[str] = set()
        """Requests that the V2 runner computes wrong from a failed load on until they start over."""

    def execute(self, step: Scheduled) -> None:
        """Compute a step on all ranks."""
        for rank, (worker, memory) in enumerate(self._ranks):
            finished = self._execute_on(worker, memory, step)
            assert rank == 0 or step.finished_loads == finished, "the model's ranks load in step"
            step.finished_loads = finished

    def _execute_on(self, worker: WorkerSide, memory: KvOfModel, step: Scheduled) -> set[str]:
        jobs = step.jobs
        worker.begin_step(jobs)
        if self.raises == "before":
            raise StepFailedError
        if step.sync_loads:
            worker.start_loads(jobs)
        step.invalid |= self._load_of_peer(memory, step)
        if step.sync_loads:
            self._happen()
        try:
            if step.counts:
                for layer in self.layers:
                    worker.wait_for_layer(layer)
                self._compute(memory, step)
        except StepFailedError:
            if self._order != "v2":  # V1 does so whatever happens
                self._end(worker, step)
            raise
        return self._end(worker, step)

    def _end(self, worker: WorkerSide, step: Scheduled) -> set[str]:
        """End the step after its forward pass; return the requests whose loads are over."""
        jobs = step.jobs
        if not step.sync_loads:
            worker.start_loads(jobs)
        defers = self._order == "v1 with drafts" and bool(step.counts)
        if not defers:
            worker.store(jobs)
        finished = worker.finished_loads(step.finished, jobs)
        step.invalid |= worker.take_failed_blocks()
        step.reports.append(worker.report(jobs))
        if self.raises == "after" and step.counts:
            raise StepFailedError
        if defers:
            worker.store(jobs)
        return finished

    def _compute(self, memory: KvOfModel, step: Scheduled) -> None:
        """All requests write a layer before any of them reads it, so what they share comes first."""
        if self.raises == "forward":
            raise StepFailedError
        rows = []
        for name, count in step.counts.items():
            start = step.starts[name]
            right = self._requests[name].sequence(start + count)
            if name in self._lost and name in step.grown:
                right = [token + 2 * ALPHABET for token in right]
            true_until = start + count - step.drafts.get(name, 0) + step.accepted.get(name, 0)
            for place in range(start, start + count):
                token = right[place] if place < true_until else right[place] + ALPHABET
                rows.append((place, step.tables[name], token))
        for place, table, token in sorted(rows, key=lambda row: row[0]):
            before = self._before(memory, table, place)
            block_id = table[place // self._size].block_id
            memory.put_token(block_id, place % self._size, kv_of(before, token, self.weights))
        for name, start in step.starts.items():
            own = kv_of_all(self._requests[name].sequence(start), self.weights)
            if self._before(memory, step.tables[name], start) != own:
                step.misled.add(name)

    def _before(self, memory: KvOfModel, table: Sequence[Block], end: int) -> list[bytes]:
        """The KV of a request's first tokens."""
        return [memory.token(table[at // self._size].block_id, at % self._size) for at in range(end)]

    def _load_of_peer(self, memory: KvOfModel, step: Scheduled) -> set[int]:
        """Another connector writes its blocks; return those that failed."""
        failed = set()
        self._lost -= {name for name in step.counts if name not in step.grown}
        for name, first, end in step.peer_loads:
            kv = kv_of_all(self._requests[name].sequence(end * self._size), self.weights)
            for number in range(first, end):
                block_id = step.tables[name][number].block_id
                content = b"".join(kv[number * self._size : (number + 1) * self._size])
                memory.put(block_id, content, is_wrong=self.peer_fails or self.peer_lies)
                failed |= {block_id} if self.peer_fails else set()
            if self.peer_fails and self._order == "v2":
                self._lost.add(name)
        return failed
