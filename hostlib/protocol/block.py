"""A whole block as a storage node has it, and the record that stands for it on disk.

A record describes itself, so that a disk written by another program, for blocks of another length, or half,
is noticed:

    magic u32, version u8, kind u8, tenant u16, age u64, content id u64, length u32, CRC-32 u32 of all else,
    key (16 bytes), then (kind 0) the tags of all fragments and the content

A record of kind 1 has neither: the emulated content of its block is derived from its key when it is read
(`hostlib.protocol.content`), so that a hundred thousand blocks can be there from the start. Integers are
big-endian.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple
from zlib import crc32

from hostlib.protocol import wire
from hostlib.protocol.errors import UnreadableError

_RECORD = struct.Struct(">IBBHQQII16s")
_CRC_AT: Final = 28
_CRC = struct.Struct(">I")
_MAGIC: Final = 0x57454952  # "WEIR"
_VERSION: Final = 3
_NAME = struct.Struct(">H16s")
NAME_BYTES: Final = _NAME.size
LEAST_BYTES: Final = 512
"""A shorter block counts as many bytes in memory and on disk. Its entries in tables take about as much."""
KIND_WHOLE: Final = 0
KIND_DERIVED: Final = 1


class Place(NamedTuple):
    """Name of a block: its key, among the keys of its tenant."""

    tenant: int
    key: bytes

    def name(self) -> bytes:
        """Return the name of its record on disk; names sort as places do."""
        return _NAME.pack(*self)

    @classmethod
    def of_name(cls, name: bytes) -> Place:
        """Return the place that has this name; raises struct.error for what is no name."""
        return cls(*_NAME.unpack(name))


@dataclass(frozen=True, slots=True)
class Block:
    """`write` is its content id, `tags` has 16 bytes a fragment."""

    write: int
    content: bytes
    tags: bytes

    @property
    def fragments(self) -> int:
        """Return the number of fragments of the block."""
        return len(self.tags) // wire.TAG_BYTES

    def value(self, fragment: int) -> bytes:
        """Return the value of one fragment, without padding."""
        at = fragment * wire.VALUE_BYTES
        return self.content[at : at + wire.VALUE_BYTES]

    def tag(self, fragment: int) -> bytes:
        """Return the tag of one fragment."""
        at = fragment * wire.TAG_BYTES
        return self.tags[at : at + wire.TAG_BYTES]


@dataclass(frozen=True, slots=True)
class Derived:
    """A block of so many bytes whose content is derived from its key when it is read."""

    length: int


Derive = Callable[[Place, int], Block]
"""The block at a place that was written as one of so many bytes of derived content."""


class Header(NamedTuple):
    """Header of a record on disk."""

    age: int
    write: int
    length: int
    first_tag: bytes | None
    """The tag of fragment 0; None for a derived block. Damage there is not noticed."""


def taken_bytes(length: int) -> int:
    """Return how many bytes of a tier a block of this length takes, with its entries in tables."""
    return max(length, LEAST_BYTES)


def encode_record(place: Place, age: int, block: Block | Derived) -> bytes:
    """Return the record of a block; `age` numbers records in the order in which they were written."""
    if isinstance(block, Derived):
        kind, write, length, tags, content = KIND_DERIVED, 0, block.length, b"", b""
    else:
        kind, write, length = KIND_WHOLE, block.write, len(block.content)
        tags, content = block.tags, block.content
    head = bytearray(_RECORD.pack(_MAGIC, _VERSION, kind, place.tenant, age, write, length, 0, place.key))
    _CRC.pack_into(head, _CRC_AT, crc32(content, crc32(tags, crc32(head))))
    return b"".join((head, tags, content))


def record_bytes(block: Block | Derived) -> int:
    """Return the length of its record in bytes."""
    return _RECORD.size + (0 if isinstance(block, Derived) else len(block.tags) + len(block.content))


def read_header(place: Place, record: wire.Buffer) -> Header:
    """Return what a record says about itself; raises UnreadableError if it is not this place's or not
    whole."""
    try:
        magic, version, kind, tenant, age, write, length, _, key = _RECORD.unpack_from(record)
    except struct.error:
        raise UnreadableError(f"a record of {len(record)} bytes") from None
    if magic != _MAGIC or version != _VERSION or kind not in (KIND_WHOLE, KIND_DERIVED):
        raise UnreadableError(f"no record of version {_VERSION}")
    if (tenant, key) != place:
        raise UnreadableError("a record of another block")
    rest = 0 if kind == KIND_DERIVED else length + wire.fragment_count(length) * wire.TAG_BYTES
    if len(record) != _RECORD.size + rest or not 0 < length <= wire.MAX_BLOCK_BYTES:
        raise UnreadableError(f"a record of {len(record)} bytes for a block of {length}")
    if kind == KIND_DERIVED:
        return Header(age, write, length, None)
    first_tag = bytes(memoryview(record)[_RECORD.size : _RECORD.size + wire.TAG_BYTES])
    return Header(age, write, length, first_tag)


def decode_record(
    place: Place, record: wire.Buffer, copy: Callable[[wire.Buffer], bytes] = bytes
) -> Block | Derived:
    """Return the block in a record, copied from there; raises UnreadableError if any bit of it is wrong."""
    record = memoryview(record)
    header = read_header(place, record)
    head = bytearray(record[: _RECORD.size])
    (stored,) = _CRC.unpack_from(head, _CRC_AT)
    _CRC.pack_into(head, _CRC_AT, 0)
    if crc32(record[_RECORD.size :], crc32(head)) != stored:
        raise UnreadableError("a record with a wrong checksum")
    if header.first_tag is None:
        return Derived(header.length)
    tags_end = _RECORD.size + wire.fragment_count(header.length) * wire.TAG_BYTES
    return Block(header.write, copy(record[tags_end:]), bytes(record[_RECORD.size : tags_end]))
