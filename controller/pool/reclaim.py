"""Reclaim: blocks on their way out of the pool, each fragment sent to a storage node and acknowledged.

The first fragment asks whether the node holds the block already: if so, its acknowledgement says HELD and
that was all. Otherwise the rest follows, until an acknowledgement says HELD. A block stays in the index, and
is served, until then; only then are its slots free. Fragments without an acknowledgement are asked for
again, a few times, then the block is given up. Blocks and fragments in flight are bounded.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING, NamedTuple

from controller.operations import Reclaim
from hostlib.protocol import wire

if TYPE_CHECKING:
    from collections.abc import Iterator
    from ipaddress import IPv4Address

    from controller.operations import Answer


class End(Enum):
    """Outcome of a transfer."""

    SENT = auto()
    """The storage node did not hold the block, and has all of it now."""
    HELD = auto()
    """The storage node held the block already."""
    NOT_WHOLE = auto()
    """The switch never got all of the block, so there is nothing to save."""
    FAILED = auto()
    """The storage node did not answer, or did not keep it."""


class Finished(NamedTuple):
    """A block whose slots may be freed."""

    key: bytes
    end: End


class _Attempt(NamedTuple):
    deadline_s: float
    tries: int


@dataclass(slots=True)
class _Transfer:
    fragments: int
    store: IPv4Address
    sequence: int
    allowed: int = 1
    """Fragments that may be asked for; all of them once the first was acknowledged."""
    next_fragment: int = 0
    waiting: dict[int, _Attempt] = field(default_factory=dict)

    def request(self, key: bytes, fragment: int) -> Reclaim:
        return Reclaim(key, fragment, self.fragments, self.store, self.sequence)


class Reclaims:
    """The transfers of one switch."""

    def __init__(self, max_blocks: int, max_fragments: int, timeout_s: float, tries: int) -> None:
        self._max_blocks, self._max_fragments = max_blocks, max_fragments
        self._timeout_s, self._tries = timeout_s, tries
        self._transfers: dict[bytes, _Transfer] = {}

    def __contains__(self, key: object) -> bool:
        return key in self._transfers

    def __len__(self) -> int:
        return len(self._transfers)

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._transfers)

    @property
    def fragments_in_flight(self) -> int:
        """Fragments that were asked for and not acknowledged yet."""
        return sum(len(transfer.waiting) for transfer in self._transfers.values())

    @property
    def due_s(self) -> float:
        """Return when `poll` has something to send or gives up a block, if nothing is answered before."""
        if not self._transfers:
            return float("inf")
        waiting = [attempt.deadline_s for one in self._transfers.values() for attempt in one.waiting.values()]
        if len(waiting) < self._max_fragments and any(
            one.next_fragment < one.allowed for one in self._transfers.values()
        ):
            return float("-inf")
        return min(waiting, default=float("inf"))

    def start(self, key: bytes, fragments: int, store: IPv4Address, now_s: float) -> bool:
        """Begin with a block; False if there are too many already."""
        if key in self._transfers or len(self._transfers) >= self._max_blocks:
            return False
        self._transfers[key] = _Transfer(fragments, store, wire.numbered_from(now_s))
        return True

    def cancel(self, key: bytes) -> None:
        """Cancel the transfer of a block that stays after all."""
        self._transfers.pop(key, None)

    def clear(self) -> None:
        """Forget all transfers; what is on its way is not waited for."""
        self._transfers.clear()

    def poll(self, now_s: float) -> tuple[list[Reclaim], list[Finished]]:
        """Return what to send now, and the blocks that were given up."""
        if not self._transfers:
            return [], []
        requests: list[Reclaim] = []
        given_up = []
        for key, transfer in list(self._transfers.items()):
            if self._repeat(key, transfer, now_s, requests):
                continue
            del self._transfers[key]
            given_up.append(Finished(key, End.FAILED))
        room = self._max_fragments - self.fragments_in_flight
        for key, transfer in self._transfers.items():
            while room > 0 and transfer.next_fragment < transfer.allowed:
                requests.append(transfer.request(key, transfer.next_fragment))
                transfer.waiting[transfer.next_fragment] = _Attempt(now_s + self._timeout_s, 1)
                transfer.next_fragment += 1
                room -= 1
        return requests, given_up

    def answered(self, answer: Answer) -> Finished | None:
        """Take an acknowledgement or a refusal; the block that it finishes."""
        message = answer.message
        key = answer.block
        transfer = self._transfers.get(key)
        if transfer is None or message.sequence != transfer.sequence:
            return None
        if message.op == wire.OP_NOT_FOUND:
            return self._end(key, End.NOT_WHOLE)
        if message.op != wire.OP_PUT_ACK or answer.source != transfer.store:
            return None
        if message.flags & wire.FLAG_HELD:
            # With one fragment there is no telling: it counts as sent.
            return self._end(key, End.HELD if transfer.allowed < transfer.fragments else End.SENT)
        if transfer.waiting.pop(message.fragment, None) is None:
            return None
        transfer.allowed = transfer.fragments
        if transfer.waiting or transfer.next_fragment < transfer.fragments:
            return None
        # It has taken every fragment, and given up some of them for other blocks.
        return self._end(key, End.FAILED)

    def _end(self, key: bytes, end: End) -> Finished:
        del self._transfers[key]
        return Finished(key, end)

    def _repeat(self, key: bytes, transfer: _Transfer, now_s: float, requests: list[Reclaim]) -> bool:
        """Ask again for fragments that are overdue; False when one was asked for too often."""
        for fragment, attempt in transfer.waiting.items():
            if attempt.deadline_s > now_s:
                continue
            if attempt.tries >= self._tries:
                return False
            requests.append(transfer.request(key, fragment))
            # Twice as long each time: a home with a backlog is not helped by more of the same.
            wait_s = self._timeout_s * 2**attempt.tries
            transfer.waiting[fragment] = _Attempt(now_s + wait_s, attempt.tries + 1)
        return True
