"""Adaptive arithmetic coding of small whole numbers that come in rows: one row a token, one place a channel.

Each channel has a model of its own that both sides bring up to date after every row, so no tables are sent.
It is a mixture of what the channel has shown (counts) and a bell curve as wide as the channel's numbers
have been so far, which is right long before the counts are. Everything that decides a probability is a
whole number computed from whole numbers, so any machine computes the same; the coder itself is
constriction's range coder.
"""

from __future__ import annotations

from decimal import Context, Decimal
from functools import lru_cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from kvcodec.errors import CodecError, StreamError

MAX_REACH: Final = 255
"""Symbols go from -reach to reach."""

_WIDTHS: Final = 48
_WIDTH_STEP: Final = Decimal("1.15")
_NARROWEST: Final = Decimal("0.12")
_CURVE_UNIT: Final = 1 << 12
_COUNT_UNIT: Final = 256
"""What one occurrence adds, beside a curve whose whole is `_CURVE_UNIT`."""
_FIXED: Final = 64
"""Sums of magnitudes are kept in 64ths of a row."""
_PRIOR_ROWS: Final = 2

Symbols = npt.NDArray[np.int32]


class ChannelModels:
    """The models of so many channels; `spread` is the magnitude that each one's first symbol is expected to
    have.
    """

    def __init__(self, channels: int, reach: int, spread: npt.NDArray[np.int64]) -> None:
        self._reach = reach
        self._rows = 0
        self._counts = np.zeros((channels, 2 * reach + 1), np.float32)
        self._magnitudes = spread * _FIXED * _PRIOR_ROWS
        self._place = np.arange(channels)

    def probabilities(self) -> npt.NDArray[np.float32]:
        """(channels, 2 * reach + 1), unnormalised: whole numbers."""
        mean = self._magnitudes // (self._rows + _PRIOR_ROWS)
        width = np.searchsorted(_edges(), mean)
        return self._counts + _curves(self._reach)[width]

    def learn(self, row: Symbols) -> None:
        """Take in what each channel has shown."""
        self._counts[self._place, row + self._reach] += _COUNT_UNIT
        self._magnitudes += np.abs(row).astype(np.int64) * _FIXED
        self._rows += 1


def encode_rows(rows: Symbols, reach: int, spread: npt.NDArray[np.int64]) -> bytes:
    """(rows, channels) of symbols from -reach to reach, as bytes in little-endian words of four."""
    models = ChannelModels(rows.shape[1], reach, spread)
    coder, family = _range_coder()
    encoder = coder.RangeEncoder()
    for row in rows:
        encoder.encode(row + reach, family, models.probabilities())
        models.learn(row)
    return bytes(encoder.get_compressed().astype("<u4").tobytes())


def decode_rows(payload: bytes, shape: tuple[int, int], reach: int, spread: npt.NDArray[np.int64]) -> Symbols:
    """Return what `encode_rows` was given; raises StreamError where the bytes can't be that."""
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
    """constriction's range coder and its family of models; CodecError where the package is not installed."""
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
    """Up to which mean magnitude, in 64ths, each curve is used: a bell curve's is 0.8 of its deviation."""
    return np.array([int(deviation * Decimal("0.855") * _FIXED) for deviation in _deviations()[:-1]])


@lru_cache
def _curves(reach: int) -> npt.NDArray[np.float32]:
    """Bell curves by width; whole numbers, none of them 0. Decimal's exp is the same everywhere, libm's is
    not.
    """
    context = Context(prec=20)
    curves = []
    for deviation in _deviations():
        heights = [context.exp(-((Decimal(at) / deviation) ** 2) / 2) for at in range(reach + 1)]
        whole = heights[0] + 2 * sum(heights[1:])
        side = [1 + int(_CURVE_UNIT * height / whole) for height in heights]
        curves.append([*side[:0:-1], *side])
    return np.array(curves, np.float32)
