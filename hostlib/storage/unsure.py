"""Blocks of a storage node that was away for longer than its peers remember what was deleted.

A home that was there obeyed each deletion of a block. So the block's other homes that are up are asked for
it: if one of them holds the same write, it was not deleted; if none does, the block is given up. Until that
is known it is neither given away nor overwritten. While none of them is up, no deletion of the block is
acknowledged, and it is kept.
"""

from __future__ import annotations

import asyncio
from itertools import islice
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from hostlib.protocol.block import Place
    from hostlib.storage.catch_up import CatchUp
    from hostlib.storage.store import BlockStore

AT_ONCE: Final = 64
"""Blocks that are asked for at the same time."""
SILENCE_S: Final = 30.0
"""Seconds of silence of all homes after which what is left is given up."""
AGAIN_S: Final = 0.5
"""Seconds until homes are asked again of which one did not say."""


class UnsureBlocks:
    """`homes_up(place)` returns the addresses of a block's other homes that are up by the newest list."""

    def __init__(self, store: BlockStore, catch_up: CatchUp, homes_up: Callable[[Place], list[str]]) -> None:
        self._store, self._catch_up, self._homes_up = store, catch_up, homes_up
        self._places: dict[Place, None] = {}
        self._heard_s = 0.0

    def __contains__(self, place: object) -> bool:
        return place in self._places

    def __len__(self) -> int:
        return len(self._places)

    def add(self, places: Iterable[Place]) -> None:
        """Doubt these from now on."""
        self._places.update(dict.fromkeys(places))

    def discard(self, place: Place) -> None:
        """Doubt a block no more, as another one has taken its place."""
        self._places.pop(place, None)

    async def ask(self) -> int:
        """Ask for all there are; return how many were given up."""
        self._heard_s = asyncio.get_running_loop().time()
        given_up = 0
        while some := list(islice(self._places, AT_ONCE)):
            given_up += sum(await asyncio.gather(*map(self._is_given_up, some)))
        return given_up

    async def _is_given_up(self, place: Place) -> bool:
        """Return whether the block was given up, because no home holds it."""
        is_held = await self._is_held_elsewhere(place)
        was_unsure = place in self._places
        self.discard(place)
        if is_held or not was_unsure:
            return False
        self._store.drop(place)
        return True

    async def _is_held_elsewhere(self, place: Place) -> bool:
        """Return whether a home that is up has the same write of a block, or none is up that could say so."""
        now_s = asyncio.get_running_loop().time
        while homes := self._homes_up(place):
            found = self._store.find(place)
            writes = await asyncio.gather(*(self._catch_up.write_at(home, place) for home in homes))
            said = [write for write in writes if write is not None]
            if said:
                self._heard_s = now_s()
            if found is None or found[1] in said:
                return True
            if len(said) == len(homes) or now_s() - self._heard_s > SILENCE_S:
                return False
            await asyncio.sleep(AGAIN_S)
        return True
