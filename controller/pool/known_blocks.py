"""Bounded memory of blocks that the controller heard of; the oldest are forgotten first."""

from __future__ import annotations

from collections import OrderedDict
from ipaddress import IPv4Address
from typing import NamedTuple

from controller.block_id import key_of, tenant_of
from controller.operations import HotMiss
from hostlib.protocol.wire import fingerprint


class Known(NamedTuple):
    """The last report of one block."""

    misses: int
    home: IPv4Address
    fragments: int
    depth: int
    is_expected: bool
    """Whether a node still computes the block, so that nobody has it yet."""


class KnownBlocks:
    """Reports by key, and keys by fingerprint."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._blocks: OrderedDict[bytes, Known] = OrderedDict()
        self._by_fingerprint: dict[tuple[int, int], bytes] = {}
        """By tenant and fingerprint: nobody is the parent of another tenant's block."""

    def __len__(self) -> int:
        return len(self._blocks)

    def get(self, key: bytes) -> Known | None:
        """Return the last report of a block."""
        return self._blocks.get(key)

    def report(self, miss: HotMiss) -> int:
        """Remember a report; return the replies since the one before it (counts are halved now and
        then)."""
        block = miss.block
        before = self._blocks.pop(block, None)
        if before is not None and miss.is_expected and not before.is_expected:
            self._blocks[block] = before  # somebody has it, and who said so knows better what it is
            return 1
        parts = miss.home, miss.fragments, miss.depth, miss.is_expected
        self._blocks[block] = Known(miss.count, *parts)
        self._by_fingerprint[_fingerprint(block)] = block
        if len(self._blocks) > self._limit:
            self._forget_oldest()
        seen = before.misses if before else 0
        return miss.count - seen if miss.count > seen else 1

    def fetched(self, key: bytes) -> None:
        """Note that a node got a block, so it is expected no longer."""
        known = self._blocks.get(key)
        if known is not None and known.is_expected:
            self._blocks[key] = known._replace(is_expected=False)

    def parent_of(self, miss: HotMiss) -> bytes | None:
        """Return the block that a reported one names as its parent: where two share a fingerprint, the last
        reported."""
        return self._by_fingerprint.get((miss.tenant, miss.parent)) if miss.parent else None

    def _forget_oldest(self) -> None:
        key, _ = self._blocks.popitem(last=False)
        if self._by_fingerprint.get(_fingerprint(key)) == key:
            del self._by_fingerprint[_fingerprint(key)]


def _fingerprint(block: bytes) -> tuple[int, int]:
    return tenant_of(block), fingerprint(key_of(block))
