"""The emulated content of blocks: a function of the key, so that blocks can be held without having been
received.

Real KV blocks are what a model computed (`hostlib.protocol.kv_file`); here a block is the SHAKE-128 stream of
its key. Readers check it by its tags as they check any content. Those of a block that a storage node holds
from the start are made there, with the tenant's secret: the node stands for the writers of the past. In no
other case does a storage node know a secret.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from hashlib import blake2b, shake_128
from typing import TYPE_CHECKING

from hostlib.protocol import wire
from hostlib.protocol.block import Block, Derive, Place

if TYPE_CHECKING:
    from hostlib.protocol.seal import Seal


def block_content(key: bytes, block_bytes: int) -> bytes:
    """Return the `block_bytes` that the block `key` holds."""
    return shake_128(key).digest(block_bytes)


def derived_write(key: bytes) -> int:
    """Return the content id of a block that was there from the start: the same at all of its homes, never
    0."""
    digest = blake2b(key, digest_size=8, person=b"weir derived").digest()
    return int.from_bytes(digest, "big") or 1


def sealed_block(seal: Seal, key: bytes, write: int, content: bytes) -> Block:
    """Return the block with this content as its writer makes it."""
    fragments = wire.fragment_count(len(content))
    values = (content[at : at + wire.VALUE_BYTES] for at in range(0, len(content), wire.VALUE_BYTES))
    tags = (seal.tag(key, at, fragments, write, value) for at, value in enumerate(values))
    return Block(write, content, b"".join(tags))


Content = Callable[[bytes, int], bytes]
"""Key and length -> what the block holds."""


def derivation(seal: Seal, content: Content = block_content) -> Derive:
    """Return what makes the blocks that one tenant's storage nodes hold from the start; keeps the latest."""

    @lru_cache(maxsize=2048)
    def derive(place: Place, length: int) -> Block:
        return sealed_block(seal, place.key, derived_write(place.key), content(place.key, length))

    return derive
