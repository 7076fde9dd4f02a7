"""The wire format: one message of the protocol is the payload of one UDP datagram.

The picture counts bytes; all integers are big-endian. Constants and layout are those of
p4/include/protocol.p4 and p4/include/headers.p4 (a test compares them name by name).

     0       1       2       3       4       5       6       7
    +-------+-------+-------+-------+-------+-------+-------+-------+
  0 |version|  op   |     flags     |                               |
    +-------+-------+-------+-------+                               |
  8 |                              key                              |
    |                               +-------+-------+-------+-------+
 16 |                               |   fragment    |   fragments   |
    +-------+-------+-------+-------+-------+-------+-------+-------+
 24 |          generation           |           sequence            |
    +-------+-------+-------+-------+-------+-------+-------+-------+
 32 |     depth     | chain_blocks  |            parent             |
    +-------+-------+-------+-------+-------+-------+-------+-------+
 40 |  value_bytes  |    hint_ms    |           checksum            |
    +-------+-------+-------+-------+-------+-------+-------+-------+
 48 |  VALUE and PUT only: 512 bytes of value, padded with zeros    |
    +---------------------------------------------------------------+
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple
from zlib import crc32

from hostlib.errors import ChecksumError, MalformedError

Buffer = bytes | bytearray | memoryview

KV_PORT: Final = 22341
KV_VERSION: Final = 1
KV_HEADER_BYTES: Final = 48
VALUE_BYTES: Final = 512
KEY_BYTES: Final = 16
FRAME_HEADER_BYTES: Final = 14 + 20 + 8  # Ethernet, IPv4, UDP
HEADER_FRAME_BYTES: Final = FRAME_HEADER_BYTES + KV_HEADER_BYTES
VALUE_FRAME_BYTES: Final = HEADER_FRAME_BYTES + VALUE_BYTES

OP_GET: Final = 1
OP_VALUE: Final = 2
OP_NOT_FOUND: Final = 3
OP_PUT: Final = 4
OP_PUT_ACK: Final = 5
OP_INVALIDATE: Final = 16
OP_RECLAIM: Final = 17
OP_FILL: Final = 18
OP_PUSH: Final = 19

FLAG_RETRY: Final = 0x0001
FLAG_BYPASS: Final = 0x0002
FLAG_FROM_POOL: Final = 0x0004
FLAG_MERGED: Final = 0x0008
FLAG_FILL: Final = 0x0010
FLAG_RECLAIM: Final = 0x0020
FLAG_PUSHED: Final = 0x0040
FLAG_SUBSCRIBE: Final = 0x0080
FLAG_HELD: Final = 0x0100

# (name, bits) of kv_t, in order; the struct below is the same layout.
FIELDS: Final = (
    ("version", 8),
    ("op", 8),
    ("flags", 16),
    ("key", 128),
    ("fragment", 16),
    ("fragments", 16),
    ("generation", 32),
    ("sequence", 32),
    ("depth", 16),
    ("chain_blocks", 16),
    ("parent", 32),
    ("value_bytes", 16),
    ("hint_ms", 16),
    ("checksum", 32),
)

_HEADER = struct.Struct(">BBH16sHHIIHHIHHI")
_CHECKED = struct.Struct(">16sHHH")
_VALUE_OPS = frozenset((OP_VALUE, OP_PUT))
_OPS = frozenset((OP_GET, OP_NOT_FOUND, OP_PUT_ACK, OP_INVALIDATE, OP_RECLAIM, OP_FILL, OP_PUSH)) | _VALUE_OPS
_MESSAGE_BYTES: Final = KV_HEADER_BYTES + VALUE_BYTES


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
    hint_ms: int = 0
    value: Buffer = b""


def checksum(key: bytes, fragment: int, fragments: int, value_bytes: int, padded_value: Buffer) -> int:
    """CRC-32 (IEEE 802.3) of the value and of the place where it belongs; `padded_value` has 512 bytes."""
    return crc32(padded_value, crc32(_CHECKED.pack(key, fragment, fragments, value_bytes)))


def encode(message: Message) -> bytes:
    """The UDP payload of a message; a field out of its range raises ValueError."""
    op, key, fragment, fragments, flags, generation, sequence, depth, chain, parent, hint_ms, value = message
    value_bytes = len(value)
    if len(key) != KEY_BYTES or value_bytes > (VALUE_BYTES if op in _VALUE_OPS else 0):
        raise ValueError(f"key of {len(key)} bytes, value of {value_bytes} bytes in op {op}")
    body, crc = b"", 0
    if op in _VALUE_OPS:
        body = bytes(value).ljust(VALUE_BYTES, b"\0")
        crc = crc32(body, crc32(_CHECKED.pack(key, fragment, fragments, value_bytes)))
    try:
        header = _HEADER.pack(
            KV_VERSION, op, flags, key, fragment, fragments, generation, sequence,
            depth, chain, parent, value_bytes, hint_ms, crc,
        )  # fmt: skip
    except struct.error as error:
        raise ValueError(f"{message._replace(value=b'')}: {error}") from None
    return header + body


def decode(datagram: Buffer) -> Message:
    """The message in a UDP payload; MalformedError or ChecksumError for anything else.

    `value` is a slice of `datagram`: a view if that is one, valid as long as it is.
    """
    length = len(datagram)
    if length < KV_HEADER_BYTES:
        raise MalformedError("short")
    (version, op, flags, key, fragment, fragments, generation, sequence,
     depth, chain_blocks, parent, value_bytes, hint_ms, crc) = _HEADER.unpack_from(datagram)  # fmt: skip
    if version != KV_VERSION:
        raise MalformedError("version")
    if op not in _OPS:
        raise MalformedError("op")
    if length != (_MESSAGE_BYTES if op in _VALUE_OPS else KV_HEADER_BYTES):
        raise MalformedError("length")
    if fragment >= fragments:
        raise MalformedError("fragment")
    if value_bytes > VALUE_BYTES:
        raise MalformedError("value_bytes")
    value: Buffer = b""
    if op in _VALUE_OPS:
        value = datagram[KV_HEADER_BYTES : KV_HEADER_BYTES + value_bytes]
    message = Message(
        op, key, fragment, fragments, flags, generation, sequence, depth, chain_blocks, parent, hint_ms, value
    )
    if op in _VALUE_OPS and crc != crc32(
        datagram[KV_HEADER_BYTES:], crc32(_CHECKED.pack(key, fragment, fragments, value_bytes))
    ):
        raise ChecksumError(message)
    return message


def fingerprint(key: bytes) -> int:
    """How a block refers to its parent: the first 32 bits of the parent's key."""
    return int.from_bytes(key[:4], "big")


def fragment_count(block_bytes: int) -> int:
    """Fragments that a block of `block_bytes` travels in; at least one."""
    return max(1, -(-block_bytes // VALUE_BYTES))
