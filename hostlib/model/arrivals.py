"""Requests as they reach an inference node."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass

from workload.trace import Request


@dataclass(frozen=True, slots=True)
class Arrival:
    """A request that reaches the node."""

    request: Request
    fetch: bool = True
    """Whether to ask the network for what the node does not hold."""
    prefilled: Callable[[], None] = lambda: None
    """Called when its first token is there, or will never be."""


async def in_time(requests: Sequence[Request], start_s: float) -> AsyncIterator[Arrival]:
    """Requests at their arrival times after `start_s`, by the running loop's clock."""
    loop = asyncio.get_running_loop()
    for request in requests:
        await asyncio.sleep(start_s + request.arrival_s - loop.time())
        yield Arrival(request)
