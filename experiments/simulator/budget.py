"""A worker with fixed times, as KVSwitch's evaluation has it (github.com/kaiitunnz/kvswitch, mock/worker.py).

Requests whose computed and answered tokens fit its budget are served side by side, each in a time of its own:
so much, and so much for every token that it does not hold, then so much for every token of the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from experiments.simulator.events import Steps
from experiments.simulator.messages import Block
from experiments.simulator.node import Node, Record
from hostlib.remaining import prefix_blocks
from workload.trace import Request

MS, US = 1e-3, 1e-6


class BudgetNode(Node):
    """See the module; nothing is fetched."""

    def serve(
        self,
        request: Request,
        chain: Sequence[Block],
        chunks: Mapping[int, Block],
        fetch: bool = True,
        prefilled: Callable[[], None] = lambda: None,
    ) -> Steps:
        """One request, from now on."""
        options = self._options
        record = Record(self._loop.now, request.input_tokens, request.output_tokens)
        sources: dict[bytes, str] = {}
        self._look_up(chain, sources)
        hits = prefix_blocks(chain, sources)
        computed_tokens, _ = self._cost.prefill_span(request.input_tokens, hits)
        room_tokens = computed_tokens + request.output_tokens
        yield from self.gpu.admit(room_tokens)
        held_tokens = request.input_tokens - computed_tokens
        record.prefill_s = options.request_ms * MS + computed_tokens * options.computed_token_us * US
        record.prefill_s += held_tokens * options.held_token_us * US
        record.saved_s = held_tokens * (options.computed_token_us - options.held_token_us) * US
        yield record.prefill_s
        self._tiers.keep([block.key for block in chain])
        record.ttft_s = self._loop.now - record.arrival_s
        prefilled()
        for block in chain[:hits]:
            record.sources[sources[block.key]] += 1
        record.sources["recomputed"] = len(chain) - hits
        self.gpu.gaps.add(options.output_token_ms * MS, request.output_tokens - 1)
        yield (request.output_tokens - 1) * options.output_token_ms * MS
        self.gpu.leave(room_tokens)
        record.end_s = self._loop.now
        self.records.append(record)
