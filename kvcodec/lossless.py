"""Lossless coding of bfloat16, plain or compressed by zstd: no loss beyond bfloat16's own."""

from __future__ import annotations

from typing import Any

import numpy as np

from kvcodec.bfloat16 import from_bits, to_bits
from kvcodec.errors import CodecError, StreamError
from kvcodec.fields import Fields
from kvcodec.layout import Floats, Layout


def encode_plain(kv: Floats, level: int) -> bytes:
    """Return the values in bfloat16, little-endian."""
    return to_bits(kv).astype("<u2").tobytes()


def decode_plain(payload: bytes, layout: Layout, tokens: int, level: int) -> Floats:
    """Return what `encode_plain` was given, rounded to bfloat16."""
    fields = Fields(payload)
    bits = fields.array("<u2", layout.shape(tokens)).astype(np.uint16)
    fields.end()
    return from_bits(bits)


def encode_zstd(kv: Floats, level: int) -> bytes:
    """Return bfloat16 compressed by zstd. All high bytes (sign, exponent) come first, as they resemble one
    another."""
    planes = to_bits(kv).astype("<u2").reshape(-1).view(np.uint8).reshape(-1, 2).T
    return bytes(_zstandard().ZstdCompressor(level=level).compress(planes.tobytes()))


def decode_zstd(payload: bytes, layout: Layout, tokens: int, level: int) -> Floats:
    """Return what `encode_zstd` was given, rounded to bfloat16."""
    expected = layout.bf16_bytes(tokens)
    zstandard = _zstandard()
    try:
        if zstandard.frame_content_size(payload) != expected:
            raise StreamError(f"the payload does not hold the {expected} bytes of a block")
        raw = zstandard.ZstdDecompressor().decompress(payload, max_output_size=expected)
    except zstandard.ZstdError as error:
        raise StreamError(f"zstd can't decode the payload: {error}") from None
    planes = np.frombuffer(raw, np.uint8).reshape(2, -1)
    bits = np.ascontiguousarray(planes.T).view("<u2").astype(np.uint16)
    return from_bits(bits).reshape(layout.shape(tokens))


def _zstandard() -> Any:
    """Return the module zstandard; raises CodecError if it is not installed."""
    try:
        import zstandard
    except ImportError as error:
        raise CodecError(
            f"the codec zstd needs the Python package zstandard, which can't be imported ({error}). "
            "The codecs plain, fp8, kivi and bins need no package"
        ) from None
    return zstandard
