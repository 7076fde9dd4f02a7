"""Blocks that a node will put, as it tells the controller of them: EXPECT, when it begins to compute them.

A switch reports what is fetched, and nobody has fetched a block that is just written. Told of it while it is
computed, the controller can have it in the pool index before its PUT passes, which then fills its slots.
"""

from __future__ import annotations

import struct
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from hostlib.protocol import wire
from hostlib.protocol.errors import MalformedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from hostlib.protocol.transfer import BlockRef

_ENTRY: Final = struct.Struct(">HHHHI16s")
_MOST: Final = 0xFFFF
"""Largest value of an entry's field."""
ENTRIES: Final = wire.LIST_BYTES // _ENTRY.size
"""Number of entries in one message."""
MAX_TOLD: Final = 512
"""Blocks of one request; what is behind them in its chain is not told."""


class ExpectedBlock(NamedTuple):
    """A block of the message's tenant, as its PUT will name it."""

    fragments: int
    depth: int
    chain_blocks: int
    recompute_ms: int
    """Milliseconds that computing the block costs the node."""
    parent: int
    """First 32 bits of the parent's key, 0 for none."""
    key: bytes


def expectation(tenant: int, blocks: Iterable[tuple[BlockRef, int]], epoch: int) -> Iterator[bytes]:
    """Yield the messages that tell of blocks, each with its length in fragments; the first MAX_TOLD of
    them."""
    entries = [_entry(block, fragments) for block, fragments in islice(blocks, MAX_TOLD)]
    for at in range(0, len(entries), ENTRIES):
        value = b"".join(entries[at : at + ENTRIES])
        no_key = bytes(wire.KEY_BYTES)
        yield wire.encode(wire.Message(wire.OP_EXPECT, no_key, 0, 0, tenant=tenant, epoch=epoch, value=value))


def _entry(block: BlockRef, fragments: int) -> bytes:
    cost_ms = min(block.recompute_ms, _MOST)
    return _ENTRY.pack(fragments, block.depth, block.chain_blocks, cost_ms, block.parent, block.key)


def read_expected(value: wire.Buffer) -> list[ExpectedBlock]:
    """Return the blocks in a message; raises MalformedError."""
    if len(value) % _ENTRY.size:
        raise MalformedError("length")
    blocks = [ExpectedBlock._make(fields) for fields in _ENTRY.iter_unpack(value)]
    if any(not block.fragments for block in blocks):
        raise MalformedError("fragments")
    return blocks
