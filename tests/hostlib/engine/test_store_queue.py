"""Stores begin in order as room comes, whatever ends early."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from hostlib.engine.store_queue import STORES_AT_ONCE, StoreQueue
from tests.asynchronous import in_virtual_time

ROOM = 100


class Load:
    """Stores that take a second each, and what was under way."""

    def __init__(self, queue: StoreQueue) -> None:
        self.queue = queue
        self.begun: list[tuple[str, int]] = []
        self.held_bytes = self.most_bytes = self.under_way = self.most = 0

    async def run(self, name: str, sizes: list[int], with_room: int = 0) -> list[bool | None]:
        async def store(index: int) -> bool:
            self.begun.append((name, index))
            self.held_bytes += sizes[index]
            self.under_way += 1
            self.most_bytes = max(self.most_bytes, self.held_bytes)
            self.most = max(self.most, self.under_way)
            try:
                await asyncio.sleep(1.0)
            finally:
                self.held_bytes -= sizes[index]
                self.under_way -= 1
            return True

        return await self.queue.run(sizes, store, with_room)


@given(st.lists(st.lists(st.integers(1, 150), max_size=30), max_size=5), st.data())
@in_virtual_time
async def test_what_is_under_way_has_room_and_begins_in_order(
    lists: list[list[int]], data: st.DataObject
) -> None:
    load = Load(StoreQueue(ROOM))
    calls = []
    for number, sizes in enumerate(lists):
        with_room = data.draw(st.integers(0, len(sizes)))
        taken = 0
        while taken < with_room and load.queue.take(sizes[taken]):
            taken += 1
        calls.append(asyncio.ensure_future(load.run(f"{number}", sizes, taken)))
        await asyncio.sleep(data.draw(st.sampled_from([0.0, 0.5, 3.0])))
    for sizes, results in zip(lists, await asyncio.gather(*calls), strict=True):
        assert results == [True] * len(sizes)
    largest = max((size for sizes in lists for size in sizes), default=0)
    assert load.most_bytes <= max(ROOM, largest)
    assert load.most <= STORES_AT_ONCE
    for number in range(len(lists)):
        own = [index for name, index in load.begun if name == f"{number}"]
        assert own == sorted(own)
    assert load.queue.take(ROOM)  # all room was given back


@in_virtual_time
async def test_lists_are_served_in_the_order_in_which_they_came() -> None:
    load = Load(StoreQueue(ROOM))
    calls = []
    for name in "abc":
        calls.append(asyncio.ensure_future(load.run(name, [60] * 3)))
        await asyncio.sleep(0)
    await asyncio.gather(*calls)
    assert "".join(name for name, _ in load.begun) == "aaabbbccc"


@in_virtual_time
async def test_more_than_may_wait_are_refused() -> None:
    load = Load(StoreQueue(ROOM, max_waiting=5))
    first = asyncio.ensure_future(load.run("a", [60] * 4))
    await asyncio.sleep(0.5)
    assert await load.run("b", [60] * 4) == [True, True, None, None]
    assert await first == [True] * 4


@in_virtual_time
async def test_one_that_is_given_up_gives_back_what_it_had() -> None:
    load = Load(StoreQueue(ROOM))
    assert load.queue.take(60)
    for after_s in (0.0, 0.5, 1.5):
        call = asyncio.ensure_future(load.run("a", [60] * 3, with_room=1))
        behind = asyncio.ensure_future(load.run("b", [100]))
        await asyncio.sleep(after_s)
        call.cancel()
        await asyncio.wait([call])
        assert await behind == [True]
        assert load.queue.take(60)


@in_virtual_time
async def test_small_ones_are_bounded_in_number() -> None:
    load = Load(StoreQueue(ROOM * ROOM))
    await load.run("a", [1] * 500)
    assert load.most == STORES_AT_ONCE
