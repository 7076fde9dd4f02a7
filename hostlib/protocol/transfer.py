"""Types that callers name and get: references to blocks, and blocks that arrived."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from hostlib.protocol.wire import fingerprint

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class BlockRef(NamedTuple):
    """A block as its requester knows it: the key and its place in the chain."""

    key: bytes
    depth: int = 0
    chain_blocks: int = 1
    parent: int = 0
    """First 32 bits of the parent's key, 0 for none."""
    recompute_ms: int = 0
    """Milliseconds that recomputing the block costs; tells the pool what the block is worth."""
    homes: tuple[str, ...] = ()
    """Addresses of who may hold it, best first, where that is known; none: the homes of its key."""


def chain_references(
    keys: Sequence[bytes], recompute_ms: Callable[[int], int] = lambda depth: 0
) -> list[BlockRef]:
    """Return the blocks of a chain with their places in it; `recompute_ms` gives the time of the block at a
    depth."""
    parents = [0, *map(fingerprint, keys[:-1])]
    return [
        BlockRef(key, depth, len(keys), parent, recompute_ms(depth))
        for depth, (key, parent) in enumerate(zip(keys, parents, strict=False))
    ]


class FetchTimes(NamedTuple):
    """Times in the transfer of one block, by the loop's clock, each at or after the one before it."""

    wanted_s: float
    probe_sent_s: float
    probed_s: float
    """Time at which length and write were known."""
    body_sent_s: float
    """Time at which the first of the other fragments was asked for."""
    done_s: float
    home: str
    """Address of the home that was asked last."""


class FetchedBlock(NamedTuple):
    """A block that arrived, each fragment of it checked by its tag, all of one write."""

    key: bytes
    content: bytes | memoryview
    """A view of the caller's buffer if it was read into one."""
    fragments: int
    pool_fragments: int
    """Fragments that a switch served."""
    merged_fragments: int
    """Fragments that came as a copy of another node's reply."""
    times: FetchTimes

    @property
    def elapsed_s(self) -> float:
        """Return the seconds from the first request on the wire to the checked block."""
        return self.times.done_s - self.times.probe_sent_s

    @property
    def from_pool(self) -> bool:
        """Return whether the pool served the block: more than half of its fragments."""
        return 2 * self.pool_fragments > self.fragments


class FetchedChain(NamedTuple):
    """The longest prefix of a chain that could be had, and why it ends before the chain does."""

    blocks: list[FetchedBlock]
    ended_by: Exception | None
