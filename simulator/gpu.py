"""Accelerators of a node: one prefill at a time, and decoding, elsewhere or in a continuous batch on them.

Batched, each step gives every running request one token. It takes the time to read the weights and the KV of
all of them. A prefill is cut into chunks. A step with a chunk takes the time of both, and the tokens of both
count against the chunk's size (vLLM's scheduler, version 1). Without a prefill, steps are not simulated one
by one: they continue at their rate until the next event. A request starts when its KV finds room.
"""

from __future__ import annotations

import heapq
from collections import deque

from simulator.events import Event, Loop, Steps, Turn, Turns
from simulator.spread import Gaps
from workload.cost import CostModel


class Gpu:
    """Accelerators of one node. Use in this order for each request: admit, compute (a fetch or prefill),
    decode, leave."""

    def __init__(
        self,
        loop: Loop,
        cost: CostModel,
        batched: bool,
        running_tokens: float,
        chunk_tokens: int,
        slowdown: float = 0.0,
    ) -> None:
        """Set up the accelerators.

        While blocks are decoded here, tokens take `slowdown` times as long, and so does decoding blocks while
        tokens are. With 0, no token is decoded meanwhile.
        """
        self.busy_s = 0.0
        self.free_since_s = 0.0
        """Time in seconds at which it last ended computing; not updated while it computes."""
        self._loop, self._cost = loop, cost
        self._batched, self._chunk_tokens = batched, chunk_tokens
        self._slowdown = slowdown
        self._lock = Turns(loop)
        self._memory = _Memory(loop, running_tokens) if batched else None
        self.gaps = Gaps()
        self._batch = _Batch(loop, cost, self.gaps, slowdown)

    @property
    def step_s(self) -> float:
        """Return the seconds of one token for each request that decodes now."""
        return self._batch.step_s()

    def admit(self, tokens: int) -> Steps:
        """Wait until there is room for the request's KV."""
        if self._memory is not None:
            yield self._memory.take(tokens)

    def leave(self, tokens: int) -> None:
        """Give back the room that a request's KV took."""
        if self._memory is not None:
            self._memory.give(tokens)

    def exclusive(self) -> Turn:
        """Return the turn of one request; wait for it, and use it as a context manager."""
        return self._lock.request()

    def prefill(self, new_tokens: int, context_tokens: int) -> Steps:
        """Compute these tokens behind others, within one's turn."""
        if not self._batched:
            yield from self.compute(self._cost.prefill_s(new_tokens, context_tokens))
            return
        while new_tokens > 0:
            tokens = min(new_tokens, max(1, self._chunk_tokens - self._batch.size))
            yield from self.compute(self._cost.prefill_s(tokens, context_tokens) + self._batch.step_s())
            self._batch.step()
            new_tokens -= tokens
            context_tokens += tokens

    def compute(self, duration_s: float) -> Steps:
        """Do work that stops decoding, within one's turn."""
        if self._batched:
            self._batch.pause()
        yield duration_s
        if self._batched:
            self._batch.resume()
        self.busy_s += duration_s
        self.free_since_s = self._loop.now

    def blend(self, work_s: float, rest_s: float) -> Steps:
        """Do blending work of which only `rest_s` is left, because the idle GPU began it before its turn."""
        yield from self.compute(rest_s)
        self.busy_s += work_s - rest_s

    @property
    def block_slowdown(self) -> float:
        """Return how many times as long decoding a block takes now as it would alone."""
        return self._slowdown if self._slowdown and self._batch.size else 1.0

    def interrupt(self, duration_s: float) -> Steps:
        """Decode blocks, which alone takes `duration_s`, beside a prefill that goes on.

        Meanwhile no token is decoded or, with a slowdown, both take longer.
        """
        if not self._slowdown:
            self._batch.pause()
            yield duration_s
            self._batch.resume()
            return
        self._batch.change_slowdown(1)
        yield duration_s * self.block_slowdown
        self._batch.change_slowdown(-1)

    def stall(self, steps: Steps) -> Steps:
        """Run these steps while nothing is computed."""
        began_s = self._loop.now
        self._batch.pause()
        yield from steps
        self._batch.resume()
        self.busy_s += self._loop.now - began_s

    def decode(self, output_tokens: int, context_tokens: int) -> Steps:
        """Produce the tokens after the first."""
        if output_tokens < 1:
            return
        if self._batched:
            yield self._batch.join(output_tokens - 1, context_tokens)
        else:
            duration_s = self._cost.decode_s(output_tokens, context_tokens)
            if output_tokens > 1:
                self.gaps.add(duration_s / (output_tokens - 1), output_tokens - 1)
            yield duration_s


class _Memory:
    """Room for tokens, given out in order of arrival; a request larger than all of it runs alone."""

    def __init__(self, loop: Loop, tokens: float) -> None:
        self._loop, self._all, self._free = loop, tokens, tokens
        self._waiting: deque[tuple[float, Event]] = deque()

    def take(self, tokens: float) -> Event:
        event = self._loop.event()
        self._waiting.append((min(tokens, self._all), event))
        self._grant()
        return event

    def give(self, tokens: float) -> None:
        self._free += min(tokens, self._all)
        self._grant()

    def _grant(self) -> None:
        while self._waiting and self._waiting[0][0] <= self._free:
            tokens, event = self._waiting.popleft()
            self._free -= tokens
            event.succeed()


class _Batch:
    """Requests that decode together; their progress is counted in iterations since time 0."""

    def __init__(self, loop: Loop, cost: CostModel, gaps: Gaps, slowdown: float) -> None:
        self._loop, self._cost, self._gaps = loop, cost, gaps
        self._stalled_s = 0.0
        """Seconds of pause since the last token."""
        self._iterations = 0.0
        self._updated_s = 0.0
        self._paused = 0
        self._slowdown = slowdown
        self._beside = 0
        """Number of block decodings that now make tokens take longer."""
        self._members: list[tuple[float, int, float, Event]] = []
        """Heap of (iteration of the last token, order, context tokens, done)."""
        self._context_tokens = 0.0
        self._order = 0
        self._plan = 0
        """Number of the current plan; alarms of older plans are ignored."""

    def join(self, tokens: int, context_tokens: float) -> Event:
        """Decode so many tokens; return the event of their end."""
        self._advance()
        done = self._loop.event()
        self._order += 1
        heapq.heappush(self._members, (self._iterations + tokens, self._order, context_tokens, done))
        self._context_tokens += context_tokens
        self._replan()
        return done

    @property
    def size(self) -> int:
        """Return the number of requests that decode now."""
        return len(self._members)

    def step(self) -> None:
        """Give each request one token, in a step that also had a chunk."""
        self._advance()
        self._gaps.add(self._stalled_s, len(self._members))
        self._stalled_s = 0.0
        self._iterations += 1.0
        self._release()
        self._replan()

    def pause(self) -> None:
        self._advance()
        self._paused += 1
        self._replan()

    def resume(self) -> None:
        self._advance()
        self._paused -= 1
        self._replan()

    def change_slowdown(self, by: int) -> None:
        """Change the number of block decodings that make tokens take longer."""
        self._advance()
        self._beside += by
        self._replan()

    def step_s(self) -> float:
        """Return the seconds of one token for each request; 0 if none decodes."""
        count = len(self._members)
        if not count:
            return 0.0
        step_s = count * self._cost.decode_s(1, self._context_tokens / count, batch=count)
        return step_s * self._slowdown if self._beside else step_s

    def _advance(self) -> None:
        now_s = self._loop.now
        passed_s = now_s - self._updated_s
        self._updated_s = now_s
        if self._paused or not self._members:
            self._stalled_s = self._stalled_s + passed_s if self._members else 0.0
        elif passed_s:
            step_s = self.step_s()
            steps, count = passed_s / step_s, len(self._members)
            self._iterations += steps
            late = min(1.0, steps) if self._stalled_s else 0.0
            self._gaps.add(step_s + self._stalled_s, late * count)
            self._gaps.add(step_s, (steps - late) * count)
            self._stalled_s = 0.0

    def _replan(self) -> None:
        self._plan += 1
        if not self._members or self._paused:
            return
        left_s = max(0.0, self._members[0][0] - self._iterations) * self.step_s()
        self._loop.after(left_s, self._on_alarm, self._plan)

    def _on_alarm(self, plan: int) -> None:
        if plan != self._plan:
            return
        self._advance()
        self._iterations = max(self._iterations, self._members[0][0])
        self._release()
        self._replan()

    def _release(self) -> None:
        """Let the requests leave that have their last token."""
        while self._members and self._members[0][0] <= self._iterations + 1e-9:
            _, _, context_tokens, done = heapq.heappop(self._members)
            self._context_tokens -= context_tokens
            done.succeed()
