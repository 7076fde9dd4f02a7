"""Tests that are coroutines, each in an event loop of its own, in virtual or real time; waiting in them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, ParamSpec

from experiments.simulate_faults.virtual_time import run_virtual

P = ParamSpec("P")
Test = Callable[P, Coroutine[Any, Any, None]]


def in_virtual_time(test: Test[P]) -> Callable[P, None]:
    """Make a test of a coroutine, whose clock jumps to the next timer instead of waiting for it."""

    @wraps(test)
    def run(*given: P.args, **named: P.kwargs) -> None:
        run_virtual(test(*given, **named))

    return run


def in_real_time(test: Test[P]) -> Callable[P, None]:
    """Make a test of a coroutine, which runs by the machine's clock."""

    @wraps(test)
    def run(*given: P.args, **named: P.kwargs) -> None:
        asyncio.run(test(*given, **named))

    return run


async def until(condition: Callable[[], object], within_s: float = 120) -> None:
    """Wait until a condition holds; TimeoutError where it does not hold in time."""
    async with asyncio.timeout(within_s):
        while not condition():
            await asyncio.sleep(0.01)
