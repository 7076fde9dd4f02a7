"""Messages of the simulated network: requests, replies and puts for parts of blocks.

A block moves as its probe (fragment 0, part 0) and its body in one or more parts, as in the protocol. Classes
of which there is an object for each block or message are no dataclasses, as Python would run a compiled
dataclass's constructor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from hostlib.protocol.wire import fingerprint
from simulator.lane import Item

PROBE: Final = 0
QUESTION: Final = -1
"""Value in place of a part for a STAT, which asks whether the block is there."""
NOWHERE: Final = 0
ON_SSD: Final = 1
IN_DRAM: Final = 2


class Block:
    """Block, of which there is one object for each key."""

    __slots__ = (
        "above",
        "at_home",
        "claim",
        "depth",
        "dram_turns",
        "fragments",
        "home",
        "key",
        "parts",
        "ssd_turns",
    )

    def __init__(self, key: bytes, depth: int, above: bytes, home: str, parts: tuple[int, ...]) -> None:
        self.key = key
        self.claim = key
        """Name by which requests are merged: those for the same block and home."""
        self.depth = depth
        self.above = above
        """Key of the parent; meaningless for a first block."""
        self.home = home
        """Vertex of the storage node that is its home."""
        self.parts = parts
        """Number of fragments of each part: the probe, then the body's."""
        self.fragments = sum(parts)
        """Number of fragments of all parts."""
        self.at_home = NOWHERE
        """Place where its home has it, for everyone to read. Only the storage node changes this and the
        turns."""
        self.dram_turns = self.ssd_turns = 0
        """Numbers of its turns in the storage node's queues for leaving DRAM and SSD."""

    @property
    def parent(self) -> int:
        """Return the first 32 bits of the parent's key, 0 for none."""
        return fingerprint(self.above) if self.depth else 0


class Ask(Item):
    """GET for one part of a block, or STAT of the block.

    With `fill`, nothing serves or merges it: it is a GET on behalf of the switch `asker`, or a STAT.
    """

    __slots__ = ("asker", "block", "chain_blocks", "fill", "part", "subscribes")

    def __init__(
        self,
        block: Block,
        part: int,
        fragments: int,
        asker: str,
        chain_blocks: int,
        fill: bool = False,
        subscribes: bool = False,
    ) -> None:
        """Make a request; with `subscribes`, `asker` wants the rest of the prefix pushed."""
        self.fragments = fragments
        self.block = block
        self.part = part
        self.asker = asker
        self.chain_blocks = chain_blocks
        self.fill = fill
        self.subscribes = subscribes


class Reply:
    """VALUE (found) or NOT_FOUND for one part."""

    __slots__ = ("ask", "backlog_ms", "copy", "found", "from_pool", "group", "merged")

    def __init__(self, ask: Ask, found: bool, backlog_ms: float = 0.0, from_pool: bool = False) -> None:
        self.ask = ask
        self.found = found
        self.backlog_ms = backlog_ms
        """Milliseconds of work that wait at the home; meaningless in a value from a pool."""
        self.from_pool = from_pool
        self.merged = False
        self.copy = False
        """Whether it goes to those who wait for it, not towards the request's sender."""
        self.group = 0
        """Multicast group to which it is pushed without a request; 0 for a reply to a request."""

    def copied(self) -> Reply:
        """Return the same reply for another one who waits for it."""
        if self.copy:
            return self
        reply = Reply(self.ask, self.found, self.backlog_ms, self.from_pool)
        reply.merged, reply.copy = self.merged, True
        return reply


class Told(Reply):
    """FOUND or NOT_FOUND in answer to a STAT, without a value."""

    __slots__ = ("held",)

    def __init__(self, ask: Ask, held: bool, backlog_ms: float = 0.0, from_pool: bool = False) -> None:
        super().__init__(ask, False, backlog_ms, from_pool)
        self.held = held


class Put(Item):
    """Block on its way to its home. With `reclaim` it is a part from the switch `sender`."""

    __slots__ = ("block", "created", "fragment", "held", "reclaim", "sender", "sequence")

    def __init__(
        self,
        block: Block,
        fragments: int,
        sender: str,
        fragment: int = 0,
        reclaim: bool = False,
        sequence: int = 0,
    ) -> None:
        self.fragments = fragments
        self.block = block
        self.sender = sender
        self.fragment = fragment
        self.reclaim = reclaim
        self.sequence = sequence
        self.held = False
        """Whether the acknowledgement says that the home now holds the whole block."""
        self.created = False
        """Whether the acknowledgement says that the home did not hold it before."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes of messages on the wire, and how a block is cut."""

    block_bytes: float
    fragments: int
    segments: int
    header_share: float
    request_share: float

    @property
    def value_bytes(self) -> float:
        """Return the bytes of a fragment with its headers."""
        return self.block_bytes / self.fragments * (1 + self.header_share)

    @property
    def request_bytes(self) -> float:
        """Return the bytes of a request, an acknowledgement, or a NOT_FOUND, for one fragment."""
        return self.block_bytes / self.fragments * self.request_share

    @property
    def parts(self) -> tuple[int, ...]:
        """Return the numbers of fragments of a block's parts: the probe, then the body's segments."""
        body = self.fragments - 1
        count = min(self.segments, body)
        return (1, *(body * (n + 1) // count - body * n // count for n in range(count)))


def fragments_of(asks: Sequence[Ask]) -> int:
    """Return how many fragments these requests ask for."""
    if len(asks) == 1:
        return asks[0].fragments
    fragments = 0  # a loop: for bursts of one or two requests a generator costs more
    for ask in asks:
        fragments += ask.fragments
    return fragments


def replies_bytes(replies: Sequence[Reply], value_bytes: float, request_bytes: float) -> float:
    """Return the bytes of replies on the wire."""
    if len(replies) == 1:
        return replies[0].ask.fragments * (value_bytes if replies[0].found else request_bytes)
    size_bytes = 0.0
    for reply in replies:
        size_bytes += reply.ask.fragments * (value_bytes if reply.found else request_bytes)
    return size_bytes
