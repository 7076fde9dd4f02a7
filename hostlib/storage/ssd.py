"""The SSD tier of a storage node: bounded, the oldest blocks leave first, survives restarts and power cuts.

What is on the disk is known from an index in memory, read from the records' headers at the start. A record
that is damaged is deleted when that is noticed, at the start or when it is read.
"""

from __future__ import annotations

import asyncio
import logging
import struct
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from hostlib import native
from hostlib.protocol.block import (
    Block,
    Derived,
    Header,
    Place,
    decode_record,
    encode_record,
    read_header,
    taken_bytes,
)
from hostlib.protocol.errors import DiskError, TierFullError, UnreadableError
from hostlib.protocol.tombstones import NOTE
from hostlib.storage.commit import CommitOptions, Done, GroupCommit, Runner
from hostlib.storage.later_turn import LaterTurn

if TYPE_CHECKING:
    from hostlib.storage.disk import Disk

log = logging.getLogger(__name__)

PRELOAD_BATCH = 10_000
LEAVE_AT_ONCE: Final = 1024
"""Number of blocks that leave a tier without a pause. A block of 32 MB takes the place of 65,536 short
ones."""


class _Written(NamedTuple):
    write: int
    first_tag: bytes
    """The tag of fragment 0."""


@dataclass(slots=True)
class _Entry:
    length: int
    written: _Written | None
    """None for derived content."""
    is_safe: bool = True
    """Whether the disk has it for certain."""
    replaced: _Entry | None = None
    """The block that the disk holds until this one is safe; None if it holds none."""


class SsdTier:
    """Tier of at most `capacity_bytes` of blocks on `disk`. Use from one event loop."""

    def __init__(
        self,
        disk: Disk,
        capacity_bytes: int,
        options: CommitOptions | None = None,
        run: Runner | None = None,
    ) -> None:
        """Make the tier. `run` carries out what writes and syncs, where `load` reads at once; without it,
        each has a thread."""
        self.dropped = 0
        """Blocks that left to make room."""
        self.damaged = 0
        """Records found damaged."""
        self.on_gone: Callable[[Place, int], None] = lambda place, length: None
        """Told of each block that is not here any more, and its length."""
        self.on_restored: Callable[[Place, int, int], None] = lambda place, length, restored: None
        """Told of each block of that length that could not be written in place of another write, which is
        here still, and of that one's length."""
        self.stays: Callable[[Place], bool] = lambda place: False
        """Whether other blocks should leave before this one."""
        self._disk = disk
        self._core = native.core()
        self.capacity_bytes = capacity_bytes
        self._commit = GroupCommit(disk, options, run)
        self._reads = ThreadPoolExecutor(1, "read") if run is None else None
        self._bytes = 0
        self._age = 0
        self._entries: dict[Place, _Entry] = {}
        """Oldest first."""
        self._oldest: deque[tuple[Place, _Entry]] = deque()
        """The first of `_entries`, and some that left since. The more have left a dict, the longer it takes
        to find its first."""
        self._leaving = LaterTurn()
        """Goes on making room."""
        self.notes: dict[bytes, bytes] = {}
        """What the disk had at the start that is no block, by name."""
        self._unsafe_notes: set[bytes] = set()
        """Names of notes that are not known to be on the disk."""
        self._recover()

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, place: object) -> bool:
        return place in self._entries

    def __iter__(self) -> Iterator[Place]:
        return iter(self._entries)

    @property
    def lengths(self) -> Iterable[tuple[Place, int]]:
        """Return the lengths of all blocks in bytes, oldest first."""
        return ((place, entry.length) for place, entry in self._entries.items())

    @property
    def commits(self) -> int:
        """Groups that were written."""
        return self._commit.commits

    @property
    def waiting_bytes(self) -> int:
        """Return the bytes of records that are not on stable storage yet."""
        return self._commit.waiting_bytes

    @property
    def waiting_records(self) -> int:
        """Return the number of records that are to be written or deleted."""
        return self._commit.waiting_records

    def wait_s(self) -> float:
        """Return how long what is kept now waits until it is on stable storage."""
        return self._commit.wait_s()

    def is_waiting(self, place: Place) -> bool:
        """Return whether a block is neither on stable storage nor refused yet."""
        return self._commit.is_waiting(place.name())

    def length(self, place: Place) -> int:
        """Return the bytes of a block that is here."""
        return self._entries[place].length

    def write_of(self, place: Place) -> int | None:
        """Return the content id of a block that is here; None for a derived one."""
        written = self._entries[place].written
        return None if written is None else written.write

    def get(self, place: Place) -> Block | Derived | None:
        """Return the block, or None. Raises UnreadableError if it was here and can't be had any more."""
        if place not in self._entries:
            return None
        try:
            return self._commit.block(place.name()) or self._read(place)
        except UnreadableError:
            self._is_damaged(place)
            raise

    def first_tag(self, place: Place) -> bytes | None:
        """Return the tag of fragment 0 of a block that is here, without the disk; None for derived
        content."""
        written = self._entries[place].written
        return None if written is None else written.first_tag

    async def load(self, place: Place) -> Block | Derived | None:
        """Return a block as `get` does, read by another thread; None if it left or was replaced meanwhile."""
        entry = self._entries.get(place)
        if entry is None or self._reads is None:
            return self.get(place)
        waiting = self._commit.block(place.name())
        if waiting is not None:
            return waiting
        try:
            block = await asyncio.get_running_loop().run_in_executor(self._reads, self._read, place)
        except UnreadableError:
            if self._entries.get(place) is not entry:
                return None
            self._is_damaged(place)
            raise
        return block if self._entries.get(place) is entry else None

    def keep(self, place: Place, block: Block | Derived, done: Done | None = None) -> None:
        """Put a block on the disk; `done` is told when it is safe there, or that it can't be.

        It can be read at once. A block that is here already stays as it is.
        """
        if place not in self._entries and not self._admit(place, block, done):
            return
        if done is not None and not self._commit.when_safe(place.name(), done):
            done(None)

    def replace(self, place: Place, block: Block) -> bool:
        """Put another write of a block that is here in its place; whether there is room for it. The disk has
        the one or the other at any time: what is here stays if the other can't be written."""
        old = self._entries.pop(place)
        self._bytes -= taken_bytes(old.length)
        if not self._make_room(taken_bytes(len(block.content))):
            self._insert(place, old)
            return False
        self._write(place, block, replaced=old if old.is_safe else old.replaced)
        return True

    def preload(self, blocks: Iterable[tuple[Place, Derived]]) -> None:
        """Hold these from the start, oldest first, and sync all that is on the disk; blocking."""
        batch: list[tuple[bytes, bytes | None]] = []
        for place, block in blocks:
            if place in self._entries or not self._make_room(taken_bytes(block.length)):
                continue
            self._age += 1
            self._insert(place, _Entry(block.length, None))
            batch.append((place.name(), encode_record(place, self._age, block)))
            if len(batch) >= PRELOAD_BATCH:
                self._disk.write(batch)
                batch = []
        self._disk.write(batch)
        self._disk.sync()  # also what a process that was killed had written and not synced

    def drop(self, place: Place) -> None:
        """Forget a block."""
        entry = self._entries.pop(place)
        self._bytes -= taken_bytes(entry.length)
        self._commit.delete(place.name())
        self.on_gone(place, entry.length)

    def note(self, name: bytes, record: bytes) -> None:
        """Keep a small record that is no block's, by a name that begins with NOTE. When it is safe, so is all
        that was dropped before."""

        def noted(error: DiskError | None) -> None:
            if error is None and not self._commit.is_waiting(name):
                self._unsafe_notes.discard(name)

        self._unsafe_notes.add(name)
        self._commit.note(name, record)
        self._commit.when_safe(name, noted)

    def when_noted(self, name: bytes, done: Done) -> bool:
        """Call `done` when a note that waits is safe; False if none waits."""
        return self._commit.when_safe(name, done)

    def refused_note(self, name: bytes) -> bool:
        """Return whether the disk did not take what was noted last, so that it has to be noted again."""
        return name in self._unsafe_notes and not self._commit.is_waiting(name)

    def erase(self, name: bytes) -> None:
        """Forget a note."""
        self._unsafe_notes.discard(name)
        self._commit.delete(name)

    def flush(self) -> None:
        """Make room, and write what waits, blocking; DiskError if that can't be."""
        self._leaving.finish()
        self._commit.flush()

    def abandon(self) -> None:
        """Write nothing any more, and tell nobody: for tests of crashes."""
        self._leaving.stop()
        self._commit.abandon()

    def close(self) -> None:
        """Release the disk; what waits is not written."""
        self.abandon()
        if self._reads is not None:
            self._reads.shutdown(wait=True, cancel_futures=True)
        self._disk.close()

    def _admit(self, place: Place, block: Block | Derived, done: Done | None) -> bool:
        length = block.length if isinstance(block, Derived) else len(block.content)
        if not self._make_room(taken_bytes(length)):
            if done is not None:
                done(TierFullError(f"{length} bytes do not fit a tier of {self.capacity_bytes}"))
            return False
        self._write(place, block)
        return True

    def _write(self, place: Place, block: Block | Derived, replaced: _Entry | None = None) -> None:
        """Enter a block for which there is room, and have the next group write it to the disk."""
        if isinstance(block, Derived):
            entry = _Entry(block.length, None, is_safe=False, replaced=replaced)
        else:
            written = _Written(block.write, block.tag(0))
            entry = _Entry(len(block.content), written, is_safe=False, replaced=replaced)
        self._age += 1
        self._insert(place, entry)
        name = place.name()
        self._commit.put(place, self._age, block)

        def committed(error: DiskError | None) -> None:
            if error is None:
                entry.is_safe, entry.replaced = True, None
            elif self._entries.get(place) is entry:
                self._is_not_written(place)

        self._commit.when_safe(name, committed)

    def _is_not_written(self, place: Place) -> None:
        """Note that a block is not here any more, unless the disk has what it was to replace."""
        entry = self._entries.pop(place)
        self._bytes -= taken_bytes(entry.length)
        if entry.replaced is None:
            if self._commit.was_written:  # else it is back after a restart, though it was deleted meanwhile
                self._commit.delete(place.name())
            self.on_gone(place, entry.length)
        else:
            self._insert(place, entry.replaced)
            self.on_restored(place, entry.length, entry.replaced.length)

    def _read(self, place: Place) -> Block | Derived:
        copy = self._core.copy
        block = self._disk.read(place.name(), lambda record: decode_record(place, record, copy))
        if block is None:
            raise UnreadableError(f"the record of {place.key.hex()} is not on the disk")
        entry = self._entries.get(place)
        written = entry.written if entry is not None else None
        if written is not None and isinstance(block, Block) and block.write != written.write:
            raise UnreadableError(f"the record of {place.key.hex()} is of another write, or not synced")
        return block

    def _is_damaged(self, place: Place) -> None:
        self.damaged += 1
        self.drop(place)

    def _make_room(self, length: int) -> bool:
        """Let the oldest blocks leave, those that stay behind all others; False if a block of this length can
        not be here. Many leave in pieces, between which others have their turn and the tier is too full."""
        if length > self.capacity_bytes:
            return False
        left = spared = 0
        while self._bytes + length > self.capacity_bytes:
            if left == LEAVE_AT_ONCE:
                self._leaving.begin(partial(self._make_room, 0))
                break
            place = self._next_to_leave()
            if spared < len(self._entries) and self.stays(place):
                spared += 1
                self._entries[place] = self._entries.pop(place)
                continue
            left += 1
            self.dropped += 1
            self.drop(place)
        return True

    def _next_to_leave(self) -> Place:
        """Return the oldest block."""
        while True:
            if not self._oldest:
                self._oldest.extend(islice(self._entries.items(), LEAVE_AT_ONCE))
            place, entry = self._oldest.popleft()
            if self._entries.get(place) is entry:
                return place

    def _insert(self, place: Place, entry: _Entry) -> None:
        self._entries[place] = entry
        self._bytes += taken_bytes(entry.length)

    def _recover(self) -> None:
        """Learn what is on the disk; records that are damaged or not of this format are deleted."""
        found: list[tuple[Place, Header]] = []
        bad: list[tuple[bytes, bytes | None]] = []
        try:
            for name, record in self._disk.scan():
                if name.startswith(NOTE):
                    self.notes[name] = bytes(record)
                    continue
                try:
                    place = Place.of_name(name)
                    header = read_header(place, record)
                except (UnreadableError, struct.error):
                    bad.append((name, None))
                    continue
                found.append((place, header))
        except UnreadableError:  # what is behind the unreadable page is lost here, and copied from the others
            self.damaged += 1
        for place, header in sorted(found, key=lambda one: one[1].age):
            tag = header.first_tag
            self._insert(place, _Entry(header.length, None if tag is None else _Written(header.write, tag)))
            self._age = max(self._age, header.age)
        self.damaged += len(bad)
        if bad:
            try:
                self._disk.write(bad)
            except DiskError as error:  # they stay, and are not taken at the next start either
                log.warning("damaged records could not be deleted: %s", error)
