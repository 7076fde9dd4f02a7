"""Ends lifetimes of blocks: a storage node deletes what is over, at home and everywhere.

A tenant says how long a write of a block lives by a hint with the proof that deletes the write. At the end
each home forgets the block, tells all other storage nodes to do so, which may have copied it meanwhile, and
the controller, who has the switches forget it. Who is down then learns of the deletion when it returns. Pools
learn of it from the controller alone: one that did not answer is told again when it sends a new list, and
now and then. It does not answer while a switch does not, for which it sends no new list.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hostlib.protocol.block import Place
from hostlib.protocol.members import State
from hostlib.protocol.tombstones import Tombstone, delete_message
from hostlib.protocol.wire import fragment_count
from hostlib.storage.lifetimes import MAX_LIFETIMES, Lifetime

if TYPE_CHECKING:
    from collections.abc import Callable

    from hostlib.protocol.errors import DiskError
    from hostlib.protocol.tombstones import AgedStone
    from hostlib.protocol.wire import Message
    from hostlib.storage.joining import Joining
    from hostlib.storage.store import BlockStore
    from hostlib.transport.transport import Transport

BATCH: Final = 64
"""Lifetimes that are ended at once; then others have their turn."""
LOOK_S: Final = 60.0
"""Longest time between two looks at the clock, which may be set."""
TELL_EVERY_S: Final = 0.5
TELL_AT_ONCE: Final = 1024
"""Messages to others after which what this node answers has its turn. More would fill a socket's queue."""
TELL_PAUSE_S: Final = 0.01
TELL_S: Final = 10.0
"""Seconds for which others are told of a deletion until they answer."""
AGAIN_S: Final = 60.0
"""Seconds after which a controller that did not answer is told again."""
AGAIN: Final = 1024
"""Most deletions of which it is told again then."""
MAX_TOLD: Final = 4096
"""Deletions that others are being told of; more wait for their turn."""


@dataclass(slots=True)
class _Telling:
    """A deletion that others are being told of."""

    lifetime: Lifetime
    message: bytes
    untold: set[str]
    until_s: float


class Expiry:
    """See the module."""

    def __init__(
        self,
        transport: Transport,
        store: BlockStore,
        joining: Joining,
        own: str | None,
        controller: str | None,
    ) -> None:
        self._transport, self._store, self._joining = transport, store, joining
        self._own, self._controller = own, controller
        joining.on_lifetime = self.learn
        joining.on_list = self._tell_again
        self._telling: dict[tuple[Place, int], _Telling] = {}
        """By place and content id."""
        self._untold: deque[Lifetime] = deque()
        """Lifetimes that ended here, of which others are to be told."""
        self._unheard: list[Lifetime] = []
        """Lifetimes that ended here while the controller did not answer, so that it has to be told again."""
        self._timer: asyncio.TimerHandle | None = None
        self._again: asyncio.TimerHandle | None = None
        """Tells the controller again."""
        self._teller: asyncio.Task[None] | None = None
        self._reads: set[asyncio.Task[None]] = set()
        self.ended = 0
        """Number of lifetimes that were over."""

    def start(self) -> None:
        """Go on with what the disk says."""
        self._set_timer()

    def begin(self, address: str, message: Message, done: Callable[[bool], None]) -> None:
        """Give the write that a hint of a host names its lifetime; `done` hears whether that is safe.

        A write that is here under another proof is not the sender's, and is left alone.
        """
        place = Place(message.tenant, message.key)
        stone = Tombstone(place, message.content, message.tag)
        if not self._store.is_proven(stone):
            done(False)
            return
        end_s = self._store.lifetimes.wall_s() + message.generation
        lifetime = Lifetime(end_s, stone, message.fragments, address)

        def noted(error: DiskError | None) -> None:
            done(error is None)

        if not self._store.lifetimes.begin(lifetime, noted):
            done(False)
        self._set_timer()

    def learn(self, aged: AgedStone) -> None:
        """Learn that another home gave a block a lifetime; this node may have copied the block since."""
        stone, left_s, source = aged
        found = self._store.find(stone.place)
        if found is not None and self._store.is_proven(stone):
            end_s = self._store.lifetimes.wall_s() + left_s
            lifetime = Lifetime(end_s, stone, fragment_count(found[0]), source)
            self._store.lifetimes.begin(lifetime, lambda error: None)
            self._set_timer()

    def on_deleted(self, address: str, message: Message) -> bool:
        """Take note that a storage node or the controller has obeyed; return whether it was told to."""
        name = Place(message.tenant, message.key), message.content
        telling = self._telling.get(name)
        if telling is None:
            return False
        telling.untold.discard(address)
        if not telling.untold:
            del self._telling[name]
            self._forget(telling.lifetime.stone)
        return True

    def close(self) -> None:
        """End nothing any more."""
        for timer in (self._timer, self._again):
            if timer is not None:
                timer.cancel()
        for task in (self._teller, *self._reads):
            if task is not None:
                task.cancel()

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        end_s = self._store.lifetimes.next_s()
        if end_s is not None:
            wait_s = max(0.0, end_s - self._store.lifetimes.wall_s())
            if len(self._untold) >= MAX_LIFETIMES:
                wait_s = max(wait_s, TELL_EVERY_S)
            self._timer = asyncio.get_running_loop().call_later(min(wait_s, LOOK_S), self._on_time)

    def _on_time(self) -> None:
        self._timer = None
        if len(self._untold) < MAX_LIFETIMES:
            for lifetime in self._store.lifetimes.take(BATCH):
                self._end(lifetime)
        self._set_timer()

    def _end(self, lifetime: Lifetime) -> None:
        """End a lifetime: here at once, however long others take."""
        self.ended += 1
        if self._store.delete(lifetime.stone, source=lifetime.source):
            self._has_ended(lifetime)
        else:
            task = asyncio.ensure_future(self._end_unproven(lifetime))
            self._reads.add(task)
            task.add_done_callback(self._reads.discard)

    async def _end_unproven(self, lifetime: Lifetime) -> None:
        """End a lifetime whose block has another tag here: it is somebody else's, or damaged on the disk."""
        if await self._store.drop_if_damaged(lifetime.stone.place):
            self._store.delete(lifetime.stone, source=lifetime.source)
        self._has_ended(lifetime)

    def _has_ended(self, lifetime: Lifetime) -> None:
        self._untold.append(lifetime)
        self._start_telling()

    def _start_telling(self) -> None:
        if self._teller is None:
            self._teller = asyncio.ensure_future(self._tell())

    def _tell_again(self, count: int = MAX_LIFETIMES) -> None:
        """Tell the controller of as many that it has not heard of: it sent a new list, or time has passed."""
        if self._again is not None:
            self._again.cancel()
            self._again = None
        if self._unheard:
            self._untold.extend(self._unheard[:count])
            del self._unheard[:count]
            self._start_telling()
            self._set_again()

    def _set_again(self) -> None:
        if self._unheard and self._again is None:
            self._again = asyncio.get_running_loop().call_later(AGAIN_S, self._tell_again, AGAIN)

    def _give_up(self, telling: _Telling) -> None:
        """Others were told for long enough."""
        if self._controller in telling.untold and len(self._unheard) < MAX_LIFETIMES:
            self._unheard.append(telling.lifetime)
            self._set_again()
        else:
            self._forget(telling.lifetime.stone)

    def _forget(self, stone: Tombstone) -> None:
        """Forget a lifetime when its deletion is safe. All know of the deletion, or were told for long
        enough.

        A restart before that begins anew.
        """
        self._store.graveyard.when_safe(stone, lambda error: self._store.lifetimes.forget(stone, error))

    def _begin_to_tell(self, lifetime: Lifetime) -> None:
        untold = {
            member.address
            for member in self._joining.members.nodes
            if member.address != self._own and member.state is not State.DOWN
        }
        if self._controller is not None:
            untold.add(self._controller)
        stone = lifetime.stone
        if untold:
            sequence = self.ended & 0xFFFFFFFF
            message = delete_message(stone, lifetime.fragments, sequence, source=lifetime.source)
            until_s = asyncio.get_running_loop().time() + TELL_S
            self._telling[stone.place, stone.write] = _Telling(lifetime, message, untold, until_s)
        else:
            self._forget(stone)

    async def _tell(self) -> None:
        """Say it again until all have answered, or for a while."""
        try:
            while self._telling or self._untold:
                while self._untold and len(self._telling) < MAX_TOLD:
                    self._begin_to_tell(self._untold.popleft())
                now_s = asyncio.get_running_loop().time()
                sent = 0
                for name, telling in list(self._telling.items()):
                    if now_s > telling.until_s:
                        if self._telling.pop(name, None) is not None:  # answered during a pause else
                            self._give_up(telling)
                        continue
                    for address in telling.untold:
                        self._transport.send(address, [telling.message])
                    sent += len(telling.untold)
                    if sent >= TELL_AT_ONCE:
                        sent = 0
                        await asyncio.sleep(TELL_PAUSE_S)
                await asyncio.sleep(TELL_EVERY_S)
        finally:
            self._teller = None
