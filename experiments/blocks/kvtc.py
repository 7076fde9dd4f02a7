"""Coder that uses KVTC's method (arXiv 2511.01815; open code OnlyTerp/kvtc), for comparison.

Keys are rotated back to position 0. Principal components, found on other documents and held by both sides,
decorrelate the keys and values of a layer. Each component gets bits by the error that they save. The packed
codes are compressed by DEFLATE or LZMA, whichever is shorter. The first tokens stay in bfloat16. The method
also leaves a window of last tokens uncompressed. This coder does not, as a stored block has no last tokens.
"""

from __future__ import annotations

import lzma
import zlib
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from kvcodec.bfloat16 import from_bits, to_bits
from kvcodec.layout import Floats

NORMAL, BLOCK = "normal", "block"
"""Ranges of a component's codes.

With `NORMAL`, a range fits a normal distribution with the component's deviation on other documents, and costs
no bytes. With `BLOCK`, as in the open code, it is from the least to the largest value in each block, sent as
two 16-bit floats. The open code sends integers of Python, and does not count them in its ratio.
"""
SINKS: Final = 4
"""Number of first tokens, which receive much attention whatever they are (attention sinks)."""
MOST_BITS: Final = 8


@dataclass(frozen=True)
class Basis:
    """Basis that both sides hold for the keys, or the values, of one layer."""

    mean: Floats
    components: Floats
    """Principal components as rows, the one of largest deviation first."""
    deviations: Floats
    """Standard deviation along each component."""
    bits: npt.NDArray[np.int64]
    """Bits of each component's codes."""


class KvtcCoder:
    """Coder that is calibrated on the KV of other documents."""

    def __init__(
        self,
        calibration: Floats,
        head_dim: int,
        theta: float,
        key_bits: float,
        value_bits: float,
        ranges: str = NORMAL,
    ) -> None:
        """Compute the bases from `calibration`, with shape (documents, layers, 2, tokens, channels).

        All its documents begin at position 0. `key_bits` and `value_bits` are mean bits a value.
        """
        self._head_dim, self._theta, self._ranges = head_dim, theta, ranges
        rotated = np.stack([self._rotate_keys(kv, -1) for kv in calibration])
        rows = rotated[:, :, :, SINKS:].transpose(1, 2, 0, 3, 4)
        self._bases = [
            [_basis(layer[kind].reshape(-1, rows.shape[-1]), (key_bits, value_bits)[kind]) for kind in (0, 1)]
            for layer in rows
        ]

    def encode(self, kv: Floats) -> bytes:
        """Return a block's stream: first tokens in bfloat16, ranges, and compressed codes."""
        rotated = self._rotate_keys(kv, -1)
        parts: list[bytes] = []
        ranges: list[np.float16] = []
        for layer, kinds in enumerate(self._bases):
            for kind, basis in enumerate(kinds):
                spread = (rotated[layer, kind, SINKS:] - basis.mean) @ basis.components.T
                for column, deviation, bits in zip(spread.T, basis.deviations, basis.bits, strict=True):
                    if bits:
                        lowest, step = self._range(column, deviation, int(bits), ranges)
                        parts.append(_pack(_codes(column, lowest, step, int(bits)), int(bits)))
        packed = b"".join(parts)
        raw_lzma = lzma.compress(packed, lzma.FORMAT_RAW, filters=[{"id": lzma.FILTER_LZMA2, "preset": 9}])
        sinks = to_bits(kv[:, :, :SINKS]).tobytes()
        sent = np.array(ranges, np.float16).tobytes()
        return sinks + sent + min((b"D" + zlib.compress(packed, 9), b"L" + raw_lzma), key=len)

    def decode(self, stream: bytes, layers: int, tokens: int, channels: int) -> Floats:
        """Return the tensor, with shape (layers, 2, tokens, channels) and keys at their positions."""
        kv = np.empty((layers, 2, tokens, channels), np.float32)
        sink_bytes = layers * 2 * SINKS * channels * 2
        range_bytes = 4 * self._coded if self._ranges == BLOCK else 0
        ranges = iter(np.frombuffer(stream[sink_bytes : sink_bytes + range_bytes], np.float16).astype(float))
        packed = _unpacked_stream(stream[sink_bytes + range_bytes :])
        at = 0
        for layer, kinds in enumerate(self._bases):
            for kind, basis in enumerate(kinds):
                spread = np.zeros((tokens - SINKS, channels), np.float32)
                for column, (deviation, bits) in enumerate(zip(basis.deviations, basis.bits, strict=True)):
                    if bits:
                        size = -(-(tokens - SINKS) * int(bits) // 8)
                        codes = _unpack(packed[at : at + size], int(bits), tokens - SINKS)
                        if self._ranges == BLOCK:
                            lowest, step = _between(next(ranges), next(ranges), int(bits))
                        else:
                            lowest, step = _normal_range(deviation, int(bits))
                        spread[:, column] = _values(codes, lowest, step)
                        at += size
                kv[layer, kind, SINKS:] = spread @ basis.components + basis.mean
        kv = self._rotate_keys(kv, 1)
        sinks = from_bits(np.frombuffer(stream[:sink_bytes], np.uint16))
        kv[:, :, :SINKS] = sinks.reshape(layers, 2, SINKS, channels)
        return kv

    @property
    def _coded(self) -> int:
        """Return the number of components that have any bits."""
        return sum(int((basis.bits > 0).sum()) for kinds in self._bases for basis in kinds)

    def _range(
        self, column: Floats, deviation: float, bits: int, sent: list[np.float16]
    ) -> tuple[float, float]:
        """Return lowest value and step of a component's codes; adds the numbers to send to `sent`."""
        if self._ranges == NORMAL:
            return _normal_range(deviation, bits)
        ends = np.float16(column.min()), np.float16(column.max())
        sent.extend(ends)
        return _between(float(ends[0]), float(ends[1]), bits)

    def _rotate_keys(self, kv: Floats, sign: int) -> Floats:
        from experiments.blocks.rotary import rotate

        rotated = kv.copy()
        positions = sign * np.arange(kv.shape[2])
        rotated[:, 0] = rotate(kv[:, 0], positions, self._head_dim, self._theta)
        return rotated


def _basis(rows: Floats, bits: float) -> Basis:
    mean = rows.mean(axis=0)
    _, singular, components = np.linalg.svd(rows - mean, full_matrices=False)
    deviations = np.maximum(singular / np.sqrt(len(rows)), 1e-9).astype(np.float32)
    return Basis(mean, components.astype(np.float32), deviations, _allocate_bits(deviations, bits))


def _allocate_bits(deviations: Floats, mean_bits: float) -> npt.NDArray[np.int64]:
    """Return the bits of each component: each bit goes to the component with the largest error.

    The paper's dynamic program finds the same.
    """
    bits = np.zeros(len(deviations), np.int64)
    for _ in range(round(mean_bits * len(deviations))):
        errors = np.where(bits < MOST_BITS, deviations.astype(np.float64) ** 2 / 4.0**bits, 0)
        bits[int(errors.argmax())] += 1
    return bits


def _normal_range(deviation: float, bits: int) -> tuple[float, float]:
    """Return lowest value and step of the best uniform quantiser of a normal distribution (Max, 1960).

    The formula is within 1 % of it. With fewer bits the range is narrower.
    """
    half_width = float((1.27 + 0.345 * bits) * deviation)
    step = 2 * half_width / (1 << bits)
    return step / 2 - half_width, step


def _between(least: float, largest: float, bits: int) -> tuple[float, float]:
    """Return lowest value and step of codes whose range includes both ends."""
    return least, max(1e-9, largest - least) / ((1 << bits) - 1)


def _codes(column: Floats, lowest: float, step: float, bits: int) -> npt.NDArray[np.uint8]:
    codes = np.floor((column - lowest) / step + 0.5)
    clipped: npt.NDArray[np.uint8] = codes.clip(0, (1 << bits) - 1).astype(np.uint8)
    return clipped


def _values(codes: npt.NDArray[np.uint8], lowest: float, step: float) -> Floats:
    values: Floats = (codes.astype(np.float32) * step + lowest).astype(np.float32)
    return values


def _pack(codes: npt.NDArray[np.uint8], bits: int) -> bytes:
    return np.packbits(np.unpackbits(codes[:, None], axis=1)[:, 8 - bits :]).tobytes()


def _unpack(packed: bytes, bits: int, count: int) -> npt.NDArray[np.uint8]:
    places = np.unpackbits(np.frombuffer(packed, np.uint8), count=count * bits).reshape(count, bits)
    codes: npt.NDArray[np.uint8] = (places @ (1 << np.arange(bits - 1, -1, -1))).astype(np.uint8)
    return codes


def _unpacked_stream(stream: bytes) -> bytes:
    if stream[:1] == b"D":
        return zlib.decompress(stream[1:])
    return lzma.decompress(stream[1:], lzma.FORMAT_RAW, filters=[{"id": lzma.FILTER_LZMA2, "preset": 9}])
