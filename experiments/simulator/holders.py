"""An index of who holds which block in its own memory, as nodes that lend theirs have it.

A block is noted when a node says so, and who no longer holds it is dropped when it is looked up.
"""

from __future__ import annotations

from collections.abc import Iterable

from hostlib.tiers import LocalTiers


class Holders:
    """Nodes by number, in the order in which they joined."""

    def __init__(self) -> None:
        self._tiers: list[LocalTiers[bytes]] = []
        self._noted: dict[bytes, dict[int, None]] = {}

    def join(self, tiers: LocalTiers[bytes]) -> int:
        """A further node with these tiers; its number."""
        self._tiers.append(tiers)
        return len(self._tiers) - 1

    def spread(self, keys: Iterable[bytes], nodes: int) -> None:
        """Blocks into the DRAM of the first so many nodes, the most recently used last."""
        for key in keys:
            node = int.from_bytes(key[:4], "big") % nodes
            self._tiers[node].place(key)
            self.note(node, key)

    def note(self, node: int, key: bytes) -> None:
        """A node holds a block."""
        if key in self._tiers[node]:
            self._noted.setdefault(key, {})[node] = None

    def of(self, key: bytes) -> list[int]:
        """Nodes that hold a block now."""
        noted = self._noted.get(key)
        if noted is None:
            return []
        for node in [node for node in noted if key not in self._tiers[node]]:
            del noted[node]
        if not noted:
            del self._noted[key]
        return list(noted)
