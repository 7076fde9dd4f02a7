"""Lifetimes of blocks, here and on the disk.

A lifetime is kept with the proof that deletes the write (`hostlib.protocol.tombstones`). So when it ends, the
node can delete the block everywhere, without a secret of its own, and also after a restart.
"""

from __future__ import annotations

import logging
import struct
from collections import Counter
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Final, NamedTuple

from hostlib.protocol.tombstones import (
    ENDS,
    Tombstone,
    checked_note,
    packed,
    said_in_note,
    stone_of,
    unpacked,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hostlib.protocol.errors import DiskError
    from hostlib.storage.ssd import SsdTier

log = logging.getLogger(__name__)

MAX_OF_TENANT: Final = 65_536
MAX_LIFETIMES: Final = 262_144
"""Most lifetimes of all tenants together. A tenant may begin no more when it has as many as there is room
left, so there is room for a tenant that has none."""
_RECORD: Final = struct.Struct(">dI")


class Lifetime(NamedTuple):
    """Lifetime of one write of a block."""

    end_s: float
    """Time at which it ends, on the wall clock."""
    stone: Tombstone
    fragments: int
    """Length of the block."""
    source: str = ""
    """Address of the host that asked for it; empty where it is not known."""


class Lifetimes:
    """Lifetimes that one node knows. `wall_s` returns the time, which goes on while the node is off."""

    def __init__(self, wall_s: Callable[[], float], ssd: SsdTier | None) -> None:
        self.wall_s = wall_s
        self._ssd = ssd
        self._ends: dict[Tombstone, Lifetime] = {}
        self._order: list[Lifetime] = []
        """All of `_ends`, and what was replaced since, as a heap."""
        self._of_tenant: Counter[int] = Counter()
        if ssd is not None:
            self._recover(ssd)

    def __len__(self) -> int:
        return len(self._ends)

    def __iter__(self) -> Iterator[Lifetime]:
        return iter(self._ends.values())

    def begin(self, lifetime: Lifetime, done: Callable[[DiskError | None], None]) -> bool:
        """Keep a lifetime, or the earlier one of two; False if there are too many already.

        `done` is called when it is on stable storage, or with why it is not.
        """
        stone = lifetime.stone
        known, name = self._ends.get(stone), stone.name(ENDS)
        if known is None and not self._has_room(stone.place.tenant):
            return False
        is_new = known is None or lifetime.end_s < known.end_s
        if is_new:
            self._keep(lifetime)
        if self._ssd is None:
            done(None)
            return True
        if is_new or self._ssd.refused_note(name):
            self._ssd.note(name, _record(self._ends[stone]))
        if not self._ssd.when_noted(name, done):
            done(None)
        return True

    def next_s(self) -> float | None:
        """Return when the next one ends; None if there is none."""
        while self._order and self._ends.get(self._order[0].stone) != self._order[0]:
            heappop(self._order)
        return self._order[0].end_s if self._order else None

    def take(self, at_most: int) -> list[Lifetime]:
        """Return lifetimes that are over. They stay on the disk until `forget`."""
        over: list[Lifetime] = []
        while len(over) < at_most and (end_s := self.next_s()) is not None and end_s <= self.wall_s():
            lifetime = heappop(self._order)
            over.append(lifetime)
            self.drop(lifetime.stone)
        return over

    def drop(self, stone: Tombstone) -> bool:
        """Take note that the write is deleted before its end; return whether it had a lifetime. That stays on
        the disk until `forget`."""
        if self._ends.pop(stone, None) is None:
            return False
        self._of_tenant[stone.place.tenant] -= 1
        return True

    def forget(self, stone: Tombstone, error: DiskError | None) -> None:
        """Forget a lifetime whose write is deleted, once its tombstone is safe, or can't be.

        In the latter case the next start ends it again, if the disk has its end.
        """
        name = stone.name(ENDS)
        if error is not None:
            log.error("The end of a block's lifetime could not be written: %s", error)
        if self._ssd is not None and (error is None or self._ssd.refused_note(name)):
            self._ssd.erase(name)

    def _has_room(self, tenant: int) -> bool:
        return self._of_tenant[tenant] < min(MAX_OF_TENANT, MAX_LIFETIMES - len(self._ends))

    def _keep(self, lifetime: Lifetime) -> None:
        self._of_tenant[lifetime.stone.place.tenant] += lifetime.stone not in self._ends
        self._ends[lifetime.stone] = lifetime
        heappush(self._order, lifetime)
        if len(self._order) > 2 * len(self._ends) + 16:
            self._order = list(self._ends.values())
            heapify(self._order)

    def _recover(self, ssd: SsdTier) -> None:
        for name in [name for name in ssd.notes if name.startswith(ENDS)]:
            lifetime = _read(name, ssd.notes.pop(name))
            if lifetime is None:
                ssd.erase(name)
            else:
                self._keep(lifetime)


def _record(lifetime: Lifetime) -> bytes:
    said = _RECORD.pack(lifetime.end_s, lifetime.fragments) + packed(lifetime.source)
    return checked_note(lifetime.stone.name(ENDS), said)


def _read(name: bytes, record: bytes) -> Lifetime | None:
    """Return the lifetime in a record; None for a damaged one."""
    said = said_in_note(name, record)
    try:
        stone = stone_of(name, ENDS)
        end_s, fragments = _RECORD.unpack_from(said)
    except struct.error:
        return None
    return Lifetime(end_s, stone, fragments, unpacked(said[_RECORD.size :]))
