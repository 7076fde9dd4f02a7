"""Header of every stream, and the checks before a stream is decoded.

    0       3         4       5       6            8            16           24
    | "WKV" | version | codec | level | tokens (2) | layout (8) | digest (8) | payload ...

The digest is BLAKE2b-64 over the bytes before it and the payload. A stream that is damaged or cut short is
refused.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

from kvcodec.errors import CodecError, StreamError
from kvcodec.layout import Layout

_MAGIC: Final = b"WKV"
VERSION: Final = 1
_HEAD: Final = struct.Struct("<3sBBBH8s")
_DIGEST_BYTES: Final = 8
HEADER_BYTES: Final = _HEAD.size + _DIGEST_BYTES


@dataclass(frozen=True, slots=True)
class Frame:
    """Parts of a stream; the format of `payload` is the codec's."""

    codec: int
    level: int
    tokens: int
    payload: bytes


def seal(frame: Frame, layout: Layout) -> bytes:
    """Return the stream of a block: header, digest and payload."""
    head = _HEAD.pack(_MAGIC, VERSION, frame.codec, frame.level, frame.tokens, layout.fingerprint)
    return head + _digest(head, frame.payload) + frame.payload


def open_frame(stream: bytes, layout: Layout) -> Frame:
    """Return the parts of a stream; raises StreamError if it is damaged or of another layout or version."""
    if not isinstance(stream, (bytes, bytearray, memoryview)):
        raise StreamError(f"a stream is bytes, not {type(stream).__name__}")
    stream = bytes(stream)
    if len(stream) < HEADER_BYTES:
        raise StreamError(f"a stream has at least {HEADER_BYTES} bytes, not {len(stream)}")
    head, digest, payload = (
        stream[: _HEAD.size],
        stream[_HEAD.size : HEADER_BYTES],
        stream[HEADER_BYTES:],
    )
    magic, version, codec, level, tokens, fingerprint = _HEAD.unpack(head)
    if magic != _MAGIC:
        raise StreamError("this is no stream of KV tensors")
    if version != VERSION:
        raise StreamError(f"the stream is of version {version}; this is version {VERSION}")
    if _digest(head, payload) != digest:
        raise StreamError("the stream is damaged or cut short: its digest does not match")
    if fingerprint != layout.fingerprint:
        raise StreamError(
            f"the stream is of another model or shape; expected {layout.model}: {layout.layers} layers, "
            f"{layout.kv_heads} KV heads of {layout.head_dim}"
        )
    try:
        layout.check_tokens(tokens)
    except CodecError as error:
        raise StreamError(str(error)) from None
    return Frame(codec, level, tokens, payload)


def _digest(head: bytes, payload: bytes) -> bytes:
    return blake2b(head + payload, digest_size=_DIGEST_BYTES, person=b"weir kv stream").digest()
