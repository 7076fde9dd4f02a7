"""The emulated content of blocks: a function of the key, so that every host can check every bit.

Real KV blocks are what a model computed; here a block is the SHAKE-128 stream of its key.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import shake_128


@lru_cache(maxsize=2048)
def block_content(key: bytes, block_bytes: int) -> bytes:
    """The `block_bytes` that the block `key` holds."""
    return shake_128(key).digest(block_bytes)


def is_intact(key: bytes, content: bytes) -> bool:
    """Whether `content` is, bit for bit, what the block `key` holds."""
    return content == block_content(key, len(content))
