"""Adaptive arithmetic coding of small whole numbers in rows: one row per token, one column per channel.

Each channel has its own model, which both sides update after every row, so no tables are sent. The model
mixes counts of what the channel has shown with a bell curve as wide as the channel's numbers so far; the
curve is accurate long before the counts are. Every probability is computed from whole numbers in whole
numbers, so all machines agree. The coder itself is constriction's range coder.
"""

from __future__ import annotations

from decimal import Context, Decimal
from functools import lru_cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from kvcodec.errors import CodecError, StreamError

MAX_REACH: Final = 255
"""Largest reach; symbols go from -reach to reach."""

_WIDTHS: Final = 48
_WIDTH_STEP: Final = Decimal("1.15")
_NARROWEST: Final = Decimal("0.12")
_CURVE_UNIT: Final = 1 << 12
_COUNT_UNIT: Final = 256
"""Weight that one occurrence adds; the whole bell curve weighs `_CURVE_UNIT`."""
_FIXED: Final = 64
"""Unit in which magnitudes are summed: 64ths."""
_PRIOR_ROWS: Final = 2

Symbols = npt.NDArray[np.int32]


class ChannelModels:
    """Models of `channels` channels. `spread` is the expected magnitude of each channel's first symbol."""

    def __init__(self, channels: int, reach: int, spread: npt.NDArray[np.int64]) -> None:
        self._reach = reach
        self._rows = 0
        self._counts = np.zeros((channels, 2 * reach + 1), np.float32)
        self._magnitudes = spread * _FIXED * _PRIOR_ROWS
        self._place = np.arange(channels)

    def probabilities(self) -> npt.NDArray[np.float32]:
        """Return unnormalised probabilities as whole numbers, of shape (channels, 2 * reach + 1)."""
        mean = self._magnitudes // (self._rows + _PRIOR_ROWS)
        width = np.searchsorted(_edges(), mean)
        return self._counts + _curves(self._reach)[width]

    def learn(self, row: Symbols) -> None:
        """Update each channel's model with its symbol of this row."""
        self._counts[self._place, row + self._reach] += _COUNT_UNIT
        self._magnitudes += np.abs(row).astype(np.int64) * _FIXED
        self._rows += 1


def encode_rows(rows: Symbols, reach: int, spread: npt.NDArray[np.int64]) -> bytes:
    """Encode rows (rows, channels) of symbols from -reach to reach as little-endian words of four bytes."""
    models = ChannelModels(rows.shape[1], reach, spread)
    coder, family = _range_coder()
    encoder = coder.RangeEncoder()
    for row in rows:
        encoder.encode(row + reach, family, models.probabilities())
        models.learn(row)
    return bytes(encoder.get_compressed().astype("<u4").tobytes())


def decode_rows(payload: bytes, shape: tuple[int, int], reach: int, spread: npt.NDArray[np.int64]) -> Symbols:
    """Return the rows that `encode_rows` was given; raises StreamError if the bytes can't be decoded."""
    if len(payload) % 4:
        raise StreamError(f"a payload of {len(payload)} bytes; it comes in words of four")
    coder, family = _range_coder()
    decoder = coder.RangeDecoder(np.frombuffer(payload, "<u4").astype(np.uint32))
    models = ChannelModels(shape[1], reach, spread)
    rows = np.empty(shape, np.int32)
    try:
        for row in rows:
            row[:] = decoder.decode(family, models.probabilities()) - reach
            models.learn(row)
    except (ValueError, AssertionError) as error:
        raise StreamError(f"the payload can't be decoded: {error}") from None
    return rows


@lru_cache
def _range_coder() -> tuple[Any, Any]:
    """Return constriction's range coder and its family of models.

    Raises CodecError if the package is not installed.
    """
    try:
        import constriction
    except ImportError as error:
        raise CodecError(
            f"the codec cachegen needs the Python package constriction, which can't be imported ({error}): "
            "it has wheels for x86-64 alone. The codecs plain, fp8, kivi and bins need no package"
        ) from None
    return constriction.stream.queue, constriction.stream.model.Categorical(perfect=False)


@lru_cache
def _deviations() -> tuple[Decimal, ...]:
    return tuple(_NARROWEST * _WIDTH_STEP**step for step in range(_WIDTHS))


@lru_cache
def _edges() -> npt.NDArray[np.int64]:
    """Return the largest mean magnitude, in 64ths, for which each curve is used.

    The mean magnitude of a bell curve is 0.8 of its deviation.
    """
    return np.array([int(deviation * Decimal("0.855") * _FIXED) for deviation in _deviations()[:-1]])


@lru_cache
def _curves(reach: int) -> npt.NDArray[np.float32]:
    """Return bell curves by width, in whole numbers above 0.

    Decimal's exp is the same on every machine, libm's is not.
    """
    context = Context(prec=20)
    curves = []
    for deviation in _deviations():
        heights = [context.exp(-((Decimal(at) / deviation) ** 2) / 2) for at in range(reach + 1)]
        whole = heights[0] + 2 * sum(heights[1:])
        side = [1 + int(_CURVE_UNIT * height / whole) for height in heights]
        curves.append([*side[:0:-1], *side])
    return np.array(curves, np.float32)
