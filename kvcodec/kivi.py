"""Uniform quantisation to as many bits as the level says: keys by channel over groups of tokens, values by
token over groups of channels.

After KIVI (Liu et al., arXiv 2402.02750), which found outlier channels in keys and none in values. Each group
has its own smallest value and step, in bfloat16.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from kvcodec.bfloat16 import from_bits, to_bits
from kvcodec.errors import StreamError
from kvcodec.fields import Fields
from kvcodec.layout import Floats, Layout

GROUP: Final = 32
"""Number of values that share a range."""


def encode_kivi(kv: Floats, level: int) -> bytes:
    """Return keys, then values, each as smallest values, steps, and codes packed into bytes."""
    return b"".join(_encode(grouped, level) for grouped in (_by_channel(kv[:, 0]), _by_token(kv[:, 1])))


def decode_kivi(payload: bytes, layout: Layout, tokens: int, level: int) -> Floats:
    """Return what was encoded. The error is at most half a step, plus the rounding of the group's range."""
    fields = Fields(payload)
    kv = np.empty(layout.shape(tokens), np.float32)
    for kind, grouped in enumerate((_by_channel, _by_token)):
        shape = grouped(kv[:, kind]).shape
        decoded = _decode(fields, shape, level)
        inner = decoded.reshape(*shape[:2], -1)
        if kind == 0:
            kv[:, 0] = inner[:, :, :tokens].transpose(0, 2, 1)
        else:
            kv[:, 1] = inner[:, :, : layout.channels]
    fields.end()
    return kv


def _by_channel(keys: Floats) -> Floats:
    """Return keys as (layers, channels, groups, GROUP): each group is of one channel."""
    return _grouped(keys.transpose(0, 2, 1))


def _by_token(values: Floats) -> Floats:
    """Return values as (layers, tokens, groups, GROUP): each group is of one token."""
    return _grouped(values)


def _grouped(rows: Floats) -> Floats:
    """Split the last axis into groups; pad the last group with its row's last value."""
    lacking = -rows.shape[2] % GROUP
    filled = np.pad(rows, ((0, 0), (0, 0), (0, lacking)), mode="edge")
    return filled.reshape(*rows.shape[:2], -1, GROUP)


def _encode(grouped: Floats, bits: int) -> bytes:
    low, high = grouped.min(axis=-1), grouped.max(axis=-1)
    low_bits = to_bits(low)
    low = from_bits(low_bits)
    step_bits = to_bits((high - low) / np.float32((1 << bits) - 1))
    step = from_bits(step_bits)
    safe = np.where(step > 0, step, 1)
    codes = np.rint((grouped - low[..., None]) / safe[..., None]).clip(0, (1 << bits) - 1).astype(np.uint8)
    return low_bits.astype("<u2").tobytes() + step_bits.astype("<u2").tobytes() + _pack(codes, bits)


def _decode(fields: Fields, shape: tuple[int, ...], bits: int) -> Floats:
    low = from_bits(fields.array("<u2", shape[:-1]).astype(np.uint16))
    step = from_bits(fields.array("<u2", shape[:-1]).astype(np.uint16))
    if not (np.isfinite(low).all() and np.isfinite(step).all()):
        raise StreamError("a range in the payload is not finite")
    per_byte = 8 // bits
    packed = fields.array("u1", (*shape[:-1], shape[-1] // per_byte)).astype(np.uint8)
    codes = (packed[..., None] >> (bits * np.arange(per_byte, dtype=np.uint8))) & ((1 << bits) - 1)
    return low[..., None] + codes.reshape(shape).astype(np.float32) * step[..., None]


def _pack(codes: npt.NDArray[np.uint8], bits: int) -> bytes:
    per_byte = 8 // bits
    parts = codes.reshape(*codes.shape[:-1], -1, per_byte) << (bits * np.arange(per_byte, dtype=np.uint8))
    return bytes(np.bitwise_or.reduce(parts, axis=-1).astype(np.uint8).tobytes())
