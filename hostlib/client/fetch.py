"""One block on its way in, put together from fragments that are asked for one by one
(`hostlib.client.fetches`)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from hostlib.native.lane import POOL, Request
from hostlib.protocol import wire
from hostlib.protocol.transfer import BlockRef, FetchedBlock, FetchTimes

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Sequence

    from hostlib.native import Core

MAX_HINT_MS = 0xFFFF
_NOTHING = memoryview(b"")
TRIES_BEFORE_BYPASS = 3
"""Tries after which a fragment is asked for past the pool and the pending table, which may be what is wrong.
"""


class Keeper(Protocol):
    """Interface of the keeper of all fetches that a fetch uses."""

    tenant: int
    core: Core

    @property
    def epoch(self) -> int:
        """Return the epoch of the list of members, as messages carry it."""

    def longest_s(self, fragments: int, /) -> float:
        """Return the seconds that a block of so many fragments may take."""

    def ask_at_home(self, fetch: Fetch, old: Request[Fetch]) -> None:
        """Ask for the same fragment at the home instead of the pool."""

    def fail_over(self, fetch: Fetch) -> None:
        """Go on with the next home: the one asked is silent or busy."""

    def go_on(self, fetch: Fetch) -> None:
        """Leave the home asked for the next."""

    def homes_of(self, block: BlockRef) -> tuple[list[str], bool]:
        """Return the homes to ask for a block by now, and whether one that may hold it is left out."""

    def time_out(self, fetch: Fetch, why: str) -> None:
        """End a fetch that no home gave in time."""


@dataclass(slots=True, eq=False)
class Fetch:
    """One block on its way in."""

    fetches: Keeper
    block: BlockRef
    homes: list[str]
    """Homes that may hold the block; the first is the one asked now."""
    silent_home: bool
    """Whether a home that may hold it did not answer."""
    wanted_s: float
    target: memoryview | None
    """The caller's buffer, which it is put together in as long as nobody else waits for it."""
    future: asyncio.Future[FetchedBlock]
    flags: int = 0
    """Flags that every request carries."""
    requests: list[Request[Fetch]] = field(default_factory=list)
    template: wire.Variants | None = None
    """Template of the GETs of one write; None before one is sent, and where they are encoded in runs."""
    asked_epoch: int = -1
    """Epoch of the list of members when GETs of this write were first sent in a run; -1 before."""
    buffer: memoryview = _NOTHING
    content: int = 0
    """Content id of the write; 0 before it is known."""
    fragments: int = 0
    length: int = 0
    missing: int = 1
    waiters: int = 0
    probe_from_pool: bool = False
    restarts: int = 0
    certain: bool = False
    """Whether the reader asks again where a home told only another node that there is no such block: it may
    have been put since."""
    doubtful: bool = False
    """Whether one of the homes may have said that there is no such block before somebody wanted it who waits
    for it now."""
    busy: set[str] = field(default_factory=set)
    """Homes that said that they can't answer now."""
    listed: int = 0
    """The epoch of the list of members by which its homes were chosen."""
    asks_everyone: bool = False
    """Whether all storage nodes are asked, as one of them goes by another list than this node."""
    started_s: float | None = None
    """Time at which the first request left."""
    first_sequence: int = 0
    """Sequence number of the first request, or one that no request has whose answer would be too old."""
    probed_s: float = 0.0
    """Time at which length and write were known."""
    waits_until_s: float | None = None
    """Time until which it waits for any of its homes, if all fell silent; None if they never did."""
    fetched: FetchedBlock | None = None
    """The block, once it is complete."""
    corrupt: int = 0
    pool_fragments: int = 0
    merged_fragments: int = 0
    watchers: list[Callable[[Fetch], None]] = field(default_factory=list)
    """Called once it has ended, for who waits for many: at once with what arrived, else in the loop's next
    turn."""

    @property
    def until_s(self) -> float:
        """Return when it has taken as long as it may."""
        return self.wanted_s + self.fetches.longest_s(self.fragments)

    def datagrams(self, requests: Sequence[Request[Fetch]], sequence: int, now_s: float) -> list[bytes]:
        """Return the GETs of fragments."""
        if self.started_s is None:
            self.started_s, self.first_sequence = now_s, sequence
        if self.template is None:
            self.template = wire.Variants(self._encode(requests[0].fragment))
        return [
            self.template.encode(
                self.flags | request.flags | (wire.FLAG_RETRY if request.tries else 0),
                sequence + number & 0xFFFFFFFF,
                request.fragment,
            )
            for number, request in enumerate(requests)
        ]

    def _encode(self, fragment: int) -> bytes:
        block = self.block
        return wire.encode(
            wire.Message(
                wire.OP_GET, block.key, fragment, self.fragments, depth=block.depth,
                chain_blocks=block.chain_blocks, parent=block.parent,
                recompute_ms=min(block.recompute_ms, MAX_HINT_MS), tenant=self.fetches.tenant,
                content=self.content, epoch=self.fetches.epoch,
            )
        )  # fmt: skip

    def learn(self, fragments: int, content: int, flags: int, now_s: float) -> bool:
        """Take what the probe says of the block; return whether it fits where it is to go."""
        self.probed_s = now_s
        self.content, self.fragments = content, fragments
        if self.template is not None:
            self.template = self.template.of_write(fragments, content, self.fetches.epoch)
        if self.asked_epoch >= 0:
            self.asked_epoch = self.fetches.epoch
        self.missing = fragments
        self.probe_from_pool = bool(flags & wire.FLAG_FROM_POOL)
        self.requests += self.fetches.core.new_requests(self, 1, fragments)
        if self.target is None:
            self.buffer = memoryview(bytearray(fragments * wire.VALUE_BYTES))
        else:
            self.buffer = self.target
        return (fragments - 1) * wire.VALUE_BYTES < len(self.buffer)

    def share(self) -> None:
        """Leave the caller's buffer, which may go, or change: another reader waits for the block, too."""
        if self.target is None:
            return
        self.target = None
        if self.content:
            arrived = self.buffer[: self.fragments * wire.VALUE_BYTES]
            self.buffer = memoryview(bytearray(self.fragments * wire.VALUE_BYTES))
            self.buffer[: len(arrived)] = arrived

    def place(self, fragment: int, value: wire.Buffer) -> bool:
        """Put a fragment where it belongs, if it fits; return whether it did."""
        at = fragment * wire.VALUE_BYTES
        end = at + len(value)
        if end > len(self.buffer):
            return False
        self.buffer[at:end] = value
        self.missing -= 1
        if fragment + 1 == self.fragments:
            self.length = end
        return True

    def retried(self, request: Request[Fetch]) -> None:
        """Ask the home for what the pool did not answer."""
        if request.tries >= TRIES_BEFORE_BYPASS:
            request.flags |= wire.FLAG_BYPASS
        if request.lane is not None and request.lane.home == POOL:
            self.fetches.ask_at_home(self, request)

    def gave_up(self, request: Request[Fetch]) -> None:
        """Ask the next replica, if there is one: no answer came before the deadline."""
        if request.fragment >= len(self.requests) or self.requests[request.fragment] is not request:
            return  # another of them was given up before
        if len(self.homes) > 1:
            request.done = False  # it is still missing
            self.fetches.fail_over(self)
        else:
            self.fetches.time_out(self, "no answer in time")

    def overdue(self) -> None:
        """End the fetch, which has taken as long as it may."""
        self.fetches.time_out(self, f"{self.missing} fragments did not come in time")

    def silent(self, home: str) -> None:
        """Go on with the next replica if it is the one asked."""
        if home == self.homes[0]:
            self.fetches.fail_over(self)
        elif home in self.homes:
            self.homes.remove(home)
            self.silent_home = True

    def fallen(self, home: str) -> None:
        """Go on as a read by the new list would, if the home asked is down by that list and there is another
        one.

        Such a home may live and yet give nothing.
        """
        if home != self.homes[0]:
            return
        homes, silent = self.fetches.homes_of(self.block)
        if any(other != home for other in homes):
            self.silent_home = silent
            self.homes = [home, *sorted(homes, key=home.__eq__)]
            self.fetches.go_on(self)

    def times(self, now_s: float) -> FetchTimes:
        """Return the times of a block that is complete now. A block that came without being asked for was not
        waited for."""
        probe_sent_s = self.started_s if self.started_s is not None else now_s
        body_sent_s = self.requests[1].first_sent_s if self.fragments > 1 else 0.0
        return FetchTimes(
            self.wanted_s,
            probe_sent_s,
            self.probed_s,
            max(self.probed_s, body_sent_s),
            now_s,
            self.homes[0],
        )
