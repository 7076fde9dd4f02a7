"""What the controller remembers of blocks that it heard of: a bounded memory, the oldest forgotten first."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple

from hostlib.wire import fingerprint

if TYPE_CHECKING:
    from ipaddress import IPv4Address

    from controller.operations import HotMiss


class Known(NamedTuple):
    """The last report of one block."""

    misses: int
    home: IPv4Address
    fragments: int
    depth: int


class KnownBlocks:
    """Reports by key, and keys by fingerprint."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._blocks: OrderedDict[bytes, Known] = OrderedDict()
        self._by_fingerprint: dict[int, bytes] = {}

    def __len__(self) -> int:
        return len(self._blocks)

    def get(self, key: bytes) -> Known | None:
        """The last report of a block."""
        return self._blocks.get(key)

    def report(self, miss: HotMiss) -> int:
        """Remember a report; the replies since the one before it (counts are halved now and then)."""
        before = self._blocks.pop(miss.key, None)
        self._blocks[miss.key] = Known(miss.count, miss.home, miss.fragments, miss.depth)
        self._by_fingerprint[fingerprint(miss.key)] = miss.key
        if len(self._blocks) > self._limit:
            self._forget_oldest()
        seen = before.misses if before else 0
        return miss.count - seen if miss.count > seen else 1

    def key_of(self, parent: int) -> bytes | None:
        """The block with a fingerprint (0: none); where two share one, the last reported."""
        return self._by_fingerprint.get(parent) if parent else None

    def _forget_oldest(self) -> None:
        key, _ = self._blocks.popitem(last=False)
        if self._by_fingerprint.get(fingerprint(key)) == key:
            del self._by_fingerprint[fingerprint(key)]
