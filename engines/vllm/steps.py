"""Steps of the engine that are known to have computed on right KV alone.

What a step computes is right if what it was given is. A step that waits for loads in the middle of its
forward pass, whoever's loads they are, is settled by its report: vLLM's scheduler gets the blocks that failed
to load, of all connectors and all ranks. The steps that were scheduled before that report may build on such a
step, so they are settled with it. All other steps are sure from the beginning.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from engines.vllm.jobs import Refusal

MAX_UNSETTLED = 1024
"""Number of steps that may wait for their reports; if more do, reports are missing and all are dropped."""


class Block(Protocol):
    """A block of the engine's cache, as vLLM's scheduler has it."""

    block_id: int


@dataclass
class Step:
    """One step, from its scheduling until it is settled."""

    number: int
    is_sure: bool
    offers: list[Refusal] = field(default_factory=list)
    """The blocks that it stores, as they would be taken back."""
    holders: list[Sequence[Block]] = field(default_factory=list)
    """The blocks of each request that it computes. vLLM leaves these lists alone when a request ends."""


class StepLog:
    """See the module."""

    def __init__(self) -> None:
        self.settled = 0
        """Number of the last step that is settled."""
        self._scheduled = self._reported = 0
        self._loading = 0
        """Number of the last step whose forward pass waits for a load."""
        self._unsettled: deque[Step] = deque()
        self._dropped: list[int] = []

    @property
    def in_flight(self) -> int:
        """Return the number of steps that were scheduled and not reported yet."""
        return self._scheduled - self._reported

    def begin(self, *, has_loads: bool) -> Step:
        """Begin the next step and return it; `has_loads` says whether its forward pass waits for a load of
        any connector."""
        self._scheduled += 1
        builds_on_loads = self._loading > self._reported or bool(self._unsettled)
        if has_loads:
            self._loading = self._scheduled
        step = Step(self._scheduled, is_sure=not has_loads and not builds_on_loads)
        if not step.is_sure:
            self._unsettled.append(step)
        return step

    @property
    def scheduled(self) -> int:
        """Return the number of the last step that was scheduled."""
        return self._scheduled

    @property
    def reported(self) -> int:
        """Return the number of the last step that was reported."""
        return self._reported

    def lose(self, number: int) -> list[Step]:
        """Take note that the steps before this one that have not come back never will, and return them.

        Steps come back in order. Those that are sure, or were dropped, say nothing of what they computed.
        """
        missing = range(self._reported + 1, number)
        unsettled = {step.number: step for step in self._unsettled} if missing else {}
        self._reported = max(self._reported, number - 1)
        return [unsettled.get(one, Step(one, is_sure=True)) for one in missing]

    def report(self, number: int) -> None:
        """Settle all steps up to this one as right: it came back without a failed load."""
        self._reported = max(self._reported, number)
        while self._unsettled and self._unsettled[0].number <= number:
            self._unsettled.popleft()
        self.settled = max(self.settled, number)

    def drop(self) -> list[Step]:
        """Give up what is not settled, because a load failed, and return it."""
        dropped = list(self._unsettled)
        self._unsettled.clear()
        self._dropped += [step.number for step in dropped]
        if dropped:
            self.settled = max(self.settled, dropped[-1].number)
        return dropped

    def is_overdue(self) -> bool:
        """Return whether reports are missing."""
        return len(self._unsettled) > MAX_UNSETTLED

    def take_dropped(self) -> tuple[int, ...]:
        """Return the numbers of the steps that were dropped since the last call."""
        dropped, self._dropped = tuple(self._dropped), []
        return dropped
