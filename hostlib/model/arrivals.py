"""Requests as they reach an inference node."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from workload.session_order import awaited, waits_for
from workload.trace import Request


@dataclass(frozen=True, slots=True)
class Arrival:
    """A request that reaches the node."""

    request: Request
    fetch: bool = True
    """Whether to ask the network for what the node does not hold."""
    prefilled: Callable[[], None] = lambda: None
    """Called when its first token is there, or will never be."""
    answered: Callable[[], None] = lambda: None
    """Called when its last token is there, or will never be."""


async def in_time(requests: Sequence[Request], start_s: float) -> AsyncIterator[Arrival]:
    """Yield requests at their times after `start_s`, by the running loop's clock.

    One that waits for answers to others of them comes its think time after the last of these answers."""
    arrivals = _Arrivals(requests, start_s)
    for _ in requests:
        yield await arrivals.next()


class _Arrivals:
    """Requests that are due, and those that wait for answers."""

    def __init__(self, requests: Sequence[Request], start_s: float) -> None:
        self._requests, self._start_s = requests, start_s
        self._loop = asyncio.get_running_loop()
        played = awaited(requests)
        self._unanswered: dict[int, int] = {}
        """By place of a request that waits: how many answers it still waits for."""
        self._followers: dict[int, list[int]] = {number: [] for number in played}
        """By number of a request: places of those that wait for its answer."""
        self._due: list[tuple[float, int]] = []
        """Time and place, a heap."""
        self._changed = asyncio.Event()
        for place, request in enumerate(requests):
            before = waits_for(request, played)
            if before:
                self._unanswered[place] = len(before)
                for number in before:
                    self._followers[number].append(place)
            else:
                self._due.append((start_s + request.arrival_s, place))
        heapq.heapify(self._due)

    async def next(self) -> Arrival:
        """Wait for the next request, and return it."""
        while True:
            wait_s = self._due[0][0] - self._loop.time() if self._due else None
            if wait_s is not None and wait_s <= 0.0:
                break
            self._changed.clear()
            try:
                async with asyncio.timeout(wait_s):
                    await self._changed.wait()
            except TimeoutError:
                pass
        due_s, place = heapq.heappop(self._due)
        request = self._requests[place]
        if place in self._unanswered:
            request = replace(request, arrival_s=due_s - self._start_s)
        if request.place is None or request.place.number not in self._followers:
            return Arrival(request)
        return Arrival(request, answered=partial(self._answered, request.place.number))

    def _answered(self, number: int) -> None:
        for place in self._followers[number]:
            self._unanswered[place] -= 1
            if not self._unanswered[place]:
                follows = self._requests[place].place
                assert follows is not None
                heapq.heappush(self._due, (self._loop.time() + follows.think_s, place))
                self._changed.set()
