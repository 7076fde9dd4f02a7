"""One block on its way: a GET being assembled, or a PUT being acknowledged. Pure bookkeeping."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hostlib.lane import Lane, Request
from hostlib.wire import (
    FLAG_FROM_POOL,
    FLAG_MERGED,
    FLAG_RETRY,
    OP_GET,
    OP_PUT,
    VALUE_BYTES,
    Message,
    fingerprint,
    fragment_count,
)

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Sequence


@dataclass(frozen=True, slots=True)
class BlockRef:
    """A block as its requester knows it: the key and its place in the chain."""

    key: bytes
    depth: int = 0
    chain_blocks: int = 1
    parent: int = 0
    """First 32 bits of the parent's key, 0 for none."""
    recompute_ms: int = 0
    """What recomputing the block costs; tells the pool what the block is worth."""


def chain_references(
    keys: Sequence[bytes], recompute_ms: Callable[[int], int] = lambda depth: 0
) -> list[BlockRef]:
    """The blocks of a chain with their places in it; `recompute_ms` of the block at a depth."""
    parents = [0, *map(fingerprint, keys[:-1])]
    return [
        BlockRef(key, depth, len(keys), parent, recompute_ms(depth))
        for depth, (key, parent) in enumerate(zip(keys, parents, strict=False))
    ]


@dataclass(frozen=True, slots=True)
class FetchedBlock:
    """A block that arrived and passed its check."""

    key: bytes
    content: bytes
    fragments: int
    pool_fragments: int
    """Fragments that a switch served."""
    merged_fragments: int
    """Fragments that came as a copy of another node's reply."""
    elapsed_s: float
    """From the first request on the wire to the checked block."""

    @property
    def from_pool(self) -> bool:
        """A block counts as served by the pool if more than half of its fragments were."""
        return 2 * self.pool_fragments > self.fragments


@dataclass(slots=True, eq=False)
class Put:
    """A block offered to its home; `future` is done when all its fragments are acknowledged."""

    block: BlockRef
    lane: Lane[Get | Put]
    content: bytes
    future: asyncio.Future[None]
    requests: list[Request[Get | Put]] = field(default_factory=list)
    missing: int = 0

    def __post_init__(self) -> None:
        self.missing = fragment_count(len(self.content))
        self.requests = [Request(self, index) for index in range(self.missing)]

    def message(self, request: Request[Get | Put], sequence: int) -> Message:
        """The PUT of one fragment."""
        at = request.fragment * VALUE_BYTES
        value = self.content[at : at + VALUE_BYTES]
        return _message(OP_PUT, self.block, request.fragment, len(self.requests), 0, sequence, 0, value)


@dataclass(slots=True, eq=False)
class Get:
    """A block being assembled. Fragment 0 is its probe: the rest is asked for when that is answered."""

    block: BlockRef
    lane: Lane[Get | Put]
    block_bytes: int
    future: asyncio.Future[FetchedBlock]
    requests: list[Request[Get | Put]] = field(default_factory=list)
    buffer: bytearray = field(default_factory=bytearray)
    missing: int = 0
    waiters: int = 0
    body_asked: bool = False
    started_s: float = 0.0
    """When the first request left; 0 before that."""
    corrupt: int = 0
    pool_fragments: int = 0
    merged_fragments: int = 0

    def __post_init__(self) -> None:
        self.restart()

    def restart(self, flags: int = 0) -> None:
        """Forget what has arrived and start from the probe; all requests carry `flags`."""
        for request in self.requests:
            self.lane.drop(request)
        self.missing = fragment_count(self.block_bytes)
        self.requests = [Request(self, index, flags) for index in range(self.missing)]
        self.buffer = bytearray(self.block_bytes)
        self.pool_fragments = self.merged_fragments = 0
        self.body_asked = False

    def message(self, request: Request[Get | Put], sequence: int) -> Message:
        """The GET of one fragment."""
        flags = request.flags | (FLAG_RETRY if request.tries else 0)
        hint_ms = min(self.block.recompute_ms, 0xFFFF)
        return _message(OP_GET, self.block, request.fragment, len(self.requests), flags, sequence, hint_ms)

    def fits(self, message: Message) -> bool:
        """Whether a value has the length of the fragment that it claims to be."""
        at = message.fragment * VALUE_BYTES
        expected_bytes = min(VALUE_BYTES, self.block_bytes - at)
        return message.fragments == len(self.requests) and len(message.value) == expected_bytes

    def store(self, message: Message) -> None:
        """Put a fragment in its place."""
        at = message.fragment * VALUE_BYTES
        self.buffer[at : at + len(message.value)] = message.value
        self.missing -= 1
        self.pool_fragments += bool(message.flags & FLAG_FROM_POOL)
        self.merged_fragments += bool(message.flags & FLAG_MERGED)

    def result(self, now_s: float) -> FetchedBlock:
        """The assembled block."""
        return FetchedBlock(
            self.block.key,
            bytes(self.buffer),
            len(self.requests),
            self.pool_fragments,
            self.merged_fragments,
            now_s - self.started_s,
        )


def _message(
    op: int,
    block: BlockRef,
    fragment: int,
    fragments: int,
    flags: int,
    sequence: int,
    hint_ms: int,
    value: bytes = b"",
) -> Message:
    return Message(
        op,
        block.key,
        fragment,
        fragments,
        flags,
        sequence=sequence,
        depth=block.depth,
        chain_blocks=block.chain_blocks,
        parent=block.parent,
        hint_ms=hint_ms,
        value=value,
    )
