"""What was deleted, and must not come back.

A tombstone names one write of one block and has the proof that its writer's secret makes
(`hostlib.protocol.seal.Seal.proof`). It deletes a block only if the tag of that block's first fragment is the
hash of the proof. So storage nodes take tombstones from anybody, and hand them on, without a secret of their
own: one that somebody made up matches nothing. It says nothing of later writes, which have other content ids.

Tombstones are bounded: they expire, and a tenant has so many of them. `complete_since_s` says from when on
all of a tenant's deletions are known. A node that was away since before that can't learn what it missed, and
asks others for each of its blocks of that tenant. Where there are too many, whoever has most of them loses
the oldest of his: so what a host makes up displaces no tombstone of another. The address of that host goes
with a tombstone to the disk and to other storage nodes.

The value of a KEYS message with the flag TOMBSTONES, integers big-endian:

    the place to go on from (tenant u16, key), then for each tombstone: tenant u16, key, content id u64,
    proof, age in seconds u32, IPv4 address of the host that deleted it

An entry with the content id 0 is no tombstone: its age is that of the time from which on those of its tenant
are complete. With the flag HINT, too, the entries are lifetimes (`hostlib.storage.lifetimes`), which have
seconds to go in the place of an age.
"""

from __future__ import annotations

import socket
import struct
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple
from zlib import crc32

from hostlib.protocol import wire
from hostlib.protocol.block import Place
from hostlib.protocol.catalog import LAST
from hostlib.protocol.errors import MalformedError
from hostlib.protocol.seal import closed

TOMBSTONE_S: Final = 86_400.0
"""How long a deletion is remembered."""
MAX_OF_TENANT: Final = 16_384
MAX_OF_BLOCK: Final = 8
"""Tombstones of one key; no more than a page of KEYS has room for."""
MAX_STONES: Final = 262_144
"""Tombstones of all tenants together."""
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
_NO_KEY: Final = bytes(wire.KEY_BYTES)
_NO_PROOF: Final = bytes(wire.TAG_BYTES)
LIST_FLAGS: Final = wire.FLAG_TOMBSTONES | wire.FLAG_HINT
"""Of a LIST or KEYS: what it is of, if not of blocks."""


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
    """Those that one node knows. `wall_s` is the time, which goes on while the node is off."""

    def __init__(self, wall_s: Callable[[], float] = time.time) -> None:
        self.wall_s = wall_s
        self._deleted_s: dict[Place, dict[Tombstone, float]] = {}
        self._of_tenant: dict[int, dict[Tombstone, None]] = {}
        """Oldest first."""
        self._source: dict[Tombstone, str] = {}
        self._of_source: dict[tuple[int, str], dict[Tombstone, None]] = {}
        """Those of a tenant that came from one host, oldest first."""
        self._complete_since_s: dict[int, float] = {}
        self._expired_s = float("-inf")
        """When `add` looked for what is too old last."""
        self.on_forgotten: Callable[[Tombstone], None] = lambda stone: None
        """Told of each that is not kept any longer."""

    def __len__(self) -> int:
        return len(self._source)

    def __contains__(self, stone: object) -> bool:
        return isinstance(stone, Tombstone) and stone in self._deleted_s.get(stone.place, ())

    def of(self, place: Place) -> Sequence[Tombstone]:
        """Return all tombstones of one block."""
        return tuple(self._deleted_s.get(place, ()))

    def source_of(self, stone: Tombstone) -> str:
        """Return the address of the host that sent one of these; empty where it is not known."""
        return self._source.get(stone, "")

    def forbids(self, place: Place, write: int, first_tag: bytes) -> bool:
        """Return whether this write of a block was deleted."""
        return any(stone.deletes(write, first_tag) for stone in self._deleted_s.get(place, ()))

    def add(self, stone: Tombstone, deleted_s: float, source: str = "") -> bool:
        """Remember one that the host with the address `source` sent.

        False if it is known, or was deleted so long ago that it is forgotten.
        """
        if abs(self.wall_s() - self._expired_s) >= EXPIRE_EVERY_S:
            self._expired_s = self.wall_s()
            self.expire()
        if stone in self or deleted_s <= self.wall_s() - TOMBSTONE_S:
            return False
        self._deleted_s.setdefault(stone.place, {})[stone] = deleted_s
        self._of_tenant.setdefault(stone.place.tenant, {})[stone] = None
        self._source[stone] = source
        self._of_source.setdefault((stone.place.tenant, source), {})[stone] = None
        self._bound(stone)
        return stone in self

    def complete_since_s(self, tenant: int) -> float:
        """Since when all deletions of a tenant are here."""
        return max(self.wall_s() - TOMBSTONE_S, self._complete_since_s.get(tenant, 0.0))

    def incomplete(self, tenant: int, since_s: float) -> None:
        """Some of a tenant's from before this time are not here."""
        self._complete_since_s[tenant] = max(since_s, self._complete_since_s.get(tenant, 0.0))

    def assume_bounded(self) -> None:
        """Say of tenants that have as many as they may that older ones may have been forgotten.

        A disk does not tell since when its tombstones are complete."""
        for tenant, stones in self._of_tenant.items():
            if len(stones) >= MAX_OF_TENANT:
                oldest = next(iter(stones))
                self.incomplete(tenant, self._deleted_s[oldest.place][oldest])

    def expire(self) -> None:
        """Forget what is too old."""
        until_s = self.wall_s() - TOMBSTONE_S
        for tenant in list(self._of_tenant):
            while stones := self._of_tenant.get(tenant):
                stone = next(iter(stones))
                if (deleted_s := self._deleted_s[stone.place][stone]) > until_s:
                    break
                self.incomplete(tenant, deleted_s)  # should the clock be set back
                self._forget(stone)

    def records(self) -> Iterator[tuple[Place, bytes]]:
        """Yield all there are now as entries of pages, and of each tenant since when they are complete; these
        may change meanwhile."""
        now_s = self.wall_s()
        complete_s = list(self._complete_since_s.items())
        known = [pair for stones in self._deleted_s.values() for pair in stones.items()]
        for tenant, since_s in complete_s:
            yield listed(Tombstone(Place(tenant, _NO_KEY), 0, _NO_PROOF), now_s - since_s)
        for stone, deleted_s in known:
            yield listed(stone, now_s - deleted_s, self.source_of(stone))

    def _bound(self, newest: Tombstone) -> None:
        """Forget the oldest of whoever has most where there are too many, and say that they are not complete
        any more."""
        too_many: list[Tombstone] = []
        tenant, of_block = newest.place.tenant, self._deleted_s[newest.place]
        if len(of_block) > MAX_OF_BLOCK:
            counts = Counter(self._source[stone] for stone in of_block)
            most = max(counts.values())
            of_most = [stone for stone in of_block if counts[self._source[stone]] == most]
            too_many.append(min(of_most, key=of_block.__getitem__))
        if len(self._of_tenant[tenant]) > MAX_OF_TENANT:
            too_many.append(self._oldest_of_most(tenant))
        elif len(self) > MAX_STONES:
            most_of = max(self._of_tenant, key=lambda one: len(self._of_tenant[one]))
            too_many.append(self._oldest_of_most(most_of))
        for stone in dict.fromkeys(too_many):
            if stone not in self or newest not in self:
                continue
            same_host = stone.place.tenant == tenant and self._source[stone] == self._source[newest]
            gone = newest if same_host and self._is_older(newest, stone) else stone
            self.incomplete(gone.place.tenant, self._deleted_s[gone.place][gone])
            self._forget(gone)

    def _is_older(self, stone: Tombstone, other: Tombstone) -> bool:
        """Peers tell of deletions in any order."""
        return self._deleted_s[stone.place][stone] < self._deleted_s[other.place][other]

    def _oldest_of_most(self, tenant: int) -> Tombstone:
        """Return the oldest tombstone from the host that sent most of a tenant's."""
        most = max((stones for (own, _), stones in self._of_source.items() if own == tenant), key=len)
        return next(iter(most))

    def _forget(self, stone: Tombstone) -> None:
        stones = self._deleted_s[stone.place]
        del stones[stone]
        if not stones:
            del self._deleted_s[stone.place]
        of_tenant = self._of_tenant[stone.place.tenant]
        del of_tenant[stone]
        if not of_tenant:
            del self._of_tenant[stone.place.tenant]
        source = stone.place.tenant, self._source.pop(stone)
        del self._of_source[source][stone]
        if not self._of_source[source]:
            del self._of_source[source]
        self.on_forgotten(stone)


class AgedStone(NamedTuple):
    """A tombstone as another node knows it; a write of 0: since when that node knows all of its tenant. Of a
    lifetime, `age_s` is what is left of it."""

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
    stone: Tombstone, fragments: int, sequence: int, epoch: int = 0, source: str = ""
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
