"""Node that works in steps like vLLM's engine (version 1 of it, as of 0.8.5), each of which is simulated.

A step has `chunk_tokens` tokens for all requests. Running requests come first: a token for each that decodes,
then the rest of prompts that have begun. Waiting requests follow in order, as long as there are tokens and
room for their KV, so one step may end a prompt and begin others. Blocks that the step's new requests can
fetch are loaded before it, one request after the other (KVConnectorBase_V1.start_load_kv with LMCache's
connector: vLLM pull request 15960). Every request in the step waits for that; requests that arrive meanwhile
wait for the next step. A first token is there at the end of the step that computes the last token of its
prompt.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from hostlib.model.remaining import Remaining
from scenario import GB
from simulator.events import Event, Steps
from simulator.messages import Block
from simulator.node import Node
from simulator.record import Record
from workload.trace import Request

US = 1e-6


@dataclass(slots=True, eq=False)
class _Job:
    """Request with its numbers of tokens."""

    request: Request
    chain: Sequence[Block]
    fetch: bool
    record: Record
    first: Event
    done: Event
    remaining: Remaining[Block] | None = None
    left: int = 0
    """Tokens of the prompt that are still to be computed."""
    behind: int = 0
    """Tokens of the prompt that are there."""
    to_decode: int = 0
    sources: dict[bytes, str] = field(default_factory=dict)

    @property
    def room(self) -> int:
        """Return the tokens that its KV takes."""
        return self.request.input_tokens + self.request.output_tokens


class StepNode(Node):
    """Node that works in steps, as the module says."""

    def _set_up(self) -> None:
        self._room = self._options.running_gb * GB / self._cost.model.kv_bytes_per_token
        self._free = self._room
        self._waiting: deque[_Job] = deque()
        self._running: list[_Job] = []
        self._works = False

    def serve(
        self,
        request: Request,
        chain: Sequence[Block],
        chunks: Mapping[int, Block],
        fetch: bool = True,
        prefilled: Callable[[], None] = lambda: None,
    ) -> Steps:
        """Serve one request from now on."""
        loop = self._loop
        record = Record(loop.now, request.input_tokens, request.output_tokens)
        job = _Job(request, chain, fetch, record, loop.event(), loop.event())
        self._waiting.append(job)
        if not self._works:
            self._works = True
            loop.start(self._work())
        yield job.first
        record.ttft_s = loop.now - record.arrival_s
        prefilled()
        assert job.remaining is not None
        self._tiers.keep(job.remaining.kept(chunks))
        job.remaining.count(record.sources)
        self._store(job.remaining.new(chunks))
        if request.output_tokens > 1:
            yield job.done
        record.end_s = loop.now
        self.records.append(record)

    def _work(self) -> Steps:
        while self._waiting or self._running:
            yield from self._step()
        self._works = False

    def _step(self) -> Steps:
        began_s, tokens = self._loop.now, self._options.chunk_tokens
        decoding = [job for job in self._running if not job.left]
        tokens -= len(decoding)
        parts: list[tuple[_Job, int]] = []
        for job in [job for job in self._running if job.left]:
            part = min(job.left, max(0, tokens))
            tokens -= part
            parts.append((job, part))
        for job in list(self._waiting):
            if tokens <= 0 or (self._running and job.room > self._free):
                break
            self._waiting.popleft()
            self._free -= min(job.room, self._room)
            self._running.append(job)
            yield from self._begin(job)
            part = min(job.left, tokens)
            tokens -= part
            parts.append((job, part))
        cost = self._cost
        compute_s = sum((cost.prefill_s(part, job.behind) for job, part in parts if part), 0.0)
        if decoding:
            context = sum(job.request.input_tokens for job in decoding) / len(decoding)
            compute_s += len(decoding) * cost.decode_s(1, context, batch=len(decoding))
        yield compute_s
        self.gpu.busy_s += compute_s
        self.gpu.gaps.add(self._loop.now - began_s, len(decoding))
        for job, part in parts:
            self._computed(job, part)
        for job in decoding:
            job.to_decode -= 1
            if not job.to_decode:
                self._end(job)

    def _begin(self, job: _Job) -> Steps:
        """Look up and load a request's blocks, and do the engine's own work for each token of its prompt."""
        request, record = job.request, job.record
        missing = self._look_up(job.chain, job.sources)
        if job.fetch:
            yield from self._fetch(missing, len(job.chain), job.sources, record)
        job.remaining = self._prefill.remaining(request, job.chain, job.sources, None)
        record.prefill_s = job.remaining.work_s
        record.saved_s = self._cost.request_prefill_s(request.input_tokens, 0) - record.prefill_s
        spans = self._cost.computed_spans(request.input_tokens, len(job.chain), job.remaining.computed)
        job.left = sum(span[0] for span in spans)
        job.behind = request.input_tokens - job.left
        own_s = request.input_tokens * self._options.engine_token_us * US
        yield own_s
        self.gpu.busy_s += own_s
        if self.teller is not None:
            self.teller.tell(job.remaining.new({}), job.chain)

    def _computed(self, job: _Job, part: int) -> None:
        job.left -= part
        job.behind += part
        if job.left:
            return
        job.first.succeed()
        job.to_decode = job.request.output_tokens - 1
        if job.to_decode <= 0:
            self._end(job)

    def _end(self, job: _Job) -> None:
        self._running.remove(job)
        self._free += min(job.room, self._room)
        job.done.succeed()
