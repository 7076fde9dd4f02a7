"""Lists of what storage nodes hold, as they ask each other for them: LIST asks, KEYS answers a page.

A LIST names the place to go on from: the tenant and the key in its header. `home_1` is the number of the
storage node that asks, which gets only blocks whose home it is. The value of a KEYS message, integers
big-endian, is

    the place to go on from (tenant u16, key), then for each block: tenant u16, key, content id u64, fragments
    u16

with the place after all others (all bits 1) where there is nothing behind it. A page may be empty before
that. Bit n of the message's content id is 1 if block n is fresh: it came by a PUT while the sender did not
know yet what other homes hold.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from hostlib.protocol import wire
from hostlib.protocol.block import Place
from hostlib.protocol.errors import MalformedError

_PLACE = struct.Struct(">H16s")
_ENTRY = struct.Struct(">H16sQH")
PAGE_ENTRIES: Final = (wire.LIST_BYTES - _PLACE.size) // _ENTRY.size
EXAMINED_A_PAGE: Final = 256
"""Blocks looked at for one page: what a LIST costs is bounded."""
FIRST: Final = Place(0, bytes(wire.KEY_BYTES))
LAST: Final = Place(0xFFFF, b"\xff" * wire.KEY_BYTES)


class Entry(NamedTuple):
    """A block that a peer holds."""

    place: Place
    write: int
    fragments: int
    fresh: bool = False
    """Whether it came to the peer by a PUT while that did not know yet what other homes hold."""


def make_page(
    places: Sequence[Place], start: Place, wanted: Callable[[Place], tuple[int, int] | None]
) -> bytes:
    """Return the value of a KEYS message: of the sorted `places`, from `start` on, those for which `wanted`
    gives content id and fragments."""
    entries: list[bytes] = []
    at = bisect_left(places, start)
    end = min(len(places), at + EXAMINED_A_PAGE)
    while at < end and len(entries) < PAGE_ENTRIES:
        found = wanted(places[at])
        if found is not None:
            entries.append(_ENTRY.pack(*places[at], *found))
        at += 1
    following = places[at] if at < len(places) else LAST
    return _PLACE.pack(*following) + b"".join(entries)


def read_page(value: wire.Buffer, fresh: int = 0) -> tuple[Place, list[Entry]]:
    """Return where to go on, and the blocks of a page; `fresh` has a bit for each. Raises MalformedError for
    anything else."""
    try:
        following = Place(*_PLACE.unpack_from(value))
        listed = enumerate(_ENTRY.iter_unpack(memoryview(value)[_PLACE.size :]))
        entries = [
            Entry(Place(tenant, key), write, fragments, bool(fresh >> at & 1))
            for at, (tenant, key, write, fragments) in listed
        ]
    except struct.error:
        raise MalformedError("keys") from None
    if not all(entry.write and entry.fragments for entry in entries):
        raise MalformedError("keys")
    return following, entries
