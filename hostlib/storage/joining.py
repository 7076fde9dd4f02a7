"""A storage node among the others: it says that it lives, follows the list of members, and copies what it
missed before it says that it has caught up.

It takes PUTs of blocks whose home it is, by the list that it knows or one that this replaced a moment ago.
Right after a new list it may not have yet what a block's other homes hold, and whoever knows the key can PUT
something else. So what comes meanwhile is *fresh*: a copy of a home that has had the block for longer takes
its place.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from hostlib.protocol import wire
from hostlib.protocol.errors import TierFullError
from hostlib.protocol.members import HEARTBEAT_S, SETTLED_S, Members, Refused, State, hello, next_epoch
from hostlib.storage.catch_up import ROOM_LOOK_S, CatchUp, Patience, Patiences
from hostlib.storage.missed_deletions import MissedDeletions
from hostlib.storage.unsure import UnsureBlocks

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from hostlib.protocol.block import Block, Place
    from hostlib.protocol.catalog import Entry
    from hostlib.protocol.errors import DiskError
    from hostlib.protocol.tombstones import AgedStone, Tombstone
    from hostlib.storage.store import BlockStore
    from hostlib.transport.transport import Transport

log = logging.getLogger(__name__)

PASSES: Final = 30
"""Most passes through the lists of all peers."""
PASS_AGAIN_S: Final = 1.0
MAX_PATIENCE: Final = 64
"""The patience with a peer grows to this many times its first value."""
FRESH_LOOK: Final = 1 << 12
"""Number of further fresh blocks after which those that left are forgotten."""
REPAIRS_AT_ONCE: Final = 16
"""Unreadable blocks that are copied from others at the same time."""
MAX_UNREADABLE: Final = 65_536
"""Number of unreadable blocks that wait for that. The others come with the next pass."""
MAX_RECENT_LISTS: Final = 4
"""Lists that were replaced less than SETTLED_S ago: who does not know the newest yet PUTs by one of them."""


class Joining:
    """`address` is the node's own, `controller` that of who is told, by HELLO, that it lives, if any."""

    def __init__(
        self,
        transport: Transport,
        store: BlockStore,
        members: Members,
        address: str,
        controller: str | None,
    ) -> None:
        self.members = members
        self.caught_up = False
        """Whether the node has what its peers have for it."""
        self._transport = transport
        self._store = store
        self._address, self._controller = address, controller
        self._refused = Refused()
        self._recent: list[tuple[Members, float]] = []
        """Lists that were replaced, and until when they count."""
        self._fresh: dict[Place, None] = {}
        """Blocks that came by a PUT since it is not settled."""
        self.settled = True
        """Whether it has what others hold for it by the newest list."""
        own = members.at(address)
        self._number = own.number if own is not None else 0
        """Its own by the newest list; 0 where it is not in it."""
        self._list_came = asyncio.Event()
        """Set when there is a new list: a storage node that was down may be back, or not in it any more."""
        self._may_lack = False
        """Whether so many peers were down since the passes began that they may hold what nobody else has."""
        self._unwritten = 0
        """Number of copies that the disk has neither taken nor refused."""
        self._not_written = 0
        """Number of copies that the disk did not take since the passes began."""
        self.catch_up = CatchUp(transport, self._number, self)
        unsure = UnsureBlocks(store, self.catch_up, self._other_homes_up)
        self.missed = MissedDeletions(store, unsure, self._is_listed, self._begin)
        """What was deleted while this node was away. If it gave up blocks, others may have other writes of
        these."""
        self.on_lifetime: Callable[[AgedStone], None] = lambda aged: None
        """Told of what peers say of lifetimes."""
        self.on_list: Callable[[], None] = lambda: None
        """Called when there is a new list."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._unreadable: dict[Place, None] = {}
        """Blocks that are to be copied from other homes."""
        self._repair_task: asyncio.Task[None] | None = None
        self._probe = 0
        """The number of the last probe that came."""
        self._beat_s = 0.0
        """When HELLO is said next at the latest."""
        self._join_task: asyncio.Task[None] | None = None
        self._settle_task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Copy what was missed, and tell the controller, if there is one."""
        self._doubt(self._store.graveyard.has_past)
        self._begin()
        if self._controller is not None:
            self._spawn(self._beat(self._controller))

    def close(self) -> None:
        """Copy and say nothing any more."""
        self.missed.close()
        for task in self._tasks:
            task.cancel()

    def follow(self, members: Members) -> None:
        """Take a list, if it is later than the one that is known, or the only one that is heard of."""
        now_s = asyncio.get_running_loop().time()
        if self._refused.takes(members.epoch, self.members.epoch, now_s):
            self._take(members, now_s)
        own = self.members.at(self._address)
        if members.epoch == self.members.epoch and own is not None and own.state is not State.DOWN:
            self.missed.is_there()

    def _take(self, members: Members, now_s: float) -> None:
        own, was = members.at(self._address), self.members.at(self._address)
        missed = members.epoch != next_epoch(self.members.epoch)
        self._recent = [(self.members, now_s + SETTLED_S), *self._recent][:MAX_RECENT_LISTS]
        self._list_came.set()
        self.members = members
        self._may_lack = self._may_lack or self._all_copies_may_be_away()
        self._number = own.number if own is not None else 0
        self.on_list()
        if own is None:
            return
        self.settled = False
        self.catch_up.number = own.number
        if own.state is State.JOINING and (missed or was is None or was.state is not State.JOINING):
            self.missed.forget_what_was_said()
            self._doubt(any(self._store.sizes().values()))
            self._begin()  # it counted as dead for a while, and missed what was written then
            if self._settle_task is not None:
                self._settle_task.cancel()  # what it hears yet was said before that
                self._settle_task = None
        self.missed.listed()
        if self._settle_task is None:
            self._settle_task = self._spawn(self._settle())

    def is_home(self, key: bytes) -> bool:
        """Return whether this node takes PUTs of the block: by the newest list, or by one that a host may
        still know. Who has no peers takes all."""
        if not self._address or not self.members.nodes:
            return True
        if self.members.is_home(self._number, key):
            return True
        if not self._recent:
            return False
        now_s = asyncio.get_running_loop().time()
        self._recent = [(members, until_s) for members, until_s in self._recent if now_s < until_s]
        return any(_is_home(members, self._address, key) for members, _ in self._recent)

    @property
    def doubts_some(self) -> bool:
        """Return whether blocks that are here may have been deleted while this node was away, or are deleted
        without it now, as it is down in the newest list."""
        return self.missed.in_doubt or self.members.is_down(self._address)

    def doubts(self, place: Place) -> bool:
        """Return whether a block is here and may have been deleted while this node was away.

        With R = 1, nobody deletes a block whose home is down.
        """
        may_be_deleted = self.missed.in_doubt or place in self.missed.unsure
        if not may_be_deleted and self.members.is_down(self._address):
            down = [one.address for one in self.members.down_homes(place.key)]
            may_be_deleted = self.members.replicas > 1 or self._address not in down
        return may_be_deleted and place in self._store

    def made(self, place: Place) -> None:
        """Take note that a PUT made a block here."""
        self.missed.unsure.discard(place)
        if not self.settled:
            self._fresh[place] = None
            if not len(self._fresh) % FRESH_LOOK:
                self._fresh = {one: None for one in self._fresh if one in self._store}

    def is_fresh(self, place: Place) -> bool:
        """Return whether it came by a PUT before this node knew what other homes hold."""
        return place in self._fresh

    def lacks(self, entry: Entry) -> bool:
        """See `Shelf`."""
        if entry.place not in self._store:
            return True
        return entry.place in self._fresh and not entry.fresh

    def keep(self, entry: Entry, block: Block) -> None:
        """See `Shelf`."""
        place, durable = entry.place, self._store.has_disk
        if place in self._store:
            self.catch_up.stats.replaced += self._store.replace(place, block, durable)
        else:
            self._store.put(place, block, durable)
        self._fresh.pop(place, None)
        self.missed.unsure.discard(place)
        self.make_safe(place)

    def make_safe(self, place: Place) -> None:
        """See `Shelf`."""
        if self._store.has_disk and place in self._store and not self._store.is_safe(place):
            self._unwritten += 1
            self._store.when_safe(place, self._on_written)

    def _on_written(self, error: DiskError | None) -> None:
        self._unwritten -= 1
        self._not_written += error is not None and not isinstance(error, TierFullError)

    def has_room(self) -> bool:
        """See `Shelf`."""
        return self._store.has_room()

    def repair(self, place: Place) -> None:
        """Copy a block that can't be read here from another home of it."""
        if len(self._unreadable) < MAX_UNREADABLE:
            self._unreadable[place] = None
        if self._repair_task is None:
            self._repair_task = self._spawn(self._repair_all())

    async def _repair_all(self) -> None:
        try:
            while some := list(islice(self._unreadable, REPAIRS_AT_ONCE)):
                await asyncio.gather(*map(self._repair, some))
        finally:
            self._repair_task = None

    async def _repair(self, place: Place) -> None:
        peers = [
            member.address
            for member in self.members.order(place.key)
            if member.address != self._address and member.state is not State.DOWN
        ]
        await self.catch_up.repair(place, peers)
        del self._unreadable[place]

    def probed(self, sequence: int) -> None:
        """Say at once that a probe of the controller came."""
        self._probe = sequence
        if self._controller is not None:
            self._say_hello(self._controller)

    async def _beat(self, controller: str) -> None:
        """Say HELLO whenever nothing was said for a while, even if no probe came."""
        loop = asyncio.get_running_loop()
        while True:
            if not self.members.epoch:  # nobody counts as down where there is no controller
                self._store.graveyard.is_there()
            wait_s = self._beat_s - loop.time()
            if wait_s > 0:
                await asyncio.sleep(wait_s)
            else:
                self._say_hello(controller)

    def _say_hello(self, controller: str) -> None:
        """Say HELLO, and again after HEARTBEAT_S if nothing makes the node say it before."""
        self._beat_s = asyncio.get_running_loop().time() + HEARTBEAT_S
        message = hello(self.members, caught_up=self.caught_up, probe=self._probe)
        self._transport.send(controller, [wire.encode(message)])

    def _begin(self) -> None:
        """Begin from the start, whatever was copied already: others may have been written to meanwhile."""
        self.caught_up = self.settled = False
        if self._join_task is not None:
            self._join_task.cancel()
        self._join_task = self._spawn(self._join())

    async def _join(self) -> None:
        """Copy all that the others have for this node. If as many of them are down as a block has homes, they
        may hold blocks that nobody else has: then the node goes on when one is back. It begins again if as
        many did not give all that they listed, or if the disk did not take all: memory may not hold it for
        long."""
        times = 1
        while True:
            patience: Patiences = defaultdict(partial(Patience, times))
            self._list_came.clear()
            self._may_lack = self._all_copies_may_be_away()
            self._not_written = 0
            for _ in range(2):  # what was written to others during the first pass is in the second
                complete = await self._copy_all(patience)
            if complete:
                self.missed.all_was_said()
            else:
                self.missed.end_if_listed()
            await self.missed.unsure_blocks_asked()
            while self._unwritten:
                await asyncio.sleep(ROOM_LOOK_S)
            if self._join_task is not asyncio.current_task():
                return  # it begins anew, as blocks were given up
            if self._may_lack:
                log.info("joining until one is back that is down: it may hold the only copy of a block")
                await self._list_came.wait()
            elif self._all_copies_may_be_away(patience):
                log.info("joining goes on: others have not given all that they listed")
                times = min(2 * times, MAX_PATIENCE)
                await asyncio.sleep(PASS_AGAIN_S)
            elif self._not_written and self._controller is not None:
                log.warning("joining goes on: the disk does not take what others hold for this node")
                times = min(2 * times, MAX_PATIENCE)
                await asyncio.sleep(times * PASS_AGAIN_S)
            else:
                break
        self.caught_up = True
        if self._settle_task is None:
            self._end_settling(complete)

    def _all_copies_may_be_away(self, patience: Patiences | None = None) -> bool:
        """Return whether all homes of a block that this node missed may be away.

        That is so if R peers are down, or, with the `patience` of a pass, did not give all.
        """
        peers = [one for one in self.members.nodes if one.address != self._address]
        away = [one for one in peers if one.state is State.DOWN]
        if patience is not None and self._controller is not None:
            away += [one for one in peers if one not in away and not patience[one.address, 0].gave_all]
        return len(away) >= self.members.replicas

    async def _settle(self) -> None:
        """Copy what was put meanwhile to other homes, by those who did not know the newest list. Lists that
        come meanwhile don't put it off, but for one that says that it was away."""
        epoch = None
        while epoch != self.members.epoch:
            epoch = self.members.epoch
            await asyncio.sleep(SETTLED_S)
            complete = await self._copy_all(defaultdict(Patience))
        self._settle_task = None
        if self.caught_up:
            self._end_settling(complete)

    def _end_settling(self, complete: bool) -> None:
        """End the comparison of what came by PUTs with what others hold; `complete` says whether all of them
        were heard."""
        self.settled = True
        if complete:
            self._fresh.clear()

    async def _copy_all(self, patience: Patiences) -> bool:
        """Copy all that the others have for this node, as long as there is hope to get it; return whether
        that is all."""
        for _ in range(PASSES):
            if await self.catch_up.run(self.members, self._address, patience):
                return True
            if self._controller is None:
                return False  # peers that are not there yet will not be missed by anyone
            await asyncio.sleep(PASS_AGAIN_S)
        return False

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _doubt(self, holds_old_blocks: bool) -> None:
        """Take note that this node was away, if there are peers: these may have had blocks deleted meanwhile,
        and some of those be here."""
        if any(one.address != self._address for one in self.members.nodes):
            self.missed.was_away(holds_old_blocks)

    def _is_listed(self) -> bool:
        return self._controller is None or bool(self.members.epoch)

    def expire(self, aged: AgedStone) -> None:
        """See `Shelf`."""
        self.on_lifetime(aged)

    def bury(self, aged: AgedStone) -> None:
        """See `Shelf`."""
        self.missed.bury(aged)

    def knows_deletions(self) -> None:
        """See `Shelf`."""
        self.missed.all_was_said()

    def deleted(self, place: Place, write: int) -> list[tuple[Tombstone, str]]:
        """See `Shelf`."""
        stones = self._store.graveyard.stones
        return [(stone, stones.source_of(stone)) for stone in stones.of(place) if stone.write == write]

    def _other_homes_up(self, place: Place) -> list[str]:
        """Return the addresses of the block's other homes that are up, by a controller's list: each of them
        has the block unless that was deleted. Without such a list all have to answer who deletes."""
        if not self.members.epoch:
            return []
        homes = self.members.order(place.key)[: self.members.replicas]
        return [home.address for home in homes if home.state is State.UP and home.address != self._address]


def _is_home(members: Members, address: str, key: bytes) -> bool:
    own = members.at(address)
    return own is not None and members.is_home(own.number, key)
