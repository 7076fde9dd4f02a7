"""Loopback addresses that no other test uses at the same time, and waiting for conditions."""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import Callable

_numbers = itertools.count(1)
WAIT_LIMIT_S = 60.0


def own_address() -> str:
    """An address of 127/8 for this process alone: parallel tests bind the same port."""
    number = next(_numbers)
    return f"127.{1 + os.getpid() // 250 % 250}.{1 + os.getpid() % 250}.{number % 250 + 1}"


async def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition; fails after a limit."""
    async with asyncio.timeout(WAIT_LIMIT_S):
        while not condition():
            await asyncio.sleep(0.002)
