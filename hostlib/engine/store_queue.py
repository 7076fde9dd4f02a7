"""Stores begin in the order in which they were offered, each as soon as there is room for it.

Room is counted in bytes: what was copied out of the engine and waits for the pool to take it. A store without
room waits, and whoever offered it need not have copied anything yet. A store that is larger than all room
begins when it is alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from hostlib.engine.room import Room

STORES_AT_ONCE = 64
"""Enough to fill all homes' windows, few enough to bound what is encoded at once."""
MAX_WAITING = 65_536
"""Number of stores that may wait for room; more are refused."""


class StoreQueue:
    """See the module. `take` may be called in any thread, the rest in one event loop."""

    def __init__(self, room_bytes: int, max_waiting: int = MAX_WAITING) -> None:
        self._room, self._max_waiting = Room(room_bytes), max_waiting
        self._waiting = 0
        self._line = asyncio.Lock()
        """Held by the list of stores whose next store is the first to get room."""
        self._turns = asyncio.Semaphore(STORES_AT_ONCE)

    @property
    def waiting_bytes(self) -> int:
        """Return the bytes of the stores that have room and have not ended. It is 0 when no store waits."""
        return self._room.held_bytes

    def take(self, size: int) -> bool:
        """Take room for a store if there is some now and no other store waits for it."""
        return not self._waiting and self._room.take_now(size)

    def give(self, size: int) -> None:
        """Give a store's room back."""
        self._room.give(size)

    async def run(
        self, sizes: Sequence[int], store: Callable[[int], Coroutine[Any, Any, bool]], with_room: int = 0
    ) -> list[bool | None]:
        """Run `store(index)` for each of these sizes; return what each returned.

        The first `with_room` stores have room already (`take`). A store that finds too many waiting is not
        run, and its result is None.
        """
        tasks: list[asyncio.Task[bool]] = []
        waiting = min(len(sizes) - with_room, max(0, self._max_waiting - self._waiting))
        self._waiting += waiting
        try:
            while len(tasks) < with_room:
                tasks.append(await self._begin(len(tasks), sizes, store, has_room=True))
            async with self._line:
                while waiting:
                    tasks.append(await self._begin(len(tasks), sizes, store, has_room=False))
                    waiting -= 1
                    self._waiting -= 1
            results = await asyncio.gather(*tasks)
        finally:
            self._waiting -= waiting
            for size in sizes[len(tasks) : with_room]:
                self.give(size)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        return [*results, *[None] * (len(sizes) - len(results))]

    async def _begin(
        self,
        index: int,
        sizes: Sequence[int],
        store: Callable[[int], Coroutine[Any, Any, bool]],
        has_room: bool,
    ) -> asyncio.Task[bool]:
        """Start a store when it has a turn and room. The task gives both back when it ends."""
        await self._turns.acquire()
        try:
            if not has_room:
                await self._room.take(sizes[index])
        except BaseException:
            self._turns.release()
            raise

        def ended(_: asyncio.Task[bool]) -> None:
            self._turns.release()
            self.give(sizes[index])

        task = asyncio.ensure_future(store(index))
        task.add_done_callback(ended)
        return task
