"""The blocks of a storage node: DRAM over SSD, both bounded, and PUTs that are not complete yet.

Blocks have any length. Of two writes of one block the first that is complete stays; blocks are immutable.
What left DRAM for the SSD can be read while it is being written there.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from hostlib import native
from hostlib.protocol import wire
from hostlib.protocol.block import LEAST_BYTES, Block, Derive, Derived, Place, taken_bytes
from hostlib.protocol.content import derived_write
from hostlib.protocol.errors import DiskError, TierFullError, UnreadableError
from hostlib.protocol.tombstones import MAX_OF_BLOCK, Tombstone, Tombstones
from hostlib.storage.graveyard import Graveyard
from hostlib.storage.later_turn import LaterTurn
from hostlib.storage.lifetimes import Lifetime, Lifetimes
from hostlib.storage.retained import RetainedPlaces
from hostlib.storage.ssd import LEAVE_AT_ONCE
from hostlib.storage.store_options import RECEIVED, Kept, PutOutcome, StoreOptions, StoreStats
from hostlib.transport.assembly import Assembly, Write, is_whole_fragment, write_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from hostlib.native import Served
    from hostlib.storage.ssd import SsdTier

MAX_SUPERSEDED: Final = 16_384
"""Number of superseded writes that are remembered."""


class BlockStore:
    """Least recently used DRAM blocks are demoted to SSD.

    A block in DRAM may be one that was there from the start: `derive` makes its content when it is read. It
    takes its full size of the DRAM budget all the same.
    """

    def __init__(
        self,
        dram_bytes: int,
        ssd: SsdTier | None,
        derive: Derive,
        options: StoreOptions | None = None,
        tombstones: Tombstones | None = None,
    ) -> None:
        self.stats = StoreStats()
        stones = Tombstones() if tombstones is None else tombstones
        self.lifetimes = Lifetimes(stones.wall_s, ssd)
        self.graveyard = Graveyard(stones, ssd)
        """What was deleted."""
        self._options = options or StoreOptions()
        self._dram_bytes = dram_bytes
        self._dram_used = 0
        self._dram: OrderedDict[Place, Block | Derived] = OrderedDict()
        self._ssd = ssd
        self._derive = derive
        partial = self._options.max_partial, self._options.max_partial_bytes
        self._assembly = Assembly(*partial)
        self._superseded: OrderedDict[Write, None] = OrderedDict()
        """Writes whose PUTs were acknowledged because another write of their block was here, oldest first.
        A deletion names only that other one. Without this, PUTs that the network repeats or holds back would
        store a write after the deletion that was acknowledged before it."""
        self._core = native.core()
        self._retained = RetainedPlaces(
            int(self._options.retained_share * dram_bytes), self._options.max_retained
        )
        """Blocks that leave after all others."""
        self.on_released: Callable[[Place], None] = lambda place: None
        """Told of each block that is not retained any more, be it that it left."""
        self._not_asked: set[Place] = set()
        """Blocks in DRAM that were read ahead."""
        self._leaving = LaterTurn()
        """Goes on making room in DRAM."""
        self._tenant_bytes: Counter[int] = Counter()
        self._shelf = (self._dram, self._not_asked, derive, Place, Block)
        """What the core answers from."""
        if ssd is not None:
            ssd.on_gone = self._on_gone_from_ssd
            ssd.on_restored = self._on_restored_on_ssd
            ssd.stays = self._retained.__contains__
            for place, length in ssd.lengths:
                self._tenant_bytes[place.tenant] += taken_bytes(length)

    def preload(
        self, places: Sequence[Place], length: int, lengths: Mapping[Place, int] | None = None
    ) -> None:
        """Hold these blocks of derived content, most recently used last, without having received them.

        `lengths` names those that do not have `length`. Those that have no room are left out, the first ones
        first.
        """
        blocks = [(place, Derived((lengths or {}).get(place, length))) for place in places]
        all_lengths = [_taken(block) for _, block in blocks]
        split = min(max(0, len(blocks) - 1), _first_that_fits(all_lengths, self._dram_bytes))
        if self._ssd is not None:
            new = [(place, block) for place, block in blocks[:split] if place not in self]
            new = new[_first_that_fits([_taken(block) for _, block in new], self._ssd.capacity_bytes) :]
            self._ssd.preload(new)
            for place, block in new:
                if place in self._ssd:
                    self._tenant_bytes[place.tenant] += _taken(block)
        for place, block in blocks[split:]:
            if place not in self:
                self._tenant_bytes[place.tenant] += _taken(block)
                self._insert(place, block)

    def drop(self, place: Place) -> None:
        """Hold a block no longer."""
        block = self._leave_dram(place)
        if self._ssd is not None and place in self._ssd:
            self._ssd.drop(place)
        elif block is not None:
            self._tenant_bytes[place.tenant] -= _taken(block)

    def get(self, place: Place) -> Block | None:
        """Return a complete block; None if it isn't here. Raises UnreadableError if the disk can't give it
        back."""
        block = self._dram.get(place)
        if block is None:
            self.read_from_ssd(place)
            block = self._dram.get(place)
            if block is None:
                self.stats.misses += 1
                return None
        else:
            self._dram.move_to_end(place)
            self.stats.dram_hits += 1
            if place in self._not_asked:
                self._not_asked.remove(place)
                self.stats.read_ahead_hits += 1
        return self._derive(place, block.length) if isinstance(block, Derived) else block

    def serve(
        self,
        datagrams: Sequence[wire.Buffer],
        at: int,
        epoch: int,
        backlog_ms: Callable[[int], int],
        replies: list[bytes],
    ) -> Served | None:
        """Return the answers to those datagrams from there on that are GETs of one tenant for blocks in
        DRAM."""
        served = self._core.serve_gets(datagrams, at, self._shelf, epoch, backlog_ms, replies)
        if served is not None:
            self.stats.dram_hits += served[0]
        return served

    def find(self, place: Place) -> tuple[int, int] | None:
        """Return length in bytes and content id of a block that is here, without reading it."""
        block = self._dram.get(place)
        if block is not None:
            return _length(block), derived_write(place.key) if isinstance(block, Derived) else block.write
        if self._ssd is not None and place in self._ssd:
            return self._ssd.length(place), self._ssd.write_of(place) or derived_write(place.key)
        return None

    def put_fragment(self, message: wire.Message, address: str = "") -> PutOutcome:
        """Keep one fragment of a PUT of the host with that address."""
        place, write = Place(message.tenant, message.key), write_of(message, address)
        durable = bool(message.flags & wire.FLAG_DURABLE)
        if place in self:
            return self._keep_held(place, write, durable)
        if not is_whole_fragment(message) or not message.content:
            return PutOutcome(Kept.REFUSED, reason=wire.REFUSED_LENGTH)
        reason = self._why_not(message, write)
        if reason:
            return PutOutcome(Kept.REFUSED, reason=reason)
        block = self._assembly.add(message, address)
        self.stats.partial_dropped = self._assembly.given_up
        if block is None:
            return RECEIVED
        return self.put(place, block, durable)

    def put_run(
        self, message: wire.Message, address: str, puts: list[bytes], at: int, count: int
    ) -> tuple[int, int, PutOutcome]:
        """Put a run of whole fragments of one write, as `put_fragment` does; `message` is the first of them.

        Returns how many are received, how many behind these have the outcome, and the outcome. (0, 0, ...)
        means that they have to come one by one.
        """
        place, write = Place(message.tenant, message.key), write_of(message, address)
        durable = bool(message.flags & wire.FLAG_DURABLE)
        if place in self:
            return 0, 0 if durable else count, self._keep_held(place, write, durable)
        if self._why_not(message, write):
            return 0, 0, RECEIVED
        taken, block = self._assembly.add_run(write, message.fragments, puts, at, count)
        self.stats.partial_dropped = self._assembly.given_up
        if block is None:
            return taken, 0, RECEIVED
        return taken - 1, 1, self.put(place, block, durable)

    def put(self, place: Place, block: Block, durable: bool) -> PutOutcome:
        """Keep a whole block that is not here, unless this write of it was deleted."""
        if self.graveyard.stones.forbids(place, block.write, block.tag(0)):
            self.stats.came_back += 1
            return PutOutcome(Kept.REFUSED, reason=wire.REFUSED_DELETED)
        self.stats.stored += 1
        self._tenant_bytes[place.tenant] += _taken(block)
        if durable:
            assert self._ssd is not None
            self._ssd.keep(place, block)
            self.graveyard.is_there()
        self._insert(place, block)
        return PutOutcome(Kept.COMMITTING if durable else Kept.HELD, block.write)

    def delete(self, stone: Tombstone, age_s: float = 0.0, source: str = "") -> bool:
        """Remember a tombstone, and forget the block if it is that write's. Returns False if the proof
        is not that write's.

        `graveyard.when_safe` says when a power cut does not bring the block back. `source` is the host that
        asks for it.
        """
        found = self.find(stone.place)
        if found is not None and found[1] == stone.write:
            if not stone.deletes(stone.write, self._first_tag(stone.place)):
                return False
            self.drop(stone.place)
            self.stats.deleted += 1
        self.graveyard.bury(stone, age_s, source)
        if self.lifetimes.drop(stone):
            self.graveyard.when_safe(stone, lambda error: self.lifetimes.forget(stone, error))
        return True

    def is_proven(self, stone: Tombstone) -> bool:
        """Return whether this write of the block is here, and the proof is its writer's."""
        found = self.find(stone.place)
        return found is not None and stone.deletes(found[1], self._first_tag(stone.place))

    def lifetimes_of_held(self) -> Iterator[Lifetime]:
        """Yield those of the writes that are here; of one block no more than there are tombstones of it."""
        of_block: Counter[Place] = Counter()
        for lifetime in reversed(list(self.lifetimes)):
            place, found = lifetime.stone.place, self.find(lifetime.stone.place)
            if found is not None and found[1] == lifetime.stone.write and of_block[place] < MAX_OF_BLOCK:
                of_block[place] += 1
                yield lifetime

    def retain(self, place: Place) -> bool:
        """Let other blocks leave before this one, until it is released; whether that is so.

        False if it is not here, or if as much as may be is retained already.
        """
        if place in self._retained:
            return True
        found = self.find(place)
        if found is None or not self._retained.add(place, taken_bytes(found[0])):
            return False
        self.stats.retained += 1
        return True

    def release(self, place: Place) -> None:
        """Let a block leave in its turn again."""
        if self._retained.remove(place):
            self.on_released(place)

    def demote(self, place: Place) -> bool:
        """Let a block leave DRAM, for the SSD if there is one, before all others; whether it is here."""
        self.release(place)
        if place not in self:
            return False
        if place in self._dram:
            if self._ssd is None:
                self._dram.move_to_end(place, last=False)
            else:
                self._demote(place, self._dram.pop(place))
        return True

    def tenants(self) -> set[int]:
        """Return whose blocks are here."""
        return {tenant for tenant, held_bytes in self._tenant_bytes.items() if held_bytes}

    def _first_tag(self, place: Place) -> bytes:
        """Return the tag of fragment 0 of a block that is here, without reading the disk."""
        block = self._dram.get(place)
        if block is None:
            assert self._ssd is not None
            tag = self._ssd.first_tag(place)
            if tag is not None:
                return tag
            block = Derived(self._ssd.length(place))
        return (self._derive(place, block.length) if isinstance(block, Derived) else block).tag(0)

    async def drop_if_damaged(self, place: Place) -> bool:
        """Read a block that is on SSD only, whole; return whether it was damaged, and so is here no more."""
        try:
            if self._ssd is not None and place not in self._dram:
                await self._ssd.load(place)
        except UnreadableError:
            return True
        return False

    def replace(self, place: Place, block: Block, durable: bool) -> bool:
        """Keep a whole block in place of the one that is here; whether they differ. A disk has the one or the
        other at any time."""
        held = self._dram.get(place)
        if self.graveyard.stones.forbids(place, block.write, block.tag(0)):
            return False
        if held == block and (not durable or (self._ssd is not None and place in self._ssd)):
            return False
        if self._ssd is None or not durable or place not in self._ssd:
            self.drop(place)
            self.put(place, block, durable)
            return True
        length = self._ssd.length(place)
        if not self._ssd.replace(place, block):
            return False
        self.stats.stored += 1
        self._leave_dram(place)
        self._tenant_bytes[place.tenant] += _taken(block) - taken_bytes(length)
        return True

    def when_safe(self, place: Place, done: Callable[[DiskError | None], None]) -> None:
        """Call `done` when the block is on stable storage, or when it is certain that it won't be."""
        block = self._dram.get(place)
        if self._ssd is None or (block is None and place not in self._ssd):
            done(TierFullError("no disk, or the block is gone"))
        elif place in self._ssd:
            self._ssd.keep(place, Derived(1), done)  # it is there: only `done` matters
        else:
            assert block is not None
            self._ssd.keep(place, block, done)

    def is_safe(self, place: Place) -> bool:
        """Return whether a block is on stable storage."""
        return self._ssd is not None and place in self._ssd and not self._ssd.is_waiting(place)

    def __contains__(self, place: object) -> bool:
        return place in self._dram or (self._ssd is not None and place in self._ssd)

    def places(self) -> list[Place]:
        """Return the places of all blocks, in any order."""
        in_dram = dict.__iter__(self._dram)  # in the order of their use, a million take 1.2 s
        if self._ssd is None:
            return list(in_dram)
        return [*self._ssd, *(place for place in in_dram if place not in self._ssd)]

    def on_ssd_only(self, place: Place) -> bool:
        """Return whether the block has to be read from SSD first."""
        return place not in self._dram and self._ssd is not None and place in self._ssd

    def ssd_length(self, place: Place) -> int:
        """Return the length of a block on SSD in bytes; 0 if it is not there any more."""
        return self._ssd.length(place) if self._ssd is not None and place in self._ssd else 0

    def read_from_ssd(self, place: Place) -> None:
        """Move a block to DRAM, if it is still on SSD only, blocking. UnreadableError."""
        block = self._ssd.get(place) if self._ssd is not None and place not in self._dram else None
        if block is not None:
            self._take_from_ssd(place, block, ahead=False)

    async def load(self, place: Place, ahead: bool) -> None:
        """Do as `read_from_ssd`, while others go on; `ahead`: before anyone asked for it."""
        if self._ssd is None or place in self._dram:
            return
        block = await self._ssd.load(place)
        if block is not None and place not in self._dram:
            self._take_from_ssd(place, block, ahead)

    def _take_from_ssd(self, place: Place, block: Block | Derived, ahead: bool) -> None:
        if ahead:
            self.stats.read_ahead += 1
            self._not_asked.add(place)
        else:
            self.stats.ssd_hits += 1
        self._insert(place, block)

    @property
    def has_disk(self) -> bool:
        """Return whether anything can be kept on stable storage."""
        return self._ssd is not None

    def has_room(self) -> bool:
        """Return whether more may be on its way to the disk than is by now."""
        if self._ssd is None:
            return True
        waiting_bytes = max(self._ssd.waiting_bytes, LEAST_BYTES * self._ssd.waiting_records)
        return waiting_bytes <= self._options.max_waiting_bytes

    @property
    def waiting_records(self) -> int:
        """Return the number of blocks and tombstones that wait for the disk."""
        return self._ssd.waiting_records if self._ssd is not None else 0

    def commit_wait_s(self) -> float:
        """Return how long a durable PUT waits for the disk now."""
        return self._ssd.wait_s() if self._ssd is not None else 0.0

    def sizes(self) -> dict[str, int]:
        """Return the number of blocks in each place."""
        return {
            "dram": len(self._dram),
            "ssd": len(self._ssd) if self._ssd is not None else 0,
            "partial": len(self._assembly),
        }

    def abandon(self) -> None:
        """Put nothing on SSD any more: for tests of crashes."""
        self._leaving.stop()
        if self._ssd is not None:
            self._ssd.abandon()

    def flush(self) -> None:
        """Put all of DRAM on SSD, blocking: for a clean stop. DiskError if that can't be."""
        self._leaving.stop()
        if self._ssd is not None:
            for place, block in self._dram.items():
                self._ssd.keep(place, block)
            self._ssd.flush()

    def _keep_held(self, place: Place, write: Write, durable: bool) -> PutOutcome:
        """Return the outcome of a PUT of a block that is here, which counts as a use of it."""
        if place in self._dram:
            self._dram.move_to_end(place)
        found = self.find(place)
        assert found is not None
        *_, content, _ = write
        if content != found[1]:
            self._superseded[write] = None
            if len(self._superseded) > MAX_SUPERSEDED:
                self._superseded.popitem(last=False)
        if not durable:
            return PutOutcome(Kept.HELD, found[1])
        if self._ssd is None:
            return PutOutcome(Kept.REFUSED, reason=wire.REFUSED_FULL)
        return PutOutcome(Kept.COMMITTING, found[1])

    def _why_not(self, message: wire.Message, write: Write) -> int:
        """Return the reason to refuse a fragment of a block that is not here; 0 for none."""
        if write in self._superseded and self.graveyard.stones.of(Place(message.tenant, message.key)):
            return wire.REFUSED_DELETED
        if message.flags & wire.FLAG_DURABLE and self._ssd is None:
            return wire.REFUSED_FULL
        if not self.has_room():
            return wire.REFUSED_BUSY
        most = self._options.tenant_bytes
        if most and self._tenant_bytes[message.tenant] + message.fragments * wire.VALUE_BYTES > most:
            return wire.REFUSED_QUOTA
        return 0

    def _insert(self, place: Place, block: Block | Derived) -> None:
        self._dram[place] = block
        self._dram_used += _taken(block)
        self._make_room(place)

    def _make_room(self, newest: Place) -> None:
        """Let the least recently used blocks leave DRAM. Many leave in pieces, between which others have
        their turn and DRAM is too full."""
        left, to_spare = 0, len(self._retained)
        while self._dram_used > self._dram_bytes and len(self._dram) > 1:
            first = next(iter(self._dram))
            if first == newest:
                self._dram.move_to_end(first)
            elif to_spare and first in self._retained:  # it leaves behind all that are not
                to_spare -= 1
                self._dram.move_to_end(first)
            elif left < LEAVE_AT_ONCE:
                left += 1
                self._demote(first, self._dram.pop(first))
            else:
                self._leaving.begin(partial(self._make_room, newest))
                break

    def _demote(self, place: Place, block: Block | Derived) -> None:
        self._dram_used -= _taken(block)
        if place in self._not_asked:
            self._not_asked.remove(place)
            self.stats.read_ahead_unused += 1
        if self._ssd is not None and place not in self._ssd:
            self.stats.demoted += 1
            self._ssd.keep(place, block)
        if self._ssd is None or place not in self._ssd:
            self.release(place)
            self.stats.lost_from_dram += 1
            self._tenant_bytes[place.tenant] -= _taken(block)

    def _leave_dram(self, place: Place) -> Block | Derived | None:
        """Remove a block from DRAM if it was there, and retain it no longer."""
        self.release(place)
        block = self._dram.pop(place, None)
        if block is not None:
            self._dram_used -= _taken(block)
            self._not_asked.discard(place)
        return block

    def _on_restored_on_ssd(self, place: Place, length: int, restored: int) -> None:
        self._leave_dram(place)
        self._tenant_bytes[place.tenant] += taken_bytes(restored) - taken_bytes(length)
        found = self.find(place)
        if found is not None and self.graveyard.stones.forbids(place, found[1], self._first_tag(place)):
            self.drop(place)  # it was deleted while the other one was here

    def _on_gone_from_ssd(self, place: Place, length: int) -> None:
        if place not in self._dram:
            self.release(place)
            self._tenant_bytes[place.tenant] -= taken_bytes(length)


def _first_that_fits(lengths: Sequence[int], room: int) -> int:
    """Return from which block on all fit into so many bytes together."""
    first = len(lengths)
    while first and lengths[first - 1] <= room:
        first -= 1
        room -= lengths[first]
    return first


def _taken(block: Block | Derived) -> int:
    return taken_bytes(_length(block))


def _length(block: Block | Derived) -> int:
    return block.length if isinstance(block, Derived) else len(block.content)
