"""CacheGen's bins with LMCache 0.5's values. Each token's vector is divided by its largest magnitude and
rounded to 32 or 16 bins, which the adaptive coder of `cachegen`'s deltas codes.

LMCache uses 32 bins for the keys of layers 0 to 9 and the values of layers 0 and 1, and 16 for all others.
Models of fewer than 10 layers get 32 bins everywhere. Level 0 is that rule; level 1 applies the large models'
part of it to any model.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from kvcodec.bfloat16 import from_bits, to_bits
from kvcodec.entropy import decode_rows, encode_rows
from kvcodec.errors import StreamError
from kvcodec.fields import Fields
from kvcodec.layout import Floats, Layout

FINE: Final = 32
COARSE: Final = 16
FINE_KEY_LAYERS: Final = 10
FINE_VALUE_LAYERS: Final = 2
_REACH: Final = FINE // 2 - 1
_SPREAD: Final = 4


def encode_bins(kv: Floats, level: int) -> bytes:
    """Return the largest magnitudes, bfloat16 of shape (layers, 2, tokens), followed by the coded bins."""
    held = from_bits(to_bits(kv))
    largest = np.abs(held).max(axis=3)
    ends = _ends(kv.shape[0], level)[:, :, None]
    factor = ends / np.where(largest > 0, largest, np.float32(1))
    # The shift before rounding is LMCache's: it decides ties.
    bins = np.rint(held * factor[..., None] + ends[..., None]).astype(np.int32) - ends[..., None].astype(
        np.int32
    )
    rows = np.ascontiguousarray(bins.transpose(2, 0, 1, 3)).reshape(kv.shape[2], -1)
    return bytes(to_bits(largest).astype("<u2").tobytes()) + encode_rows(rows, _REACH, _spread(rows.shape[1]))


def decode_bins(payload: bytes, layout: Layout, tokens: int, level: int) -> Floats:
    """Return the middles of the bins, in float32."""
    fields = Fields(payload)
    largest = from_bits(fields.array("<u2", (layout.layers, 2, tokens)).astype(np.uint16))
    if not np.isfinite(largest).all():
        raise StreamError("a magnitude in the payload is not finite")
    width = layout.layers * 2 * layout.channels
    rows = decode_rows(fields.rest(), (tokens, width), _REACH, _spread(width))
    bins = rows.reshape(tokens, layout.layers, 2, layout.channels).transpose(1, 2, 0, 3)
    ends = _ends(layout.layers, level)[:, :, None, None]
    middles: Floats = bins.astype(np.float32) / ends * largest[..., None]
    return middles


def _ends(layers: int, level: int) -> Floats:
    """Return the number of the last bin on either side of 0, of shape (layers, 2)."""
    bins = np.full((layers, 2), COARSE)
    bins[:FINE_KEY_LAYERS, 0] = FINE
    bins[:FINE_VALUE_LAYERS, 1] = FINE
    if level == 0 and layers < FINE_KEY_LAYERS:
        bins[:] = FINE
    ends: Floats = (bins // 2 - 1).astype(np.float32)
    return ends


def _spread(channels: int) -> npt.NDArray[np.int64]:
    return np.full(channels, _SPREAD, np.int64)
