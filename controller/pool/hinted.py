"""Hints at a pool (hostlib/protocol/hints.py): it retains blocks for a time, or lets them go.

Half of the pool's slots can be retained, and half of those by one tenant, so hints leave room for what the
policy chooses. Each node is heard at a bounded rate; a node that is not heard gets no answer, and asks again.
"""

from __future__ import annotations

import heapq
from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from controller.block_id import tenant_of
from controller.operations import HintAnswer
from controller.policies import Demoted, Event, Pin, Policy, Unpin
from controller.pool.fair_pace import FairPace
from hostlib.protocol import wire
from hostlib.protocol.hints import Hint

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from controller.costs import PoolCounts
    from controller.operations import Answer

RETAINED_SHARE: Final = 2
"""One of so many of the pool's slots can be retained; of those one of so many by one tenant."""


class _Retained(NamedTuple):
    fragments: int
    end_s: float


class RetainedBlocks:
    """Blocks that have to stay until a time; it is forgotten when the controller ends."""

    def __init__(self, slots: int) -> None:
        self._most = slots // RETAINED_SHARE
        self._blocks: dict[bytes, _Retained] = {}
        self._slots: Counter[int] = Counter()
        """By tenant."""
        self._ends: list[tuple[float, bytes]] = []
        """A heap of when blocks may leave again; some entries are of blocks that did, or stay longer."""

    def __contains__(self, block: bytes) -> bool:
        return block in self._blocks

    def __iter__(self) -> Iterator[bytes]:
        return iter(list(self._blocks))

    @property
    def due_s(self) -> float:
        """Return when the next block may leave, or a little before."""
        return self._ends[0][0] if self._ends else float("inf")

    def retain(self, block: bytes, fragments: int, end_s: float) -> bool:
        """Retain a block until a time, whatever was said before; False if too much is retained."""
        self.release(block)
        tenant = tenant_of(block)
        own, all_slots = self._slots[tenant] + fragments, self._slots.total() + fragments
        if all_slots > self._most or own > self._most // RETAINED_SHARE:
            return False
        self._blocks[block] = _Retained(fragments, end_s)
        self._slots[tenant] += fragments
        heapq.heappush(self._ends, (end_s, block))
        if len(self._ends) > 2 * len(self._blocks) + 64:
            self._ends = sorted((one.end_s, key) for key, one in self._blocks.items())
        return True

    def release(self, block: bytes) -> bool:
        """Let a block leave; return whether it was retained."""
        retained = self._blocks.pop(block, None)
        if retained is None:
            return False
        tenant = tenant_of(block)
        self._slots[tenant] -= retained.fragments
        if not self._slots[tenant]:
            del self._slots[tenant]
        return True

    def expired(self, now_s: float) -> list[bytes]:
        """Release the blocks whose time is over, and return them."""
        over: list[bytes] = []
        while self._ends and self._ends[0][0] <= now_s:
            _, block = heapq.heappop(self._ends)
            retained = self._blocks.get(block)
            if retained is not None and retained.end_s <= now_s:
                self.release(block)
                over.append(block)
        return over


class Hinting(Protocol):
    """The pool, as hints change it."""

    policy: Policy
    counts: PoolCounts

    def tell(self, event: Event) -> None:
        """Tell the policy of an event."""


class PoolHints:
    """Takes hints, and keeps what was promised."""

    def __init__(self, slots: int, most_per_s: int, pool: Hinting) -> None:
        self._pool = pool
        self._retained = RetainedBlocks(slots)
        self._pace = FairPace(most_per_s)
        self._answers: list[HintAnswer] = []

    @property
    def due_s(self) -> float:
        """Return when `poll` has something to do."""
        return float("-inf") if self._answers else self._retained.due_s

    def take(self, answer: Answer, fragments: int, now_s: float) -> None:
        """Do what a node hints at; `fragments` is the length of a resident block, 0 of any other."""
        message = answer.message
        if not message.flags & wire.FLAG_HINT or not self._pace.heard(answer.source, 1, now_s):
            return
        block, hint, seconds = answer.block, message.backlog_ms, message.recompute_ms
        is_done = False
        if hint == Hint.RETAIN and seconds:
            is_done = self._retain(block, fragments, now_s + seconds, now_s)
        elif hint == Hint.RETAIN:
            is_done = self.release(block, now_s)
        elif hint == Hint.DEMOTE:
            is_done = self._demote(block, now_s)
        self._pool.counts.hints += 1
        self._pool.counts.hints_done += is_done
        self._answers.append(HintAnswer(block, hint, is_done, answer.source, message.sequence))

    def poll(self, now_s: float) -> list[HintAnswer]:
        """Return the answers to send, and let blocks leave whose time is over."""
        for block in self._retained.expired(now_s):
            self._pool.tell(Unpin(block, now_s))
        answers, self._answers = self._answers, []
        return answers

    def release(self, block: bytes, now_s: float) -> bool:
        """Let a block leave, or take note that it left; return whether it was retained."""
        is_released = self._retained.release(block)
        if is_released:
            self._pool.tell(Unpin(block, now_s))
        return is_released

    def only(self, resident: Container[bytes], now_s: float) -> None:
        """Retain nothing but what is resident."""
        for block in self._retained:
            if block not in resident:
                self.release(block, now_s)

    def _retain(self, block: bytes, fragments: int, end_s: float, now_s: float) -> bool:
        if not fragments or block not in self._pool.policy:
            return False
        if self._retained.retain(block, fragments, end_s):
            self._pool.tell(Pin(block, now_s))
            return True
        self._pool.tell(Unpin(block, now_s))
        return False

    def _demote(self, block: bytes, now_s: float) -> bool:
        self.release(block, now_s)
        was_held = block in self._pool.policy
        self._pool.tell(Demoted(block, now_s))
        return was_held and block not in self._pool.policy
