"""Room is never taken twice, and whoever waited first gets it first."""

from __future__ import annotations

import asyncio

from hostlib.engine.room import Room
from tests.asynchronous import in_virtual_time


@in_virtual_time
async def test_who_waits_first_gets_room_first_however_large_the_wish_is() -> None:
    room, order = Room(100), []

    async def use(name: str, size: int) -> None:
        async with room.held(size):
            order.append(name)
            await asyncio.sleep(1.0)

    await asyncio.gather(use("a", 60), use("b", 300), use("c", 10), use("d", 90))
    assert order == ["a", "b", "c", "d"]
    assert room.take_now(100)


@in_virtual_time
async def test_one_who_gives_up_waiting_leaves_the_room_to_others() -> None:
    room = Room(100)
    await room.take(100)
    waiting = [asyncio.ensure_future(room.take(50)) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    await asyncio.sleep(0)
    room.give(100)
    await asyncio.gather(*waiting[1:])
    assert not room.take_now(1)
    assert waiting[0].cancelled()
