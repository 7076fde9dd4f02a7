"""FP8 (e4m3fn: 4 bits of exponent, 3 of mantissa, no infinities) with one scale for each layer's keys and one
for its values.

Format: Micikevicius et al., "FP8 Formats for Deep Learning" (arXiv 2209.05433).
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from kvcodec.errors import StreamError
from kvcodec.fields import Fields, scales
from kvcodec.layout import Floats, Layout

LARGEST: Final = 448.0
_NOT_A_NUMBER: Final = 0x7F


def _positive() -> npt.NDArray[np.float32]:
    """Return the numbers of codes 0 to 0x7E."""
    codes = np.arange(_NOT_A_NUMBER)
    exponent, mantissa = codes >> 3, codes & 7
    normal = (8 + mantissa) * 2.0 ** (exponent - 10)
    return np.where(exponent > 0, normal, mantissa * 2.0**-9).astype(np.float32)


_NUMBERS: Final = _positive()
_BETWEEN: Final = (_NUMBERS[1:] + _NUMBERS[:-1]) / 2


def encode_fp8(kv: Floats, level: int) -> bytes:
    """Return scales of shape (layers, 2), then one byte per value."""
    largest = np.abs(kv).max(axis=(2, 3))
    scale = np.where(largest > 0, largest / np.float32(LARGEST), 1).astype(np.float32)
    scaled = kv / scale[:, :, None, None]
    codes = np.searchsorted(_BETWEEN, np.abs(scaled)).astype(np.uint8)
    codes |= np.where(scaled < 0, 0x80, 0).astype(np.uint8)
    return bytes(scale.astype("<f4").tobytes() + codes.tobytes())


def decode_fp8(payload: bytes, layout: Layout, tokens: int, level: int) -> Floats:
    """Return the nearest e4m3 numbers to what was encoded."""
    fields = Fields(payload)
    scale = scales(fields, (layout.layers, 2))
    codes = fields.array("u1", layout.shape(tokens)).astype(np.uint8)
    fields.end()
    magnitudes = codes & 0x7F
    if (magnitudes == _NOT_A_NUMBER).any():
        raise StreamError("the payload holds values that are no numbers")
    values = _NUMBERS[magnitudes] * scale[:, :, None, None]
    signed: Floats = np.where(codes & 0x80, -values, values).astype(np.float32)
    return signed
