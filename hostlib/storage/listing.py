"""Lists of a storage node's blocks for its peers, which ask for those whose homes they are, too.

Each peer waits for its turn, and all lists take a fifth of the node's time at most, by estimates: a peer that
asks without end holds up neither readers nor other peers for long. A million blocks are sorted in pieces,
between which the node says that it lives.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from math import ceil
from typing import TYPE_CHECKING, Final, TypeVar

from hostlib.protocol.block import Place
from hostlib.protocol.catalog import FIRST, make_page
from hostlib.protocol.tombstones import LIST_FLAGS, listed, make_stones_page
from hostlib.protocol.wire import fragment_count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from hostlib.protocol.wire import Message
    from hostlib.storage.joining import Joining
    from hostlib.storage.store import BlockStore

SORT_S: Final = 1e-6
"""Seconds that a new list costs for each block that is held, as measured. The next constants are measured,
too."""
STONE_S: Final = 3 * SORT_S
"""Seconds that a new list costs for each tombstone or lifetime, if it is of these."""
LOOK_S: Final = 12e-6
"""Seconds to look at a block whose homes were not asked for lately."""
REST: Final = 4
"""Factor of the time that a page took for which no other is made."""
PIECE: Final = 4096
"""Number of entries that are looked at without a pause."""
Sorted = TypeVar("Sorted", Place, tuple[Place, bytes])
"""An entry of a list."""


class Listing:
    """`joining` knows the newest list of storage nodes and which blocks are fresh; `send(address, LIST,
    value, fresh)` sends the KEYS that answers."""

    def __init__(
        self, store: BlockStore, joining: Joining, send: Callable[[str, Message, bytes, int], None]
    ) -> None:
        self._store, self._joining, self._send = store, joining, send
        self._places: list[Place] = []
        self._stones: dict[int, list[tuple[Place, bytes]]] = {}
        """By flags: tombstones, and lifetimes."""
        self._asked: dict[tuple[str, int], Message] = {}
        """By who asked, and for what (LIST_FLAGS), each one's last question; the first in turn first."""
        self._task: asyncio.Task[None] | None = None

    def ask(self, address: str, message: Message) -> None:
        """Queue a LIST of a peer, to be answered when it is its turn."""
        self._asked[address, message.flags & LIST_FLAGS] = message
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._answer_all())

    def close(self) -> None:
        """Answer nobody any more."""
        self._asked.clear()
        if self._task is not None:
            self._task.cancel()

    async def _answer_all(self) -> None:
        try:
            while self._asked:
                turn = next(iter(self._asked))
                cost_s = await self._answer(turn[0], self._asked.pop(turn))
                await asyncio.sleep(REST * cost_s)
        finally:
            self._task = None

    async def _answer(self, address: str, message: Message) -> float:
        """Answer a LIST; return about how many seconds that costs."""
        start = Place(message.tenant, message.key)
        if message.flags & LIST_FLAGS:
            return await self._answer_stones(address, message, start)
        cost_s = 0.0
        if start == FIRST or not self._places:
            # Who goes on with a list that another began anew, or this node before a restart, misses nothing.
            self._places = await in_order(self._store.places(), lambda place: place)
            cost_s = SORT_S * len(self._places)
        members = self._joining.members
        asker = members.at(address)
        if asker is None:  # by a list that came since it asked
            return cost_s
        number, listed, fresh = asker.number, 0, 0

        def wanted(place: Place) -> tuple[int, int] | None:
            nonlocal cost_s, listed, fresh
            cost_s += LOOK_S
            found = self._store.find(place) if members.is_home(number, place.key) else None
            if found is None:
                return None
            fresh |= self._joining.is_fresh(place) << listed
            listed += 1
            return found[1], fragment_count(found[0])

        self._send(address, message, make_page(self._places, start, wanted), fresh)
        return cost_s

    async def _answer_stones(self, address: str, message: Message, start: Place) -> float:
        """Answer with tombstones, or with lifetimes of the blocks here, whoever is a home of their blocks."""
        cost_s, asked = LOOK_S, message.flags & LIST_FLAGS
        if start == FIRST or asked not in self._stones:
            self._stones[asked] = await in_order(self._made(asked), lambda entry: entry[0])
            cost_s += STONE_S * len(self._stones[asked])
        self._send(address, message, make_stones_page(self._stones.get(asked, ()), start), 0)
        return cost_s

    def _made(self, asked: int) -> Iterator[tuple[Place, bytes]]:
        if asked != LIST_FLAGS:
            return self._store.graveyard.stones.records()
        now_s = self._store.lifetimes.wall_s()
        lifetimes = self._store.lifetimes_of_held()
        return (listed(one.stone, ceil(one.end_s - now_s), one.source) for one in lifetimes)


async def in_order(entries: Iterable[Sorted], place_of: Callable[[Sorted], Place]) -> list[Sorted]:
    """Return the entries sorted, and let others have their turn meanwhile.

    What `entries` come from may change while that goes on.
    """
    groups: defaultdict[tuple[int, bytes], list[Sorted]] = defaultdict(list)
    """By tenant and the first byte of the key."""
    for number, entry in enumerate(entries, 1):
        place = place_of(entry)
        groups[place.tenant, place.key[:1]].append(entry)
        if not number % PIECE:
            await asyncio.sleep(0)
    found: list[Sorted] = []
    for name in sorted(groups):
        found += sorted(groups[name])
        await asyncio.sleep(0)
    return found
