"""Catch-up of a storage node: it lists its peers' blocks whose home it is, and copies those it lacks.

Each block is copied whole, from one peer, with its content id and its tags: fragment by fragment, past the
pool. A storage node has no secret to check what the writer sealed; readers check it. Homes of a block are
believed before others, which are asked only for what no home lists. If a home has had a block for longer than
this node, which got it by a PUT before it knew that, the home's copy takes its place. Catch-up goes on in the
background, a few fragments at a time. What a peer does not answer is asked for again a few times and then
left. A peer gets a bounded share of a node's time, and more only for what it gives: a peer that lies must not
keep a node away from its work.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from hostlib.protocol import wire
from hostlib.protocol.block import Block, Place
from hostlib.protocol.catalog import FIRST, LAST, Entry, read_page
from hostlib.protocol.errors import MalformedError
from hostlib.protocol.members import Members, State
from hostlib.protocol.tombstones import (
    LIST_FLAGS,
    AgedStone,
    Tombstone,
    delete_message,
    read_stones_page,
)
from hostlib.transport.assembly import is_whole_fragment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hostlib.protocol.members import Member
    from hostlib.transport.transport import Transport

TRIES: Final = 8
AGAIN_S: Final = 0.1
MAX_AGAIN_S: Final = 0.5
"""Longest wait before another try, in seconds. Waits double from the first try on: peers that start together
find each other soon."""
WINDOW_FRAGMENTS: Final = 16
BLOCKS_AT_ONCE: Final = 4
PATIENCE_S: Final = 60.0
FRAGMENT_S: Final = 0.01
MAX_EARNED_S: Final = 600.0
MAX_STRANGERS_ENTRIES: Final = 65_536
"""Most entries listed by peers that are no homes of the block. They wait for the homes' lists; the rest is
left to the next pass."""
ROOM_LOOK_S: Final = 0.01
"""Seconds between two looks at a disk that is behind."""


@dataclass(slots=True)
class CatchUpStats:
    """Blocks unless the name says otherwise."""

    passes: int = 0
    """Lists read to their end."""
    listed: int = 0
    copied: int = 0
    replaced: int = 0
    """Copies that took the place of what a PUT had left here."""
    failed: int = 0
    """Blocks that the peer that listed them did not give; the pass counts as incomplete."""
    silent_peers: int = 0
    """Lists given up because the peer did not answer."""
    tombstones: int = 0
    """Read of peers, and lifetimes."""
    told: int = 0
    """Peers that listed what was deleted here, and were told so."""
    impatient: int = 0
    """Lists given up because the peer took too long for what it gave."""


class Patience:
    """The time that one peer may take: PATIENCE_S, and FRAGMENT_S for each fragment that it gave, at most
    MAX_EARNED_S; so many `times` as long where it is asked once more as it did not give all."""

    def __init__(self, times: int = 1) -> None:
        self._left_s, self._to_earn_s = times * PATIENCE_S, times * MAX_EARNED_S
        self._began_s = 0.0
        self.gave_all = False
        """Whether all came that it listed last."""

    def begin(self, now_s: float) -> None:
        """Begin to measure the time of a peer, which is asked from now on."""
        self._began_s = now_s

    def end(self, now_s: float) -> None:
        """Stop measuring: the peer is not asked for a while."""
        self._left_s -= now_s - self._began_s
        self._began_s = now_s

    def earned(self, fragments: int) -> None:
        """Credit a peer that gave so many fragments, or named as many blocks that are here already."""
        earned_s = min(self._to_earn_s, fragments * FRAGMENT_S)
        self._to_earn_s -= earned_s
        self._left_s += earned_s

    def is_over(self, now_s: float) -> bool:
        """Return whether it has taken all of it."""
        return now_s - self._began_s >= self._left_s


Patiences = defaultdict[tuple[str, int], Patience]
"""Patience with each peer, by its address and the list that it is asked for (LIST_FLAGS)."""


class Shelf(Protocol):
    """Interface of the place where copies go."""

    def lacks(self, entry: Entry) -> bool:
        """Return whether a block that a home of it lists is missing here, or here only by a later PUT."""

    def keep(self, entry: Entry, block: Block) -> None:
        """Take a copy of a block that is lacking."""

    def make_safe(self, place: Place) -> None:
        """Have a block on disk that is here, too, as its PUT may be durable at who stood in for this node."""

    def has_room(self) -> bool:
        """Return whether more may come now."""

    def bury(self, aged: AgedStone) -> None:
        """Take what a peer says was deleted."""

    def expire(self, aged: AgedStone) -> None:
        """Take what a peer says of a write's lifetime."""

    def deleted(self, place: Place, write: int) -> Sequence[tuple[Tombstone, str]]:
        """Return why one write of a block is not to be copied, and the addresses of the hosts that say so."""

    def knows_deletions(self) -> None:
        """Note that all deletions are known: a peer that was there all the time said them, or all that may
        know of one did."""


class CatchUp:
    """Copies what `joining` lacks."""

    def __init__(self, transport: Transport, number: int, shelf: Shelf) -> None:
        self.stats = CatchUpStats()
        self._transport = transport
        self.number = number
        self._shelf = shelf
        self._window = asyncio.Semaphore(WINDOW_FRAGMENTS)
        self._waiting: dict[tuple[str, int, Place, int], tuple[int, asyncio.Future[wire.Message | None]]] = {}
        """By peer, operation, place and fragment; with the number of the first question."""
        self._copying: dict[Place, asyncio.Event] = {}
        """Set when a copy that is under way has ended."""
        self._busy: set[str] = set()
        """Peers that refused what was asked for last, as they can't give it now."""
        self._numbers = wire.Numbers(asyncio.get_running_loop().time)
        self._epoch = 0

    async def run(self, members: Members, own_address: str, patience: Patiences | None = None) -> bool:
        """Copy what is missing from all peers that are not down; whether all of them answered, and gave what
        they had listed. Peers that have used up the patience there is with them, by address, count as if they
        had."""
        self._epoch = members.epoch
        patience = patience if patience is not None else defaultdict(Patience)
        now_s = asyncio.get_running_loop().time
        strangers: list[tuple[str, list[Entry]]] = []
        peers = [one for one in members.nodes if one.address != own_address and one.state is not State.DOWN]
        away = sum(one.state is State.DOWN for one in members.nodes if one.address != own_address)

        async def blocks() -> bool:
            complete = True
            for peer in peers:
                left = patience[peer.address, 0]
                left.begin(now_s())
                others: list[Entry] = []
                left.gave_all = await self._from_peer(members, peer, left, others)
                complete = (left.gave_all or left.is_over(now_s())) and complete
                left.end(now_s())
                strangers.append((peer.address, others))
            for address, others in strangers:
                left = patience[address, 0]
                left.begin(now_s())
                came = await self._copy_all(address, others, left)
                left.gave_all = left.gave_all and came
                complete = (came or left.is_over(now_s())) and complete
                left.end(now_s())
            return complete

        async def stones(flags: int) -> bool:
            """Get the tombstones, or lifetimes, of all peers at once: one that is silent keeps nobody in
            doubt."""
            lists = (self._stones_from(one.address, flags, patience[one.address, flags]) for one in peers)
            return all(await asyncio.gather(*lists))

        async def deletions() -> bool:
            complete = await stones(wire.FLAG_TOMBSTONES)
            if complete and away < members.replicas:
                self._shelf.knows_deletions()  # else all in doubt would wait for one another
            return complete

        complete = all(await asyncio.gather(blocks(), deletions()))
        return await stones(LIST_FLAGS) and complete  # lifetimes of what is here by now

    async def copy(self, peer: str, entry: Entry, patience: Patience) -> bool:
        """Copy one block; whether it is here now."""
        if not self._shelf.lacks(entry):
            return True
        under_way = self._copying.get(entry.place)
        if under_way is not None:
            await under_way.wait()
            return not self._shelf.lacks(entry)
        ended = self._copying[entry.place] = asyncio.Event()
        try:
            return await self._copy(peer, entry, patience)
        finally:
            del self._copying[entry.place]
            ended.set()

    async def repair(self, place: Place, peers: list[str]) -> None:
        """Copy one block from the first of these that has it."""
        for peer in peers:
            patience = Patience()
            patience.begin(asyncio.get_running_loop().time())
            found = await self._stat(peer, place)
            if found is None or found.op != wire.OP_FOUND:
                continue
            if await self.copy(peer, Entry(place, found.content, found.fragments), patience):
                return

    async def write_at(self, peer: str, place: Place) -> int | None:
        """Return the content id of the write of a block that a peer holds, 0 for none; None if it does not
        say."""
        found = await self._stat(peer, place)
        if found is None or found.op == wire.OP_REFUSED:
            return None
        return found.content if found.op == wire.OP_FOUND else 0

    def on_reply(self, message: wire.Message, address: str) -> bool:
        """Take a VALUE, NOT_FOUND, FOUND, KEYS or REFUSED; return whether something here waited for it."""
        op = {
            wire.OP_VALUE: wire.OP_GET,
            wire.OP_FOUND: wire.OP_STAT,
            wire.OP_KEYS: wire.OP_LIST | message.flags & LIST_FLAGS,
        }.get(message.op, wire.OP_GET if message.content else wire.OP_STAT)  # echoed: a GET names a write
        place = Place(message.tenant, message.key)
        waiting = self._waiting.get((address, op, place, message.fragment))
        if waiting is None or waiting[1].done() or wire.is_of_before(message, waiting[0]):
            return False  # the answer to an earlier question says what was there then
        waiting[1].set_result(message._replace(value=bytes(message.value)))
        return True

    async def _from_peer(
        self, members: Members, peer: Member, patience: Patience, others: list[Entry]
    ) -> bool:
        """Copy what a peer lists that is a home of it; the rest of what is lacking goes to `others`.

        Returns whether its list was read to the end, and everything came.
        """
        start, complete = FIRST, True
        while start != LAST:
            if patience.is_over(asyncio.get_running_loop().time()):
                self.stats.impatient += 1
                return False
            page = await self._ask(peer.address, wire.OP_LIST, start)
            if page is None or page.op != wire.OP_KEYS:
                self.stats.silent_peers += 1
                return False
            try:
                following, entries = read_page(page.value, page.content)
            except MalformedError:
                return False
            if following <= start and following != LAST:
                return False  # else a peer could keep this node busy for ever
            start = following
            lacking = [entry for entry in entries if self._is_lacking(peer.address, entry)]
            self.stats.listed += len(entries)
            patience.earned(len(entries) - len(lacking))
            of_home: list[Entry] = []
            for entry in entries:
                if not members.is_home(peer.number, entry.place.key):
                    self._shelf.make_safe(entry.place)
                    others += [entry._replace(fresh=True)] if entry in lacking else []
                elif entry in lacking:
                    of_home.append(entry)
            await self._room()
            if len(others) > MAX_STRANGERS_ENTRIES:
                del others[MAX_STRANGERS_ENTRIES:]
                complete = False
            complete = await self._copy_all(peer.address, of_home, patience) and complete
        self.stats.passes += 1
        return complete

    def _is_lacking(self, peer: str, entry: Entry) -> bool:
        """Return whether what a peer listed is to be copied. A peer that lists a deleted block is told of the
        deletion."""
        if not self._shelf.lacks(entry):
            return False
        stones = self._shelf.deleted(entry.place, entry.write)
        if stones:
            self.stats.told += 1
            orders = [delete_message(one, entry.fragments, source=source) for one, source in stones]
            self._transport.send(peer, orders)
        return not stones

    async def _stones_from(self, peer: str, flags: int, patience: Patience) -> bool:
        """Read all that a peer knows to be deleted, or of lifetimes; whether it answered. One that answers
        what is no list, or takes too long for it, is not asked again for that."""
        now_s = asyncio.get_running_loop().time
        patience.begin(now_s())
        try:
            return await self._read_stones(peer, flags, patience)
        finally:
            patience.end(now_s())

    async def _read_stones(self, peer: str, flags: int, patience: Patience) -> bool:
        start, knows_all = FIRST, True
        while start != LAST:
            if patience.is_over(asyncio.get_running_loop().time()):
                self.stats.impatient += 1
                return True
            page = await self._ask(peer, wire.OP_LIST, start, flags)
            if page is None:
                self.stats.silent_peers += 1
                return False
            try:
                following, stones = read_stones_page(page.value)
            except MalformedError:
                return True
            if following <= start and following != LAST:
                return True
            start = following
            knows_all = knows_all and bool(page.flags & wire.FLAG_HELD)
            patience.earned(len(stones))
            for aged in stones:
                (self._shelf.expire if flags == LIST_FLAGS else self._shelf.bury)(aged)
            self.stats.tombstones += len(stones)
        if knows_all and flags != LIST_FLAGS:
            self._shelf.knows_deletions()
        return True

    async def _copy_all(self, peer: str, entries: Sequence[Entry], patience: Patience) -> bool:
        """Copy these blocks; return whether all of them came."""
        complete = True
        for at in range(0, len(entries), BLOCKS_AT_ONCE):
            is_over = patience.is_over(asyncio.get_running_loop().time())
            if is_over or (peer in self._busy and await self._gives_nothing(peer, entries[at])):
                self.stats.failed += len(entries) - at
                return False  # asked for in the next pass
            group = entries[at : at + BLOCKS_AT_ONCE]
            done = await asyncio.gather(*(self.copy(peer, entry, patience) for entry in group))
            self.stats.failed += done.count(False)
            complete = complete and all(done)
            await self._room()
        return complete

    async def _room(self) -> None:
        """Wait until the disk has room for more."""
        while not self._shelf.has_room():
            await asyncio.sleep(ROOM_LOOK_S)

    async def _gives_nothing(self, peer: str, entry: Entry) -> bool:
        """Return whether a peer that was busy does not know what was deleted.

        Such a peer says nothing of this block, either. A peer that only has too much to read does.
        """
        reply = await self._stat(peer, entry.place)
        if reply is not None and _is_busy(reply):
            return True
        self._busy.discard(peer)
        return False

    async def _copy(self, peer: str, entry: Entry, patience: Patience) -> bool:
        values: list[wire.Message] = []
        for first in range(0, entry.fragments, WINDOW_FRAGMENTS):
            some = range(first, min(first + WINDOW_FRAGMENTS, entry.fragments))
            parts = await asyncio.gather(*(self._fragment(peer, entry, fragment) for fragment in some))
            given = [part for part in parts if part is not None]
            patience.earned(len(given))
            values += given
            if len(given) < len(some) or patience.is_over(asyncio.get_running_loop().time()):
                break
        if len(values) < entry.fragments or not self._shelf.lacks(entry):
            return not self._shelf.lacks(entry)
        block = Block(
            entry.write,
            b"".join(bytes(part.value) for part in values),
            b"".join(part.tag for part in values),
        )
        self._shelf.keep(entry, block)
        self.stats.copied += 1
        return True

    async def _fragment(self, peer: str, entry: Entry, fragment: int) -> wire.Message | None:
        async with self._window:
            reply = await self._ask(
                peer, wire.OP_GET, entry.place, wire.FLAG_BYPASS, fragment, entry.fragments, entry.write
            )
        if reply is not None and _is_busy(reply):
            self._busy.add(peer)
        if (
            reply is None
            or reply.op != wire.OP_VALUE
            or (reply.content, reply.fragments) != (entry.write, entry.fragments)
            or not is_whole_fragment(reply)
        ):
            return None
        return reply

    async def _stat(self, peer: str, place: Place) -> wire.Message | None:
        return await self._ask(peer, wire.OP_STAT, place, wire.FLAG_BYPASS)

    async def _ask(
        self,
        peer: str,
        op: int,
        place: Place,
        flags: int = 0,
        fragment: int = 0,
        fragments: int = 0,
        write: int = 0,
    ) -> wire.Message | None:
        """Return the reply, None if there is none after some tries."""
        key = (peer, op | flags & LIST_FLAGS, place, fragment)
        future: asyncio.Future[wire.Message | None] = asyncio.get_running_loop().create_future()
        waiting = self._waiting[key] = self._numbers.next, future
        try:
            for attempt in range(TRIES):
                again = wire.FLAG_RETRY if attempt and op == wire.OP_GET else 0
                message = wire.Message(
                    op, place.key, fragment, fragments, flags | again,
                    generation=self._epoch if op == wire.OP_LIST else 0, sequence=self._numbers.take(),
                    tenant=place.tenant, content=write, homes=(self.number, 0, 0), epoch=self._epoch & 0xFF,
                )  # fmt: skip
                self._transport.send(peer, [wire.encode(message)])
                wait_s = min(MAX_AGAIN_S, AGAIN_S * (1 << attempt))
                done, _ = await asyncio.wait([future], timeout=wait_s)
                if done:
                    return future.result()
            return None
        finally:
            if self._waiting.get(key) is waiting:
                del self._waiting[key]


def _is_busy(reply: wire.Message) -> bool:
    return reply.op == wire.OP_REFUSED and reply.generation == wire.REFUSED_BUSY
