"""Deletions that a storage node missed while it was away, and what it gives to nobody until it knows them.

All storage nodes that are there obey each deletion, and remember it for a while. So a node that returns waits
until a peer that was there has said all that was deleted, or all that are not down have, or for DOUBT_S. If
peers do not remember for as long as it was away, it asks for single blocks (`hostlib.storage.unsure`). Its
disk says until when it has heard of all deletions, should it fall again before it has.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from hostlib.protocol.block import Place
from hostlib.protocol.members import SETTLED_S
from hostlib.protocol.tombstones import TOMBSTONE_S, WHOLE_TENANT

if TYPE_CHECKING:
    from collections.abc import Callable

    from hostlib.protocol.tombstones import AgedStone
    from hostlib.storage.store import BlockStore
    from hostlib.storage.unsure import UnsureBlocks

DOUBT_S: Final = 30.0
"""A node that returns waits this long for peers to name deletions, and again after each new one."""

MAX_MISSED: Final = 131_072
"""Blocks and tenants of which it may have missed deletions. If there are more, all blocks of their tenants
count as such: there can be 65,536 tenants."""


class MissedDeletions:
    """`is_listed()` says whether a controller's list has the node, if there is a controller; before that,
    what peers say may not be all. `on_given_up()` is called when blocks were dropped."""

    def __init__(
        self,
        store: BlockStore,
        unsure: UnsureBlocks,
        is_listed: Callable[[], bool],
        on_given_up: Callable[[], None],
    ) -> None:
        self.in_doubt = False
        """Whether blocks that are here may have been deleted meanwhile: nobody is given any."""
        self.unsure = unsure
        """Blocks that may have been deleted without anybody remembering it."""
        self._store, self._is_listed, self._on_given_up = store, is_listed, on_given_up
        self._missed: set[Place] = set()
        """Blocks of which this node may have missed deletions that its peers do not remember, either; with
        the key WHOLE_TENANT: all of a tenant."""
        self._heard_all = False
        """Whether all that was deleted has been said."""
        self._learned = 0
        """Tombstones that peers told and that were not known here."""
        self._there_s = store.graveyard.last_there_s if store.graveyard.has_past else self._wall_s()
        """Until when this node has heard of all deletions for certain."""
        self._obeyed_s: dict[Place, float] = {}
        """When each block was deleted last before it was in doubt: what is here of it came after that."""
        self._listed_s = self._wall_s()
        """When a list came that said that it is there; counts once another one does SETTLED_S later."""
        self._knows_all = True
        """Whether it has heard of all that were made while it was not there."""
        self._doubt_task: asyncio.Task[None] | None = None
        self._unsure_task: asyncio.Task[None] | None = None

    def close(self) -> None:
        """Wait for nothing any more."""
        for task in (self._doubt_task, self._unsure_task):
            if task is not None:
                task.cancel()

    def is_there(self) -> None:
        """Take note that a list says so: then deletions are not acknowledged without this node."""
        wall_s = self._wall_s()
        if self._knows_all and not self.in_doubt and abs(wall_s - self._listed_s) >= SETTLED_S:
            self._there_s, self._listed_s = min(self._listed_s, wall_s), wall_s
            self._store.graveyard.is_there()

    def may_have_missed(self) -> None:
        """Doubt what is here: the node was away."""
        if self.in_doubt:
            return
        if self._there_s < self._wall_s() - TOMBSTONE_S:  # nobody remembers that long
            self._missed = {Place(tenant, WHOLE_TENANT) for tenant in self._store.tenants()}
        self._heard_all = False
        self.in_doubt = True
        self._store.graveyard.doubts(self._there_s)
        self._obeyed_s = self._store.graveyard.stones.newest_s()
        self._doubt_task = asyncio.get_running_loop().create_task(self._end_in_the_end())

    def forget_what_was_said(self) -> None:
        """Count nothing that peers said so far: the node was not listed then."""
        self._heard_all = False

    def bury(self, aged: AgedStone) -> None:
        """Obey a tombstone of a peer, or note that it lacks some that this node may have missed, too."""
        stone, age_s, source = aged
        stones = self._store.graveyard.stones
        since_s = stones.wall_s() - age_s
        if stone.write:
            was_known = stone in stones
            self._store.delete(stone, age_s, source)
            self._learned += not was_known and stone in stones
        elif (self.in_doubt or not self._knows_all) and self._knew_until_s(stone.place) < since_s:
            self._missed.add(stone.place)
            if len(self._missed) > MAX_MISSED:
                self._missed = {Place(one.tenant, WHOLE_TENANT) for one in self._missed}
            stones.incomplete(stone.place, since_s)

    def all_was_said(self) -> None:
        """Take note that peers have said all that was deleted; it counts if the node is listed, or when it
        is."""
        self._heard_all = True
        self.end_if_listed()

    def end_if_listed(self) -> None:
        """Doubt no longer than for what nobody remembers, if the node is listed."""
        if self._is_listed():
            self._end()

    def listed(self) -> None:
        """Take note of a list that has this node: what peers said counts now."""
        if self._heard_all:
            self._end()

    async def unsure_blocks_asked(self) -> None:
        """Wait until other homes were asked for all blocks that nobody remembers enough of."""
        if self._unsure_task is not None:
            await asyncio.wait([self._unsure_task])

    async def _end_in_the_end(self) -> None:
        learned = -1
        while learned != self._learned:  # peers are asked again and again, and repeat what they said
            learned = self._learned
            await asyncio.sleep(DOUBT_S)
        self._doubt_task = None
        self._end()

    def _end(self) -> None:
        """Serve what is here, but for what may have been deleted without anybody remembering it."""
        if self._doubt_task is not None:
            self._doubt_task.cancel()  # the next doubt has a time of its own
            self._doubt_task = None
        if self._missed:
            tenants = {missed.tenant for missed in self._missed if missed.key == WHOLE_TENANT}
            places = self._store.places()
            self.unsure.add(one for one in places if one.tenant in tenants or one in self._missed)
        self._missed.clear()
        self._knows_all = self._heard_all or (self._knows_all and not self.in_doubt)
        if self._knows_all:
            self._obeyed_s.clear()
        if self.in_doubt:
            self._listed_s = self._wall_s()
        self.in_doubt = self._heard_all = False
        if len(self.unsure) and self._unsure_task is None:
            self._unsure_task = asyncio.get_running_loop().create_task(self._ask_for_unsure())
        elif self._knows_all and not len(self.unsure):
            self._store.graveyard.knows()

    async def _ask_for_unsure(self) -> None:
        try:
            given_up = await self.unsure.ask()
        finally:
            self._unsure_task = None
        if self._knows_all and not self.in_doubt:
            self._store.graveyard.knows()
        if given_up:
            self._on_given_up()

    def _knew_until_s(self, place: Place) -> float:
        return max(self._there_s, self._obeyed_s.get(place, self._there_s))

    def _wall_s(self) -> float:
        return self._store.graveyard.stones.wall_s()
