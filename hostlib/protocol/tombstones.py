"""Tombstones: records of deleted writes, which must not come back.

A tombstone names one write of one block and has the proof that its writer's secret makes
(`hostlib.protocol.seal.Seal.proof`). It deletes a block only if the tag of that block's first fragment is the
hash of the proof. So storage nodes take tombstones from anybody, and hand them on, without a secret of their
own: a made-up tombstone matches nothing. A tombstone says nothing of later writes, which have other content
ids.

Tombstones are bounded: they expire, and each block and each tenant may have only so many. `complete_since_s`
says from when on all deletions of a block are known. A node that was away since before that can't learn what
it missed, and asks others for its blocks. It asks for one block if that was deleted too often, and for all of
a tenant that has too many. Where there are too many, the host with most tombstones loses its oldest: so what
a host makes up displaces no tombstone of another host. The address of that host goes with a tombstone to the
disk and to other storage nodes.

The value of a KEYS message with the flag TOMBSTONES, integers big-endian:

    the place to go on from (tenant u16, key), then for each tombstone: tenant u16, key, content id u64,
    proof, age in seconds u32, IPv4 address of the host that deleted it

An entry with the content id 0 is no tombstone. Its age is the time from which on the tombstones of its block
are complete, or, if its key is WHOLE_TENANT, those of its tenant. With the flag HINT, too, the entries are
lifetimes (`hostlib.storage.lifetimes`), which have seconds to go in the place of an age.
"""

from __future__ import annotations

import socket
import struct
import time
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile
from math import floor
from typing import Final, NamedTuple
from zlib import crc32

from hostlib.protocol import wire
from hostlib.protocol.block import Place
from hostlib.protocol.catalog import LAST
from hostlib.protocol.errors import MalformedError
from hostlib.protocol.seal import closed

TOMBSTONE_S: Final = 86_400.0
"""Seconds for which a deletion is remembered."""
MAX_OF_TENANT: Final = 16_384
MAX_OF_BLOCK: Final = 8
"""Tombstones of one key; no more than a page of KEYS has room for."""
MAX_STONES: Final = 262_144
"""Tombstones of all tenants together."""
MAX_SOURCES: Final = 1024
"""Hosts of a tenant that are told apart; a switch has fewer ports."""
MAX_FORGOTTEN: Final = 1024
"""Blocks of a tenant of which tombstones were forgotten. If there is one more, the first of them counts as
the whole tenant."""
MAX_FORGOTTEN_OF_ALL: Final = 65_536
"""Such blocks of all tenants together: with many tenants, each has its share of this number."""
TENANTS_AT_ONCE: Final = 1024
"""Tenants that are looked at without a pause: a storage node can make up deletions of 65,536."""
EXPIRE_EVERY_S: Final = 1.0
"""Time between two searches for tombstones that are too old."""
_NAMED: Final = struct.Struct(">H16sQ16s")
NOTE: Final = b"weir note "
"""Names of records on a storage node's disk that are no blocks begin with this."""
ALIVE: Final = NOTE + b"alive"
"""Name of the record that says when the node was last there."""
DELETED: Final = NOTE + b"deleted "
"""Names of the records of tombstones begin with this."""
ENDS: Final = NOTE + b"ends "
"""Names of the records of lifetimes begin with this."""
NOTE_NAME_LENGTHS: Final = (len(ALIVE), len(DELETED) + _NAMED.size, len(ENDS) + _NAMED.size)
"""Lengths in bytes of all names that begin with NOTE."""
_DELETED_S: Final = struct.Struct(">d")
_PLACE: Final = struct.Struct(">H16s")
_ENTRY: Final = struct.Struct(">H16sQ16sI4s")
PAGE_ENTRIES: Final = (wire.LIST_BYTES - _PLACE.size) // _ENTRY.size
WHOLE_TENANT: Final = bytes(wire.KEY_BYTES)
"""Value in the place of a key that stands for all blocks of a tenant."""
_NO_PROOF: Final = bytes(wire.TAG_BYTES)
LIST_FLAGS: Final = wire.FLAG_TOMBSTONES | wire.FLAG_HINT
"""Flags of a LIST or KEYS that say what the list is of, if not of blocks."""


class Tombstone(NamedTuple):
    """One deleted write."""

    place: Place
    write: int
    proof: bytes

    def name(self, mark: bytes = DELETED) -> bytes:
        """Return the name of a record about this write on disk: DELETED or ENDS."""
        return mark + _NAMED.pack(*self.place, self.write, self.proof)

    def deletes(self, write: int, first_tag: bytes) -> bool:
        """Return whether it is of this write, and its writer's."""
        return write == self.write and closed(self.proof) == first_tag


class Tombstones:
    """Tombstones that one node knows. `wall_s` returns the time, which goes on while the node is off."""

    def __init__(self, wall_s: Callable[[], float] = time.time) -> None:
        self.wall_s = wall_s
        self._deleted_s: dict[Place, dict[Tombstone, float]] = {}
        self._of_tenant: dict[int, dict[Tombstone, None]] = {}
        """Oldest first."""
        self._source: dict[Tombstone, str] = {}
        self._of_source: dict[int, dict[str, dict[Tombstone, None]]] = {}
        """Those of a tenant that came from one host, oldest first."""
        self._complete_since_s: dict[int, dict[bytes, float]] = {}
        """By tenant and key: of WHOLE_TENANT, and of blocks that were deleted too often."""
        self._expired_s = float("-inf")
        """When `add` looked for what is too old last."""
        self._to_expire: list[int] = []
        """Tenants to look at the next times."""
        self._with: defaultdict[int, set[int]] = defaultdict(set)
        """Tenants by how many tombstones they have."""
        self._most = 0
        """The largest number that one has."""
        self.on_forgotten: Callable[[Tombstone], None] = lambda stone: None
        """Told of each that is not kept any longer."""

    def __len__(self) -> int:
        return len(self._source)

    def __contains__(self, stone: object) -> bool:
        return isinstance(stone, Tombstone) and stone in self._deleted_s.get(stone.place, ())

    def of(self, place: Place) -> Sequence[Tombstone]:
        """Return all tombstones of one block."""
        return tuple(self._deleted_s.get(place, ()))

    def newest_s(self) -> dict[Place, float]:
        """Return when each block was deleted last, of those whose deletions are here."""
        return {place: max(of_block.values()) for place, of_block in self._deleted_s.items()}

    def source_of(self, stone: Tombstone) -> str:
        """Return the address of the host that sent one of these; empty where it is not known."""
        return self._source.get(stone, "")

    def forbids(self, place: Place, write: int, first_tag: bytes) -> bool:
        """Return whether this write of a block was deleted."""
        return any(stone.deletes(write, first_tag) for stone in self._deleted_s.get(place, ()))

    def add(self, stone: Tombstone, deleted_s: float, source: str = "") -> bool:
        """Remember a tombstone that the host with the address `source` sent.

        Returns False if it is known, or was deleted so long ago that it is forgotten.
        """
        if abs(self.wall_s() - self._expired_s) >= EXPIRE_EVERY_S:
            self._expired_s = self.wall_s()
            self.expire()
        if stone in self or deleted_s <= self.wall_s() - TOMBSTONE_S:
            return False
        self._deleted_s.setdefault(stone.place, {})[stone] = deleted_s
        of_tenant = self._of_tenant.setdefault(stone.place.tenant, {})
        of_tenant[stone] = None
        self._counted(stone.place.tenant, len(of_tenant) - 1, len(of_tenant))
        sources = self._of_source.setdefault(stone.place.tenant, {})
        if len(sources) >= MAX_SOURCES and source not in sources:
            source = ""  # a storage node that passes them on made the others up
        self._source[stone] = source
        sources.setdefault(source, {})[stone] = None
        self._bound(stone)
        return stone in self

    def complete_since_s(self, place: Place) -> float:
        """Return the time since when all deletions of a block are known here."""
        known = self._complete_since_s.get(place.tenant, {})
        expired_s = self.wall_s() - TOMBSTONE_S
        return max(expired_s, *(known.get(key, expired_s) for key in (WHOLE_TENANT, place.key)))

    def incomplete(self, place: Place, since_s: float) -> None:
        """Note that some deletions of a block, or of a tenant, from before this time are not known here."""
        known = self._complete_since_s.setdefault(place.tenant, {})
        known[place.key] = max(since_s, known.get(place.key, since_s))
        most = 1 + min(MAX_FORGOTTEN, MAX_FORGOTTEN_OF_ALL // len(self._complete_since_s))
        while len(known) > most:  # by many where there are more tenants than before
            first = next(key for key in known if key != WHOLE_TENANT)
            since_s = known.pop(first)
            known[WHOLE_TENANT] = max(since_s, known.get(WHOLE_TENANT, since_s))

    def assume_bounded(self) -> None:
        """Say of tenants and blocks that have as many as they may that older ones may have been forgotten.

        A disk does not tell since when its tombstones are complete."""
        for tenant, stones in self._of_tenant.items():
            if len(stones) >= MAX_OF_TENANT:
                oldest = next(iter(stones))
                self.incomplete(Place(tenant, WHOLE_TENANT), self._deleted_s[oldest.place][oldest])
        for place, of_block in self._deleted_s.items():
            if len(of_block) >= MAX_OF_BLOCK:
                self.incomplete(place, min(of_block.values()))

    def expire(self) -> None:
        """Forget what is too old, of TENANTS_AT_ONCE tenants each time."""
        until_s = self.wall_s() - TOMBSTONE_S
        tenants = self._to_expire or list(self._of_tenant | self._complete_since_s)
        self._to_expire = tenants[TENANTS_AT_ONCE:]
        for tenant in tenants[:TENANTS_AT_ONCE]:
            stones = self._of_tenant.get(tenant, {})
            aged = ((stone, self._deleted_s[stone.place][stone]) for stone in stones)
            for stone, deleted_s in list(takewhile(lambda one: one[1] <= until_s, aged)):
                self.incomplete(Place(tenant, WHOLE_TENANT), deleted_s)  # should the clock be set back
                self._forget(stone)
            known = self._complete_since_s.get(tenant, {})
            for key in [key for key, since_s in known.items() if since_s <= until_s and key != WHOLE_TENANT]:
                self.incomplete(Place(tenant, WHOLE_TENANT), known.pop(key))

    def records(self) -> Iterator[tuple[Place, bytes]]:
        """Yield all there are now as entries of pages, and since when those of a tenant or a block are
        complete; these may change meanwhile."""
        now_s = self.wall_s()
        complete_s = [
            (Place(tenant, key), since_s)
            for tenant, known in self._complete_since_s.items()
            for key, since_s in known.items()
        ]
        stones = [pair for of_block in self._deleted_s.values() for pair in of_block.items()]
        for place, since_s in complete_s:
            yield listed(Tombstone(place, 0, _NO_PROOF), floor(now_s - since_s))
        for stone, deleted_s in stones:
            yield listed(stone, now_s - deleted_s, self.source_of(stone))

    def _bound(self, newest: Tombstone) -> None:
        """Forget the oldest of whoever has most where there are too many, and say that they are not complete
        any more."""
        tenant, of_block = newest.place.tenant, self._deleted_s[newest.place]
        if len(of_block) > MAX_OF_BLOCK:
            counts = Counter(self._source[stone] for stone in of_block)
            most = max(counts.values())
            of_most = [stone for stone in of_block if counts[self._source[stone]] == most]
            stone = min(of_most, key=of_block.__getitem__)
            self.incomplete(newest.place, of_block[stone])
            self._forget(stone)
        if len(self._of_tenant[tenant]) > MAX_OF_TENANT:
            self._forget_oldest_of_most(tenant, newest)
        elif len(self) > MAX_STONES:
            most_of = self._with[self._most].pop()
            self._with[self._most].add(most_of)
            self._forget_oldest_of_most(most_of, newest)

    def _forget_oldest_of_most(self, tenant: int, newest: Tombstone) -> None:
        """Forget the oldest tombstone from the host that sent most of a tenant's. Peers tell of deletions in
        any order, so that the one that came last may be of the oldest."""
        most = max(self._of_source[tenant].values(), key=len)
        stone = next(iter(most))
        if newest in most and self._deleted_s[newest.place][newest] < self._deleted_s[stone.place][stone]:
            stone = newest
        self.incomplete(Place(tenant, WHOLE_TENANT), self._deleted_s[stone.place][stone])
        self._forget(stone)

    def _counted(self, tenant: int, before: int, now: int) -> None:
        """Take note of how many tombstones a tenant has now."""
        self._with[before].discard(tenant)
        if not self._with[before]:
            del self._with[before]
        if now:
            self._with[now].add(tenant)
        if now > self._most or self._most not in self._with:
            self._most = now

    def _forget(self, stone: Tombstone) -> None:
        stones = self._deleted_s[stone.place]
        del stones[stone]
        if not stones:
            del self._deleted_s[stone.place]
        of_tenant = self._of_tenant[stone.place.tenant]
        del of_tenant[stone]
        self._counted(stone.place.tenant, len(of_tenant) + 1, len(of_tenant))
        if not of_tenant:
            del self._of_tenant[stone.place.tenant]
        sources, source = self._of_source[stone.place.tenant], self._source.pop(stone)
        del sources[source][stone]
        if not sources[source]:
            del sources[source]
        if not sources:
            del self._of_source[stone.place.tenant]
        self.on_forgotten(stone)


class AgedStone(NamedTuple):
    """A tombstone as another node knows it; a write of 0: since when that node knows all of its block, or of
    its tenant. Of a lifetime, `age_s` is what is left of it."""

    stone: Tombstone
    age_s: int
    source: str = ""
    """Address of the host that deleted it, or asked for that; empty where it is not known."""


def make_stones_page(entries: Sequence[tuple[Place, bytes]], start: Place) -> bytes:
    """Return the value of a KEYS message: of the sorted `entries`, as many as fit from `start` on."""
    at = bisect_left(entries, start, key=lambda entry: entry[0])
    end = min(len(entries), at + PAGE_ENTRIES)
    # The next page begins with the whole block at which this one ends: a block has fewer than a page holds.
    following = entries[end][0] if end < len(entries) else LAST
    return _PLACE.pack(*following) + b"".join(entry for _, entry in entries[at:end])


def read_stones_page(value: wire.Buffer) -> tuple[Place, list[AgedStone]]:
    """Return where to go on, and the tombstones of a page; raises MalformedError for anything else."""
    try:
        following = Place(*_PLACE.unpack_from(value))
        entries = _ENTRY.iter_unpack(memoryview(value)[_PLACE.size :])
        stones = [
            AgedStone(Tombstone(Place(tenant, key), write, proof), age_s, unpacked(source))
            for tenant, key, write, proof, age_s, source in entries
        ]
    except struct.error:
        raise MalformedError("tombstones") from None
    return following, stones


def encode_note(stone: Tombstone, deleted_s: float, source: str) -> bytes:
    """Return the record on disk of a tombstone that the host with the address `source` sent."""
    return checked_note(stone.name(), _DELETED_S.pack(deleted_s) + packed(source))


def decode_note(name: bytes, record: bytes) -> tuple[float, Tombstone, str] | None:
    """Return when a tombstone was made, itself and who sent it; None for what is none, or damaged."""
    said = said_in_note(name, record)
    try:
        stone = stone_of(name, DELETED)
        (deleted_s,) = _DELETED_S.unpack_from(said)
    except struct.error:
        return None
    return float(deleted_s), stone, unpacked(said[_DELETED_S.size :])


def checked_note(name: bytes, said: bytes) -> bytes:
    """Return a record on disk that is no block's: `said`, and a checksum of that and the name."""
    return said + struct.pack(">I", crc32(said, crc32(name)))


def said_in_note(name: bytes, record: bytes) -> bytes:
    """Return what such a record says; nothing where its checksum is wrong."""
    said = record[:-4]
    return said if checked_note(name, said) == record else b""


def packed(source: str) -> bytes:
    """Return the four bytes of an IPv4 address; zeros for none."""
    return socket.inet_aton(source or "0.0.0.0")


def unpacked(source: bytes) -> str:
    """Return the IPv4 address of four bytes; empty for zeros, and for none, as in records of before."""
    return socket.inet_ntoa(source) if len(source) == 4 and any(source) else ""


def stone_of(name: bytes, mark: bytes) -> Tombstone:
    """Return the tombstone in a record's name, which begins with DELETED or ENDS; raises struct.error for
    another name."""
    tenant, key, write, proof = _NAMED.unpack(name.removeprefix(mark))
    return Tombstone(Place(tenant, key), write, proof)


def listed(stone: Tombstone, age_s: float, source: str = "") -> tuple[Place, bytes]:
    """Return a tombstone as an entry of pages, with its place."""
    age = max(0, min(0xFFFFFFFF, round(age_s)))
    return stone.place, _ENTRY.pack(*stone.place, stone.write, stone.proof, age, packed(source))


def delete_message(
    stone: Tombstone, fragments: int, sequence: int = 0, epoch: int = 0, source: str = ""
) -> bytes:
    """Return a DELETE: whoever holds this write, whose block has so many fragments, is to forget it.

    `source` is the address of the host that deleted it, where a storage node passes that on.
    """
    return wire.encode(
        wire.Message(
            wire.OP_DELETE, stone.place.key, 0, fragments, sequence=sequence,
            parent=int.from_bytes(packed(source), "big"), tenant=stone.place.tenant, content=stone.write,
            epoch=epoch, tag=stone.proof,
        )
    )  # fmt: skip
