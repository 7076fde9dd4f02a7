"""The tombstones of a storage node on its disk, beside its blocks.

A tombstone is safe when it is synced, and with it that the block is gone. The disk also says when the node
was last there, so that one that returns knows since when it may have missed deletions. If it falls again
before it knows what was deleted, that time stays.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final
from zlib import crc32

from hostlib.protocol.errors import DiskError
from hostlib.protocol.tombstones import ALIVE, Tombstone, Tombstones, decode_note, encode_note

if TYPE_CHECKING:
    from collections.abc import Callable

    from hostlib.storage.ssd import SsdTier

ALIVE_EVERY_S: Final = 600.0
"""Seconds between two records on the disk that the node is there."""
_ALIVE = struct.Struct(">d?")
"""Record of the time when the node was last there, and whether it may have missed deletions since; a CRC-32
follows."""


class Graveyard:
    """Tombstones, and when they are safe; without a disk they are as safe as the blocks are."""

    def __init__(self, stones: Tombstones, ssd: SsdTier | None) -> None:
        self.stones = stones
        self._ssd = ssd
        self.has_past = False
        """Whether the disk held blocks at the start, some of which may have been deleted since."""
        self.last_there_s = stones.wall_s()
        """When this node was there last before its start."""
        self._said_alive_s = 0.0
        self._is_in_doubt = False
        """Whether the disk says that the node may have missed deletions since it was last there."""
        if ssd is not None:
            self._recover(ssd)
            stones.on_forgotten = self._erase

    def bury(self, stone: Tombstone, age_s: float, source: str = "") -> None:
        """Remember a tombstone of that age, which a host sent, here and on the disk."""
        deleted_s = self.stones.wall_s() - max(0.0, age_s)
        is_new, name = self.stones.add(stone, deleted_s, source), stone.name()
        if self._ssd is not None and (is_new or self._ssd.refused_note(name)):
            self._ssd.note(name, encode_note(stone, deleted_s, source))

    def when_safe(self, stone: Tombstone, done: Callable[[DiskError | None], None]) -> None:
        """Call `done` when a tombstone is on stable storage, or with why it is not."""
        if self._ssd is None or not self._ssd.when_noted(stone.name(), done):
            was_refused = self._ssd is not None and self._ssd.refused_note(stone.name())
            done(DiskError("the disk did not take it") if was_refused else None)

    def is_there(self) -> None:
        """Tell the disk now and then that the node lives."""
        now_s = self.stones.wall_s()
        if not self._is_in_doubt and now_s - self._said_alive_s >= ALIVE_EVERY_S:
            self._said_alive_s = now_s
            self._note(now_s, False)

    def doubts(self, there_s: float) -> None:
        """Tell the disk that the node may have missed deletions since `there_s`, until `knows`."""
        if not self._is_in_doubt:
            self._is_in_doubt = True
            self._note(there_s, True)

    def knows(self) -> None:
        """Tell the disk that the node has heard of all that was deleted."""
        self._is_in_doubt, self._said_alive_s = False, 0.0
        self.is_there()

    def _note(self, there_s: float, is_in_doubt: bool) -> None:
        if self._ssd is not None:
            packed = _ALIVE.pack(there_s, is_in_doubt)
            self._ssd.note(ALIVE, packed + struct.pack(">I", crc32(packed)))

    def _erase(self, stone: Tombstone) -> None:
        if self._ssd is not None:
            self._ssd.erase(stone.name())

    def _recover(self, ssd: SsdTier) -> None:
        self.has_past = len(ssd) > 0
        known: list[tuple[float, Tombstone, str]] = []
        was_in_doubt = False
        for name, record in ssd.notes.items():
            if name == ALIVE:
                self._said_alive_s, was_in_doubt = _alive(record)
            elif (found := decode_note(name, record)) is not None:
                known.append(found)
            else:
                ssd.erase(name)
        ssd.notes.clear()
        for deleted_s, stone, source in sorted(known):
            self.stones.add(stone, deleted_s, source)
        self.stones.assume_bounded()
        self.last_there_s = self._said_alive_s
        if not was_in_doubt:  # else it may have learned what it knows from others
            self.last_there_s = max([self._said_alive_s, *(deleted_s for deleted_s, *_ in known)])


def _alive(record: bytes) -> tuple[float, bool]:
    """Return when the node was last there, by the disk, and whether it may have missed deletions since.

    The time is 0 if the record is damaged.
    """
    packed, checksum = record[: _ALIVE.size], record[_ALIVE.size :]
    if len(packed) != _ALIVE.size or checksum != struct.pack(">I", crc32(packed)):
        return 0.0, False
    return _ALIVE.unpack(packed)
