"""Index of the nodes that hold a block in their own memory, for nodes that lend it.

A node's holding is noted when the node says so. A node that no longer holds a block is dropped when the block
is looked up.
"""

from __future__ import annotations

from collections.abc import Iterable

from hostlib.model.tiers import LocalTiers
from hostlib.protocol.wire import fingerprint
from simulator.messages import Block


class Holders:
    """Index of nodes, which have numbers in the order in which they joined."""

    def __init__(self) -> None:
        self._tiers: list[LocalTiers[Block]] = []
        self._noted: dict[Block, dict[int, None]] = {}

    def join(self, tiers: LocalTiers[Block]) -> int:
        """Add a node with these tiers; return its number."""
        self._tiers.append(tiers)
        return len(self._tiers) - 1

    def spread(self, blocks: Iterable[Block], nodes: int) -> None:
        """Spread blocks over the DRAM of the first `nodes` nodes; the most recently used block comes last."""
        for block in blocks:
            node = fingerprint(block.key) % nodes
            self._tiers[node].place(block)
            self.note(node, block)

    def note(self, node: int, block: Block) -> None:
        """Note that a node holds a block, if it does."""
        if block in self._tiers[node]:
            self._noted.setdefault(block, {})[node] = None

    def of(self, block: Block) -> list[int]:
        """Return the nodes that hold a block now."""
        noted = self._noted.get(block)
        if noted is None:
            return []
        for node in [node for node in noted if block not in self._tiers[node]]:
            del noted[node]
        if not noted:
            del self._noted[block]
        return list(noted)
