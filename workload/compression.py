"""Effect of a codec on a block: its size, and the time to encode and to decode it.

Sizes and rates were measured on KV of the model that `make blocks` trains: `make blocks RECORD=1` codes whole
blocks of held-out documents and writes codec_record.json beside this file. A trace has no tensors, so the
coded size of its blocks is not known. The block's key draws it from the measured sizes, so everyone who knows
the key knows the size.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

RECORD: Final = Path(__file__).with_name("codec_record.json")
NONE: Final = "none"
"""Codec name for blocks that travel as the model keeps them."""
PLAIN_BYTES_PER_VALUE: Final = 2.0
"""Bytes of a number in bfloat16; recorded sizes are shares of bfloat16."""
CPU_CORES: Final = 64
"""Number of a node's cores that code blocks in parallel with the coder "cpu"."""
CPU, INSTANT = "cpu", "instant"
CODERS: Final = {
    CPU: f"the measured rate of one core, times {CPU_CORES}",
    INSTANT: "no time: CacheGen publishes no rate of its GPU kernels, but calls their overhead negligible "
    "(arXiv 2310.07240, abstract)",
}
_DRAW = b"weir block size "


class CompressionError(ValueError):
    """Codec, level or coder that does not exist or makes no sense; the message lists the valid ones."""


@dataclass(frozen=True, slots=True)
class Compression:
    """Codec at one level, as measured."""

    codec: str
    level: int
    shares: tuple[float, ...]
    """Sizes as shares of bfloat16, headers and tables included: evenly spaced quantiles from smallest to
    largest."""
    encode_bytes_per_s: float
    """Bytes of bfloat16 that one core encodes in a second."""
    decode_bytes_per_s: float

    @property
    def mean_share(self) -> float:
        """Return the mean of what `share` draws: of the quantiles with straight lines between them."""
        inner = sum(self.shares) - (self.shares[0] + self.shares[-1]) / 2
        return inner / (len(self.shares) - 1)

    def share(self, key: bytes) -> float:
        """Return the size to which the block `key` is coded, as a share of bfloat16."""
        at, between = divmod(_draws(key)[0] * (len(self.shares) - 1), 1.0)
        low, high = self.shares[int(at)], self.shares[int(at) + 1]
        return low + between * (high - low)


@dataclass(frozen=True, slots=True)
class BlockSizes:
    """Numbers of fragments of blocks in an emulation, by key.

    A coded block's share of a plain block's fragments is not a whole number. The key decides whether it is
    rounded up or down, so that the mean over blocks is right. No block has less than one fragment.
    """

    plain_fragments: int
    """Number of fragments of a block as the model keeps it."""
    compression: Compression | None = None
    value_bytes: float = PLAIN_BYTES_PER_VALUE
    """Bytes that the model keeps for each number; sizes were recorded for two bytes."""

    def __post_init__(self) -> None:
        if self.compression is not None and self.stored_share >= 1.0:
            codec, level = self.compression.codec, self.compression.level
            raise CompressionError(
                f"{codec} at level {level} makes blocks no smaller ({self.stored_share:.2f} times) of a "
                f"model that keeps {self.value_bytes:g} bytes for a number: choose a codec that takes less, "
                "or a model that keeps 2 bytes"
            )

    @property
    def stored_share(self) -> float:
        """Return the mean share of a plain block's bytes that is sent and stored."""
        return self._of_plain(self.compression.mean_share) if self.compression else 1.0

    @property
    def most_fragments(self) -> int:
        """Return the number of fragments of the largest block."""
        if self.compression is None:
            return self.plain_fragments
        return max(1, -int(-self.plain_fragments * self._of_plain(self.compression.shares[-1]) // 1))

    @property
    def mean_fragments(self) -> float:
        """Return the mean number of fragments of a block."""
        return max(1.0, self.plain_fragments * self.stored_share)

    def fragments(self, key: bytes) -> int:
        """Return the number of fragments of the block `key`."""
        if self.compression is None:
            return self.plain_fragments
        exact = self.plain_fragments * self._of_plain(self.compression.share(key))
        return max(1, int(exact + _draws(key)[1]))

    def stored(self, key: bytes) -> Iterator[tuple[bytes, int]]:
        """Yield key and fragments of everything that is stored for a block: only the block itself."""
        yield key, self.fragments(key)

    def _of_plain(self, share: float) -> float:
        return share * PLAIN_BYTES_PER_VALUE / self.value_bytes


def find_compression(codec: str, level: int | None = None) -> Compression | None:
    """Return a codec at a level, by default its recorded default; None for NONE. Raises CompressionError."""
    if codec == NONE:
        if level is not None:
            raise CompressionError(f"a level needs a codec: choose one of {', '.join(codecs())}")
        return None
    recorded = _record()["codecs"]
    if codec not in recorded:
        raise CompressionError(f"there is no codec {codec!r}: choose one of {NONE}, {', '.join(recorded)}")
    of_codec = recorded[codec]
    chosen = of_codec["default"] if level is None else level
    if str(chosen) not in of_codec["levels"]:
        raise CompressionError(
            f"{codec} has no level {chosen}: choose one of {', '.join(of_codec['levels'])}"
        )
    one = of_codec["levels"][str(chosen)]
    return Compression(
        codec, int(chosen), tuple(one["shares"]), 1e6 * one["encode_mb_s"], 1e6 * one["decode_mb_s"]
    )


def codecs() -> tuple[str, ...]:
    """Return the names of the recorded codecs."""
    return tuple(_record()["codecs"])


def coding_s(compression: Compression | None, coder: str, values: float) -> tuple[float, float]:
    """Return the real seconds in which a node encodes and decodes a block of so many numbers.

    Raises CompressionError for an unknown coder.
    """
    if coder not in CODERS:
        raise CompressionError(f"there is no coder {coder!r}: choose one of {', '.join(CODERS)}")
    if compression is None or coder == INSTANT:
        return 0.0, 0.0
    plain_bytes = values * PLAIN_BYTES_PER_VALUE / CPU_CORES
    return plain_bytes / compression.encode_bytes_per_s, plain_bytes / compression.decode_bytes_per_s


@cache
def _record() -> dict[str, Any]:
    record: dict[str, Any] = json.loads(RECORD.read_text(encoding="utf-8"))
    return record


def _draws(key: bytes) -> tuple[float, float]:
    """Return two numbers in [0, 1), independent of each other and of other uses of the key."""
    digest = blake2b(key, digest_size=16, person=_DRAW).digest()
    # Each has 53 bits, as many as a float holds, so neither is rounded up to 1.
    first, second = int.from_bytes(digest[:8], "big") >> 11, int.from_bytes(digest[8:], "big") >> 11
    return first / (1 << 53), second / (1 << 53)
