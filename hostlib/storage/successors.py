"""Order of blocks in the chains that a storage node is asked for.

A node asks for a chain's blocks, and stores them, in their order; some of them are at one home. So the next
block from the same sender that lies deeper in a chain of the same length follows the one before it, unless it
names another parent. A wrong guess costs a read for nothing. The memory is bounded.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import NamedTuple

from hostlib.protocol.wire import fingerprint

MAX_BLOCKS = 200_000
MAX_SENDERS = 1024


class _Place(NamedTuple):
    """Place of a block in its chain."""

    key: bytes
    depth: int
    chain_blocks: int
    parent: int

    def follows(self, before: _Place) -> bool:
        """Return whether it may be the next block of the same chain at this home."""
        if self.chain_blocks != before.chain_blocks or self.depth <= before.depth:
            return False
        return self.depth > before.depth + 1 or self.parent == fingerprint(before.key)


class Successors:
    """See the module; the newest successor of a block counts."""

    def __init__(self, max_blocks: int = MAX_BLOCKS) -> None:
        self._max_blocks = max_blocks
        self._next: OrderedDict[bytes, bytes] = OrderedDict()
        self._last: OrderedDict[str, _Place] = OrderedDict()
        """By sender."""

    def seen(self, sender: str, key: bytes, depth: int, chain_blocks: int, parent: int) -> None:
        """Take note of a GET or PUT of a block's first fragment."""
        before = self._last.get(sender)
        place = self._last[sender] = _Place(key, depth, chain_blocks, parent)
        self._last.move_to_end(sender)
        if len(self._last) > MAX_SENDERS:
            self._last.popitem(last=False)
        if before is not None and place.follows(before):
            self._link(before.key, place.key)

    def learn(self, keys: Iterable[bytes]) -> None:
        """Learn blocks that are there from the start, chain by chain."""
        before = None
        for key in keys:
            if before is not None:
                self._link(before, key)
            before = key

    def rest(self, key: bytes, limit: int) -> list[bytes]:
        """Return at most `limit` blocks that follow, nearest first."""
        found: dict[bytes, None] = {}
        while len(found) < limit:
            following = self._next.get(key)
            if following is None or following in found:
                break
            found[following] = None
            key = following
        return list(found)

    def _link(self, key: bytes, following: bytes) -> None:
        self._next[key] = following
        self._next.move_to_end(key)
        if len(self._next) > self._max_blocks:
            self._next.popitem(last=False)
