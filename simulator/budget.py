"""Worker with fixed times, as in KVSwitch's evaluation (github.com/kaiitunnz/kvswitch, mock/worker.py).

Requests are served side by side as long as their computed and answered tokens fit the budget. Each takes a
fixed time, a time for every token of its prompt, and a time for every token of its answer. Requests that do
not fit wait. When room is given back, all that wait are tried in order, and each that fits starts, even if it
passes a larger one (KVSwitch's condition variable wakes all of them).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from hostlib.model.remaining import prefix_blocks
from simulator.events import Event, Loop, Steps
from simulator.messages import Block
from simulator.node import Node
from simulator.record import Record
from workload.trace import Request

MS, US = 1e-3, 1e-6


class Budget:
    """Room for a number of tokens. A request larger than all of it runs alone."""

    def __init__(self, loop: Loop, tokens: float) -> None:
        self.used = 0.0
        self._loop, self._tokens = loop, tokens
        self._waiting: list[tuple[float, Event]] = []

    @property
    def wanted(self) -> float:
        """Return the tokens of the requests that wait."""
        return sum((tokens for tokens, _ in self._waiting), 0.0)

    def take(self, tokens: float) -> Event | None:
        """Take room and return None; if there is too little, return the event of taking it later."""
        if self._fits(tokens):
            self.used += tokens
            return None
        event = self._loop.event()
        self._waiting.append((tokens, event))
        return event

    def give(self, tokens: float) -> None:
        """Give room back and start the waiting requests that fit now."""
        self.used -= tokens
        waiting, self._waiting = self._waiting, []
        for place in waiting:
            if self._fits(place[0]):
                self.used += place[0]
                place[1].succeed()
            else:
                self._waiting.append(place)

    def _fits(self, tokens: float) -> bool:
        return not self.used or self.used + tokens <= self._tokens


class BudgetNode(Node):
    """Node that serves requests as the module says; it fetches nothing."""

    def _set_up(self) -> None:
        self.budget = Budget(self._loop, self._options.budget_tokens)
        self.on_load: Callable[[], None] = lambda: None
        """Function that is called when a request begins to wait, starts or ends."""

    @property
    def load_tokens(self) -> int:
        """Return the computed and answered tokens of all requests that run or wait."""
        return round(self.budget.used + self.budget.wanted)

    def serve(
        self,
        request: Request,
        chain: Sequence[Block],
        chunks: Mapping[int, Block],
        fetch: bool = True,
        prefilled: Callable[[], None] = lambda: None,
    ) -> Steps:
        """Serve one request from now on."""
        options = self._options
        record = Record(self._loop.now, request.input_tokens, request.output_tokens)
        sources: dict[bytes, str] = {}
        self._look_up(chain, sources)
        hits = prefix_blocks(chain, sources)
        computed_tokens, _ = self._cost.prefill_span(request.input_tokens, hits)
        room_tokens = computed_tokens + request.output_tokens
        wait = self.budget.take(room_tokens)
        self.on_load()
        if wait is not None:
            yield wait
            self.on_load()
        held_tokens = request.input_tokens - computed_tokens
        record.prefill_s = options.request_ms * MS + computed_tokens * options.computed_token_us * US
        record.prefill_s += held_tokens * options.held_token_us * US
        record.saved_s = held_tokens * (options.computed_token_us - options.held_token_us) * US
        yield record.prefill_s
        self._tiers.keep(chain)
        record.ttft_s = self._loop.now - record.arrival_s
        prefilled()
        for block in chain[:hits]:
            record.sources[sources[block.key]] += 1
        record.sources["recomputed"] = len(chain) - hits
        self.gpu.gaps.add(options.output_token_ms * MS, request.output_tokens - 1)
        yield (request.output_tokens - 1) * options.output_token_ms * MS
        self.budget.give(room_tokens)
        self.on_load()
        record.end_s = self._loop.now
        self.records.append(record)
