"""What travels in the simulated network: requests, replies and puts for parts of blocks.

A block moves as its probe (fragment 0, part 0) and its body in one or more parts, as the protocol asks.
What is made for each block or message is no dataclass: compiled, these would be made by Python.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address
from typing import Final

from hostlib.protocol.wire import fingerprint
from simulator.lane import Item

PROBE: Final = 0
QUESTION: Final = -1
"""In place of a part: whether the block is there, a STAT."""
NOWHERE: Final = 0
ON_SSD: Final = 1
IN_DRAM: Final = 2


class Block:
    """A block as everyone knows it; there is one object a key."""

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
        """What requests for it are merged by: those of one block and one home."""
        self.depth = depth
        self.above = above
        """The parent's key; of a first block not meant."""
        self.home = home
        """The storage node's vertex."""
        self.parts = parts
        """Fragments of each part: the probe, then the body's."""
        self.fragments = sum(parts)
        """Of all parts."""
        self.at_home = NOWHERE
        """Where the storage node has it, for everyone to read; this and its turns are the storage node's."""
        self.dram_turns = self.ssd_turns = 0
        """How often it stands in the queues of who leaves DRAM and SSD."""

    @property
    def parent(self) -> int:
        """First 32 bits of the parent's key, 0 for none."""
        return fingerprint(self.above) if self.depth else 0


class Ask(Item):
    """A GET for one part of a block; `fill`: on behalf of the switch `asker`. Or a STAT of the block, which
    has `fill`, too, as nothing serves or merges it."""

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
        """`subscribes`: who asks wants to have pushed what else there is of the prefix."""
        self.fragments = fragments
        self.block = block
        self.part = part
        self.asker = asker
        self.chain_blocks = chain_blocks
        self.fill = fill
        self.subscribes = subscribes


class Reply:
    """A VALUE (found) or a NOT_FOUND for one part."""

    __slots__ = ("ask", "backlog_ms", "copy", "found", "from_pool", "group", "merged")

    def __init__(self, ask: Ask, found: bool, backlog_ms: float = 0.0, from_pool: bool = False) -> None:
        self.ask = ask
        self.found = found
        self.backlog_ms = backlog_ms
        """What waits at the home; of a value from a pool nothing is said."""
        self.from_pool = from_pool
        self.merged = False
        self.copy = False
        """It goes to who waits for it, not towards who asked."""
        self.group = 0
        """Nobody asked for it: it is pushed to this multicast group."""

    def copied(self) -> Reply:
        """Return the same for someone else who waits for it."""
        if self.copy:
            return self
        reply = Reply(self.ask, self.found, self.backlog_ms, self.from_pool)
        reply.merged, reply.copy = self.merged, True
        return reply


class Told(Reply):
    """A FOUND, or a NOT_FOUND, to a STAT: no value is in it."""

    __slots__ = ("held",)

    def __init__(self, ask: Ask, held: bool, backlog_ms: float = 0.0, from_pool: bool = False) -> None:
        super().__init__(ask, False, backlog_ms, from_pool)
        self.held = held


class Put(Item):
    """A block on its way to its home; `reclaim`: from the switch `sender`, as `fragments` of it."""

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
        """In the acknowledgement: the home now holds the whole block."""
        self.created = False
        """Likewise: and did not hold it before this came."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """How large things are on the wire, and how a block is cut up."""

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
        """Fragments of each part: the probe, then the body's segments."""
        body = self.fragments - 1
        count = min(self.segments, body)
        return (1, *(body * (n + 1) // count - body * n // count for n in range(count)))


def fragments_of(asks: Sequence[Ask]) -> int:
    """Return how many fragments they ask for."""
    if len(asks) == 1:
        return asks[0].fragments
    fragments = 0  # a loop, because most bursts are one or two: a generator costs more than it adds up
    for ask in asks:
        fragments += ask.fragments
    return fragments


def replies_bytes(replies: Sequence[Reply], value_bytes: float, request_bytes: float) -> float:
    """Return the size on the wire in bytes."""
    if len(replies) == 1:
        return replies[0].ask.fragments * (value_bytes if replies[0].found else request_bytes)
    size_bytes = 0.0
    for reply in replies:
        size_bytes += reply.ask.fragments * (value_bytes if reply.found else request_bytes)
    return size_bytes


def address(index: int) -> IPv4Address:
    """Return an address for a storage node, for the controller."""
    return IPv4Address("10.0.0.0") + index
