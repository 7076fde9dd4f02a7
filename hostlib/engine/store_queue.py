"""Stores begin in the order in which they were offered, each as soon as there is room for it.

Room is counted in bytes: what was copied out of the engine and waits for the pool to take it. A store without
room waits, and whoever offered it need not have copied anything yet. A store that is larger than all room
begins when it is alone.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

STORES_AT_ONCE = 64
"""Enough to fill all homes' windows, few enough to bound what is encoded at once."""
MAX_WAITING = 65_536
"""Number of stores that may wait for room; more are refused."""


class StoreQueue:
    """See the module. `take` may be called in any thread, the rest in one event loop."""

    def __init__(self, room_bytes: int, max_waiting: int = MAX_WAITING) -> None:
        self._room_bytes, self._max_waiting = room_bytes, max_waiting
        self._holders = 0
        """Number of stores that have room."""
        self._held_bytes = 0
        self._waiting = 0
        self._changing = threading.Lock()
        self._line = asyncio.Lock()
        """Held by the list of stores whose next store is the first to get room."""
        self._freed = asyncio.Event()
        self._turns = asyncio.Semaphore(STORES_AT_ONCE)

    def take(self, size: int) -> bool:
        """Take room for a store if there is some now and no other store waits for it."""
        with self._changing:
            return not self._waiting and self._take(size)

    def give(self, size: int) -> None:
        """Give a store's room back."""
        with self._changing:
            self._holders -= 1
            self._held_bytes -= size
        self._freed.set()

    async def run(
        self, sizes: Sequence[int], store: Callable[[int], Coroutine[Any, Any, bool]], with_room: int = 0
    ) -> list[bool | None]:
        """Run `store(index)` for each of these sizes; return what each returned.

        The first `with_room` stores have room already (`take`). A store that finds too many waiting is not
        run, and its result is None.
        """
        tasks: list[asyncio.Task[bool]] = []
        waiting = self._enter(len(sizes) - with_room)
        try:
            while len(tasks) < with_room:
                index = len(tasks)
                tasks.append(await self._begin(index, sizes[index], store, has_room=True))
            async with self._line:
                while waiting:
                    index = len(tasks)
                    tasks.append(await self._begin(index, sizes[index], store, has_room=False))
                    waiting -= 1
                    self._leave(1)
            results = await asyncio.gather(*tasks)
        finally:
            self._leave(waiting)
            for index in range(len(tasks), with_room):
                self.give(sizes[index])
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        return [*results, *[None] * (len(sizes) - len(results))]

    async def _begin(
        self, index: int, size: int, store: Callable[[int], Coroutine[Any, Any, bool]], has_room: bool
    ) -> asyncio.Task[bool]:
        """Start a store when it has a turn and room. The task gives both back when it ends."""
        await self._turns.acquire()
        try:
            while not has_room:
                with self._changing:
                    has_room = self._take(size)
                if not has_room:
                    self._freed.clear()
                    await self._freed.wait()
        except BaseException:
            self._turns.release()
            raise

        def ended(_: asyncio.Task[bool]) -> None:
            self._turns.release()
            self.give(size)

        task = asyncio.ensure_future(store(index))
        task.add_done_callback(ended)
        return task

    def _take(self, size: int) -> bool:
        if self._holders and self._held_bytes + size > self._room_bytes:
            return False
        self._holders += 1
        self._held_bytes += size
        return True

    def _enter(self, count: int) -> int:
        """How many of so many more stores may wait."""
        with self._changing:
            admitted = min(count, max(0, self._max_waiting - self._waiting))
            self._waiting += admitted
            return admitted

    def _leave(self, count: int) -> None:
        with self._changing:
            self._waiting -= count
