"""Records that are written in groups: how long the next one waits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from hostlib.protocol.block import Block
from hostlib.storage.commit import GroupCommit
from hostlib.storage.simulated_disk import SimulatedDisk
from tests.asynchronous import in_virtual_time
from tests.hostlib.sealed import place
from tests.hostlib.world import key


@in_virtual_time
async def test_how_long_a_record_waits_follows_the_rate_of_the_last_groups() -> None:
    took_s = 2.0

    async def slow(work: Callable[[], None]) -> None:
        await asyncio.sleep(took_s)
        work()

    commit = GroupCommit(SimulatedDisk(), run=slow)

    async def put(number: int) -> int:
        """The size of a record, once it is written."""
        commit.put(place(key(number)), 1, Block(1, bytes(100), bytes(16)))
        size = commit.waiting_bytes
        while commit.waiting_bytes:
            await asyncio.sleep(0.1)
        return size

    async def wait_s(number: int) -> float:
        """How long one more record of that size is said to wait."""
        commit.put(place(key(number)), 1, Block(1, bytes(100), bytes(16)))
        waits_s = commit.wait_s()
        while commit.waiting_bytes:
            await asyncio.sleep(0.1)
        return waits_s

    size = await put(1)
    assert await wait_s(2) == pytest.approx(2.0)
    took_s = 1.0
    await put(3)
    rate = (7 * size / 2.0 + size / 1.0) / 8
    assert await wait_s(4) == pytest.approx(size / rate)
