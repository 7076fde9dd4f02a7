"""A storage node among the others: it says that it lives, follows the list of members, and copies what it
missed before it says that it has caught up."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from hostlib import wire
from hostlib.catch_up import CatchUp, Patience
from hostlib.members import HEARTBEAT_S, Members, State, hello, is_later, next_epoch

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from hostlib.block import Block, Place
    from hostlib.store import BlockStore
    from hostlib.transport import Transport

SETTLED_S = 3.0
"""After a new list of members, every host knows it: the controller has told each of them twice."""
PASSES = 30
"""Through the lists of all peers, at most."""
PASS_AGAIN_S = 1.0


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
        own = members.at(address)
        self.catch_up = CatchUp(
            transport, own.number if own else 0, store.__contains__, self._copied, store.has_room
        )
        self._tasks: set[asyncio.Task[None]] = set()
        self._probe = 0
        """The number of the last probe that came."""
        self._beat_s = 0.0
        """When HELLO is said next at the latest."""
        self._join_task: asyncio.Task[None] | None = None
        self._settle_task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Copy what was missed, and tell the controller, if there is one."""
        self._begin()
        if self._controller is not None:
            self._spawn(self._beat(self._controller))

    def close(self) -> None:
        """Copy and say nothing any more."""
        for task in self._tasks:
            task.cancel()

    def follow(self, members: Members) -> None:
        """Take a list, if it is later than the one that is known."""
        if not is_later(members.epoch, self.members.epoch):
            return
        before, own = (known.at(self._address) for known in (self.members, members))
        missed = members.epoch != next_epoch(self.members.epoch)
        self.members = members
        if own is None:
            return
        self.catch_up.number = own.number
        if own.state is State.JOINING and (missed or before is None or before.state is not State.JOINING):
            self._begin()  # it counted as dead for a while, and missed what was written then
        if self._settle_task is not None:
            self._settle_task.cancel()
        self._settle_task = self._spawn(self._settle())

    def repair(self, place: Place) -> None:
        """Copy a block that can't be read here from another home of it."""
        peers = [
            member.address
            for member in self.members.order(place.key)
            if member.address != self._address and member.state is not State.DOWN
        ]
        self._spawn(self._repair(place, peers))

    async def _repair(self, place: Place, peers: list[str]) -> None:
        await self.catch_up.repair(place, peers)

    def probed(self, sequence: int) -> None:
        """The controller has sent a probe: say at once that it came."""
        self._probe = sequence
        if self._controller is not None:
            self._say_hello(self._controller)

    async def _beat(self, controller: str) -> None:
        """Whenever nothing was said for a while, be it that no probe came."""
        loop = asyncio.get_running_loop()
        while True:
            wait_s = self._beat_s - loop.time()
            if wait_s > 0:
                await asyncio.sleep(wait_s)
            else:
                self._say_hello(controller)

    def _say_hello(self, controller: str) -> None:
        """And again after HEARTBEAT_S, if nothing makes the node say it before."""
        self._beat_s = asyncio.get_running_loop().time() + HEARTBEAT_S
        message = hello(self.members, caught_up=self.caught_up, probe=self._probe)
        self._transport.send(controller, [wire.encode(message)])

    def _begin(self) -> None:
        """From the beginning, whatever was copied already: others may have been written to meanwhile."""
        self.caught_up = False
        if self._join_task is not None:
            self._join_task.cancel()
        self._join_task = self._spawn(self._join())

    async def _join(self) -> None:
        """Twice: what was written to others while the first pass went on is in the second."""
        patience: defaultdict[str, Patience] = defaultdict(Patience)
        for _ in range(2):
            await self._copy_all(patience)
        self.caught_up = True

    async def _settle(self) -> None:
        """Copy what was put meanwhile to other homes, by those who did not know the newest list."""
        await asyncio.sleep(SETTLED_S)
        await self._copy_all(defaultdict(Patience))

    async def _copy_all(self, patience: defaultdict[str, Patience]) -> None:
        """All that the others have for this node, as long as there is hope to get it."""
        for _ in range(PASSES):
            if await self.catch_up.run(self.members, self._address, patience):
                return
            if self._controller is None:
                return  # peers that are not there yet will not be missed by anyone
            await asyncio.sleep(PASS_AGAIN_S)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _copied(self, place: Place, block: Block) -> None:
        if place not in self._store:
            self._store.put(place, block, durable=self._store.has_disk)
