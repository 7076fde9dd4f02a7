"""The wire format: one message of the protocol is the payload of one UDP datagram.

The picture counts bytes; all integers are big-endian. Constants and layout are those of
p4/include/protocol.p4 and p4/include/headers.p4 (a test compares them name by name).

     0       1       2       3       4       5       6       7
    +-------+-------+-------+-------+-------+-------+-------+-------+
  0 |version|  op   |     flags     |  backlog_ms   | recompute_ms  |
    +-------+-------+-------+-------+-------+-------+-------+-------+
  8 |           sequence            |          generation           |
    +-------+-------+-------+-------+-------+-------+-------+-------+
 16 |     depth     | chain_blocks  |            parent             |
    +-------+-------+-------+-------+-------+-------+-------+-------+
 24 |home_1 |home_2 |home_3 | epoch |           checksum            |
    +-------+-------+-------+-------+-------+-------+-------+-------+
 32 |    tenant     |   fragment    |   fragments   |  value_bytes  |
    +-------+-------+-------+-------+-------+-------+-------+-------+
 40 |                            content                            |
    +-------+-------+-------+-------+-------+-------+-------+-------+
 48 |                                                               |
    +                        key (16 bytes)                         +
 56 |                                                               |
    +-------+-------+-------+-------+-------+-------+-------+-------+
 64 |                                                               |
    +                        tag (16 bytes)                         +
 72 |                                                               |
    +-------+-------+-------+-------+-------+-------+-------+-------+
 80 | VALUE, PUT: a value; HELLO, KEYS, EXPECT, MEMBERS: a list      |
    +---------------------------------------------------------------+

A value has VALUE_BYTES (`hostlib.protocol.value_size`), a list LIST_BYTES, both with zeros at the end.

The checksum, a CRC-32 that needs no secret, covers bytes 32 to the end: where the value belongs, its tag and
the value. The tag, made with the tenant's secret, covers bytes 32 to 63 and the value. Both are 0 without a
value.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, NamedTuple
from zlib import crc32

from hostlib.protocol import value_size
from hostlib.protocol.errors import ChecksumError, MalformedError

if TYPE_CHECKING:
    from collections.abc import Callable

Buffer = bytes | bytearray | memoryview

KV_PORT: Final = 22341
KV_VERSION: Final = 2
KV_HEADER_BYTES: Final = 80
VALUE_BYTES: Final = value_size.VALUE_BYTES
LIST_BYTES: Final = 512
KEY_BYTES: Final = 16
TAG_BYTES: Final = 16
MAX_FRAGMENTS: Final = 0xFFFF
MAX_BLOCK_BYTES: Final = MAX_FRAGMENTS * VALUE_BYTES
MAX_REPLICAS: Final = 3
TENANT_PUBLIC: Final = 0
FRAME_HEADER_BYTES: Final = 14 + 20 + 8  # Ethernet, IPv4, UDP
HEADER_FRAME_BYTES: Final = FRAME_HEADER_BYTES + KV_HEADER_BYTES
VALUE_FRAME_BYTES: Final = HEADER_FRAME_BYTES + VALUE_BYTES
VALUE_PACKET_BYTES: Final = VALUE_FRAME_BYTES - 14
"""The least MTU of a link that carries values."""
MTU_BYTES: Final = max(1500, VALUE_PACKET_BYTES)
"""MTU of the links that an emulation makes, in bytes."""

OP_GET: Final = 1
OP_VALUE: Final = 2
OP_NOT_FOUND: Final = 3
OP_PUT: Final = 4
OP_PUT_ACK: Final = 5
OP_REFUSED: Final = 6
OP_STAT: Final = 7
OP_FOUND: Final = 8
OP_HELLO: Final = 9
OP_LIST: Final = 10
OP_KEYS: Final = 11
OP_EXPECT: Final = 12
OP_DELETE: Final = 13
OP_DELETED: Final = 14
OP_RECLAIM: Final = 17
OP_FILL: Final = 18
OP_PUSH: Final = 19
OP_MEMBERS: Final = 20

FLAG_RETRY: Final = 0x0001
FLAG_BYPASS: Final = 0x0002
FLAG_FROM_POOL: Final = 0x0004
FLAG_MERGED: Final = 0x0008
FLAG_FILL: Final = 0x0010
FLAG_RECLAIM: Final = 0x0020
FLAG_PUSHED: Final = 0x0040
FLAG_SUBSCRIBE: Final = 0x0080
FLAG_HELD: Final = 0x0100
FLAG_REPAIR: Final = 0x0200
FLAG_DURABLE: Final = 0x0400
FLAG_CREATED: Final = 0x0800
FLAG_TOMBSTONES: Final = 0x1000
FLAG_HINT: Final = 0x2000

REFUSED_FULL: Final = 1
REFUSED_QUOTA: Final = 2
REFUSED_LENGTH: Final = 3
REFUSED_CONTENT: Final = 4
REFUSED_UNREADABLE: Final = 5
REFUSED_BUSY: Final = 6
REFUSED_NOT_HOME: Final = 7
REFUSED_DELETED: Final = 8
REFUSED_PROOF: Final = 9

# (name, bits) of kv_t, in order; the struct below is the same layout.
FIELDS: Final = (
    ("version", 8),
    ("op", 8),
    ("flags", 16),
    ("backlog_ms", 16),
    ("recompute_ms", 16),
    ("sequence", 32),
    ("generation", 32),
    ("depth", 16),
    ("chain_blocks", 16),
    ("parent", 32),
    ("home_1", 8),
    ("home_2", 8),
    ("home_3", 8),
    ("epoch", 8),
    ("checksum", 32),
    ("tenant", 16),
    ("fragment", 16),
    ("fragments", 16),
    ("value_bytes", 16),
    ("content", 64),
    ("key", 128),
    ("tag", 128),
)

_HEADER = struct.Struct(">BBHHHIIHHI4BIHHHHQ16s16s")
_HEAD = struct.Struct(">BBHHHIIHHI4BI")
_TAIL = struct.Struct(">HHHHQ16s16s")
"""Fields that the checksum covers besides the value."""
_PLACE = struct.Struct(">HHHHQ16s")
_CHECKED_FROM: Final = 32
_VARIANT = struct.Struct(">2s H 4s I 22s H 44s")
"""A header by what differs in it: flags, sequence, fragment, and what lies between."""
_WRITE = struct.Struct(">HHQ")
"""Fields of a header: fragments, value_bytes and content."""
_WRITTEN = struct.Struct(">2x H 32x HHQ")
"""Fields of a message: flags, and then those of `_WRITE`."""
_CARRIED_BYTES: Final = dict.fromkeys((OP_VALUE, OP_PUT), VALUE_BYTES) | dict.fromkeys(
    (OP_HELLO, OP_KEYS, OP_EXPECT, OP_MEMBERS), LIST_BYTES
)
"""Number of value bytes that each operation carries; the others carry none."""
_OPS = frozenset((*range(OP_GET, OP_DELETED + 1), *range(OP_RECLAIM, OP_MEMBERS + 1)))
_NO_TAG: Final = bytes(TAG_BYTES)
_PADDING: Final = bytes(max(VALUE_BYTES, LIST_BYTES))
# Who asks without knowing how long the block is sends fragments 0; so does who answers that nothing is there.
_UNKNOWN_LENGTH_OPS = frozenset(
    (OP_GET, OP_NOT_FOUND, OP_REFUSED, OP_STAT, OP_HELLO, OP_LIST, OP_KEYS, OP_EXPECT, OP_MEMBERS)
)


class Message(NamedTuple):
    """One message; `value` holds the meaningful bytes only, without the padding."""

    op: int
    key: bytes
    fragment: int
    fragments: int
    flags: int = 0
    generation: int = 0
    sequence: int = 0
    depth: int = 0
    chain_blocks: int = 0
    parent: int = 0
    backlog_ms: int = 0
    recompute_ms: int = 0
    tenant: int = TENANT_PUBLIC
    content: int = 0
    homes: tuple[int, int, int] = (0, 0, 0)
    epoch: int = 0
    tag: bytes = _NO_TAG
    value: Buffer = b""


def tagged_place(
    tenant: int, fragment: int, fragments: int, value_bytes: int, content: int, key: bytes
) -> bytes:
    """Return what a tag covers besides the padded value: bytes 32 to 63 of the message."""
    return _PLACE.pack(tenant, fragment, fragments, value_bytes, content, key)


def encode(message: Message) -> bytes:
    """Return the UDP payload of a message; raises ValueError for a field out of its range."""
    (op, key, fragment, fragments, flags, generation, sequence, depth, chain, parent,
     backlog_ms, recompute_ms, tenant, content, homes, epoch, tag, value) = message  # fmt: skip
    value_bytes = len(value)
    carried_bytes = _CARRIED_BYTES.get(op, 0)
    if len(key) != KEY_BYTES or len(tag) != TAG_BYTES or value_bytes > carried_bytes:
        raise ValueError(
            f"key of {len(key)} bytes, tag of {len(tag)}, value of {value_bytes} bytes in op {op}"
        )
    try:
        tail = _TAIL.pack(tenant, fragment, fragments, value_bytes, content, key, tag)
        padding = _PADDING[value_bytes:carried_bytes]
        crc = crc32(padding, crc32(value, crc32(tail))) if carried_bytes else 0
        head = _HEAD.pack(
            KV_VERSION, op, flags, backlog_ms, recompute_ms, sequence, generation, depth, chain, parent,
            *homes, epoch, crc,
        )  # fmt: skip
    except struct.error as error:
        raise ValueError(f"{message._replace(value=b'')}: {error}") from None
    return b"".join((head, tail, value, padding))


def encode_value(
    asked: Message, fragment: int, flags: int, fragments: int, content: int, epoch: int, backlog_ms: int,
    tag: bytes, value: Buffer,
) -> bytes:  # fmt: skip
    """Return a VALUE that answers a GET: as `encode` of a message that echoes what `asked` says of the place,
    but for the fragment.

    For who serves fragment after fragment of sealed blocks: `value` and `tag` have a right length.
    """
    (_, key, _, _, _, _, sequence, depth, chain, parent, _, recompute_ms, tenant, *_) = asked
    value_bytes = len(value)
    tail = _TAIL.pack(tenant, fragment, fragments, value_bytes, content, key, tag)
    padding = _PADDING[value_bytes:VALUE_BYTES]
    head = _HEAD.pack(
        KV_VERSION, OP_VALUE, flags, backlog_ms, recompute_ms, sequence, 0, depth, chain, parent,
        0, 0, 0, epoch, crc32(padding, crc32(value, crc32(tail))),
    )  # fmt: skip
    return b"".join((head, tail, value, padding))


class Variants:
    """Messages without a value that differ in flags, sequence and fragment only."""

    def __init__(self, encoded: bytes) -> None:
        """Make the template from one encoded message, whichever of them."""
        self._encoded = one = encoded
        self._parts = one[:2], one[4:8], one[12:34], one[36:]

    def of_write(self, fragments: int, content: int, epoch: int) -> Variants:
        """Return the same for one write of the block."""
        one, write = self._encoded, _WRITE.pack(fragments, 0, content)
        return Variants(b"".join((one[:27], bytes((epoch,)), one[28:36], write, one[48:])))

    def encode(self, flags: int, sequence: int, fragment: int) -> bytes:
        """Return one of the messages."""
        start, middle, place, end = self._parts
        return _VARIANT.pack(start, flags, middle, sequence, place, fragment, end)


def decode(datagram: Buffer, trusting_values: bool = False) -> Message:
    """Return the message in a UDP payload; raises MalformedError or ChecksumError for anything else.

    `value` is a slice of `datagram`: a view if that is one, valid as long as it is. With `trusting_values`
    the checksum of a VALUE is left out: for who checks its tag, which says more.
    """
    length = len(datagram)
    if length and datagram[0] != KV_VERSION:
        raise MalformedError(f"version {datagram[0]}")
    if length < KV_HEADER_BYTES:
        raise MalformedError("short")
    (_, op, flags, backlog_ms, recompute_ms, sequence, generation, depth, chain_blocks, parent,
     home_1, home_2, home_3, epoch, crc,
     tenant, fragment, fragments, value_bytes, content, key, tag) = _HEADER.unpack_from(datagram)  # fmt: skip
    if op not in _OPS:
        raise MalformedError("op")
    carried_bytes = _CARRIED_BYTES.get(op, 0)
    if length != KV_HEADER_BYTES + carried_bytes:
        raise MalformedError("length")
    if fragment >= fragments and (fragment or op not in _UNKNOWN_LENGTH_OPS):
        raise MalformedError("fragment")
    if value_bytes > carried_bytes:
        raise MalformedError("value_bytes")
    value: Buffer = datagram[KV_HEADER_BYTES : KV_HEADER_BYTES + value_bytes] if carried_bytes else b""
    message = Message._make((
        op, key, fragment, fragments, flags, generation, sequence, depth, chain_blocks, parent,
        backlog_ms, recompute_ms, tenant, content, (home_1, home_2, home_3), epoch, tag, value,
    ))  # fmt: skip
    if (
        carried_bytes
        and not (trusting_values and op == OP_VALUE)
        and crc != crc32(memoryview(datagram)[_CHECKED_FROM:])
    ):
        raise ChecksumError(message)
    return message


def op_of(datagram: Buffer) -> int:
    """Return what the datagram says to be, whatever else it is; 0 for one that is too short."""
    return datagram[1] if len(datagram) > 1 else 0


def key_of(datagram: Buffer) -> bytes:
    """Return the key in a message, if it is one."""
    return bytes(datagram[48:64])


def epoch_of(datagram: Buffer) -> int:
    """Return the epoch in a message, if it is one."""
    return datagram[27] if len(datagram) > 27 else 0


def write_of(value: Buffer) -> tuple[int, int, int, int]:
    """Return flags, fragments, bytes of the value, and content id of a valid VALUE message."""
    flags, fragments, value_bytes, content = _WRITTEN.unpack_from(value)
    return flags, fragments, value_bytes, content


def is_of_before(answer: Message, first: int) -> bool:
    """Return whether a message answers what its receiver asked before the question of this number. What is
    merged or pushed may have another host's number, and counts as if it did not."""
    if answer.flags & (FLAG_MERGED | FLAG_PUSHED):
        return False
    return is_before(answer.sequence, first)


def is_before(sequence: int, other: int) -> bool:
    """Return whether a message has an earlier number than another one of the same host."""
    return (sequence - other) & 0xFFFFFFFF >= 1 << 31


def numbered_from(now_s: float) -> int:
    """Return the number of what a host sends at this time, see `Numbers`."""
    return int(now_s * 1e6) & 0xFFFFFFFF


class Numbers:
    """The numbers of a host's messages: each is later than the one before, and none is before that of its
    time.

    `now_s` is a clock that goes on while the host's program is started anew. So what answers an earlier
    program comes before, unless that sent more than a message a microsecond, or a packet took half an hour.
    """

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._last = 0

    @property
    def next(self) -> int:
        """Return the number of the next message, or one before it: no earlier message has it."""
        return self._next() & 0xFFFFFFFF

    def take(self, count: int = 1) -> int:
        """Return the number of the first of so many messages that are sent now."""
        first = self._next()
        self._last = first + count - 1
        return first & 0xFFFFFFFF

    def _next(self) -> int:
        return max(self._last + 1, int(self._now_s() * 1e6))


def fingerprint(key: bytes) -> int:
    """Return how a block refers to its parent: the first 32 bits of the parent's key."""
    return int.from_bytes(key[:4], "big")


def fragment_count(block_bytes: int) -> int:
    """Return the number of fragments that a block of `block_bytes` travels in; at least one."""
    return max(1, -(-block_bytes // VALUE_BYTES))
