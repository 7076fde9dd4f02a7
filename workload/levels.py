"""Ladder of levels at which a block is coded, of which a stream chooses one for each chunk of a chain.

Each level of a block is a block of its own, with a key made from the block's: pools, stores and the wire know
nothing of levels. A node that computes a block stores it at all levels of the ladder, so the block takes the
memory of all of them together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import Final

from workload.compression import NONE, BlockSizes, CompressionError, codecs, find_compression

ADAPTIVE: Final = "adaptive"
"""Name of the setting that lets the stream choose a level for each chunk."""
LADDERS: Final = {"cachegen": (1, 3, 5), "kivi": (8, 4, 2)}
"""Levels at which each block is stored, best first. CacheGen's together take 0.64 of a plain block."""
_LEVEL = b"weir level"


def level_key(key: bytes, level: int) -> bytes:
    """Return the key under which a block is stored at a level."""
    return _level_key(key, level)


@dataclass(frozen=True, slots=True)
class Ladder:
    """Sizes of a block at each level, best first, with `BlockSizes`'s members for all of them together."""

    levels: tuple[BlockSizes, ...]

    @property
    def codec(self) -> str:
        """Return the name of the codec."""
        return self.numbers[0][0]

    @property
    def numbers(self) -> tuple[tuple[str, int], ...]:
        """Return (codec, level) of each level."""
        return tuple((one.compression.codec, one.compression.level) for one in self.levels if one.compression)

    @property
    def stored_share(self) -> float:
        """Return the mean share of a plain block's bytes that a block takes at one level."""
        return sum(one.stored_share for one in self.levels) / len(self.levels)

    @property
    def all_levels_share(self) -> float:
        """Return the share of a plain block's bytes that a block takes at all levels together."""
        return sum(one.stored_share for one in self.levels)

    @property
    def most_fragments(self) -> int:
        """Return the number of fragments of the largest block."""
        return max(one.most_fragments for one in self.levels)

    @property
    def mean_fragments(self) -> float:
        """Return the mean number of fragments of a block at one level, over all blocks and levels."""
        return sum(one.mean_fragments for one in self.levels) / len(self.levels)

    def stored(self, key: bytes) -> Iterator[tuple[bytes, int]]:
        """Yield key and fragments of everything that is stored for a block: one for each level."""
        for (_, level), sizes in zip(self.numbers, self.levels, strict=True):
            yield level_key(key, level), sizes.fragments(key)


def find_ladder(codec: str, plain_fragments: int, value_bytes: float) -> Ladder:
    """Return the ladder of a codec.

    Raises CompressionError if the codec has none, or a level makes blocks no smaller.
    """
    if codec not in LADDERS:
        known = f"codec {codec}" if codec in (NONE, *codecs()) else f"a codec {codec!r}"
        raise CompressionError(
            f"level {ADAPTIVE} chooses among levels of quality, which {known} does not have: choose one of "
            f"{', '.join(LADDERS)}"
        )
    compressions = (find_compression(codec, level) for level in LADDERS[codec])
    return Ladder(tuple(BlockSizes(plain_fragments, one, value_bytes) for one in compressions))


def make_sizes(
    codec: str, level: int | str | None, plain_fragments: int, value_bytes: float
) -> BlockSizes | Ladder:
    """Return the sizes of blocks with a codec, at one level or at all levels that a stream chooses from.

    Raises CompressionError.
    """
    if level == ADAPTIVE:
        return find_ladder(codec, plain_fragments, value_bytes)
    if isinstance(level, str):
        raise CompressionError(f"a level is a whole number or {ADAPTIVE}, not {level!r}")
    return BlockSizes(plain_fragments, find_compression(codec, level), value_bytes)


@lru_cache(maxsize=1 << 16)
def _level_key(key: bytes, level: int) -> bytes:
    return blake2b(key, digest_size=len(key), person=_LEVEL, salt=level.to_bytes(2, "big")).digest()
