"""An index of who holds which block in its own memory, as nodes that lend theirs have it.

A block is noted when a node says so, and who no longer holds it is dropped when it is looked up.
"""

from __future__ import annotations

from collections.abc import Iterable

from hostlib.model.tiers import LocalTiers
from hostlib.protocol.wire import fingerprint
from simulator.messages import Block


class Holders:
    """Nodes by number, in the order in which they joined."""

    def __init__(self) -> None:
        self._tiers: list[LocalTiers[Block]] = []
        self._noted: dict[Block, dict[int, None]] = {}

    def join(self, tiers: LocalTiers[Block]) -> int:
        """Add a further node with these tiers; return its number."""
        self._tiers.append(tiers)
        return len(self._tiers) - 1

    def spread(self, blocks: Iterable[Block], nodes: int) -> None:
        """Into the DRAM of the first so many nodes, the most recently used last."""
        for block in blocks:
            node = fingerprint(block.key) % nodes
            self._tiers[node].place(block)
            self.note(node, block)

    def note(self, node: int, block: Block) -> None:
        """Note that a node holds a block."""
        if block in self._tiers[node]:
            self._noted.setdefault(block, {})[node] = None

    def of(self, block: Block) -> list[int]:
        """Nodes that hold a block now."""
        noted = self._noted.get(block)
        if noted is None:
            return []
        for node in [node for node in noted if block not in self._tiers[node]]:
            del noted[node]
        if not noted:
            del self._noted[block]
        return list(noted)
