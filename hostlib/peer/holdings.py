"""Blocks of nodes that lend one another their memory, and the time until what they have promised has left.

What a node is asked for takes its time on that node's link, one block after the other, whatever a switch then
merges or serves, as with a storage node's work (`hostlib.storage.committed_work`). The module does no I/O;
`hostlib.peer.index` serves it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from hostlib.protocol.errors import LineError

MAX_HELD_BLOCKS: Final = 1_000_000
"""Most blocks of one node that are known; of more, the others are not."""


class Located(NamedTuple):
    """Place of the longest prefix of what was asked for, and for how long each of its nodes is taken."""

    nodes: list[str]
    """Node to ask for each block."""
    waits_s: dict[str, float]
    """Seconds that each node is taken by what others were promised."""


@dataclass(slots=True)
class HoldingsStats:
    """Blocks, unless the name says otherwise."""

    questions: int = 0
    asked: int = 0
    located: int = 0
    promised: int = 0


class Holdings:
    """Blocks of nodes, by address. Times are those of `now_s`; a block takes `block_s` on a node's link."""

    def __init__(self, nodes: Iterable[str], block_s: float, now_s: Callable[[], float]) -> None:
        self.stats = HoldingsStats()
        self._block_s, self._now_s = block_s, now_s
        self._free_s = dict.fromkeys(nodes, 0.0)
        """When all that a node has promised will have left."""
        self._held: dict[str, set[bytes]] = {node: set() for node in self._free_s}
        self._holders: dict[bytes, dict[str, None]] = {}

    def held(self, node: str, keys: Iterable[bytes]) -> None:
        """Note that a node has come to hold these blocks."""
        own = self._held[node]
        for key in keys:
            if len(own) >= MAX_HELD_BLOCKS:
                return
            own.add(key)
            self._holders.setdefault(key, {})[node] = None

    def gone(self, node: str, keys: Iterable[bytes]) -> None:
        """Note that a node no longer holds these blocks."""
        own = self._held[node]
        for key in keys:
            if key in own:
                own.remove(key)
                holders = self._holders[key]
                del holders[node]
                if not holders:
                    del self._holders[key]

    def forget(self, node: str) -> None:
        """Forget a node that has gone away, with what it held."""
        self.gone(node, list(self._held[node]))

    def locate(self, asker: str, keys: Sequence[bytes]) -> Located:
        """Return where the longest prefix of a chain's blocks is; of several nodes that waits least."""
        nodes: list[str] = []
        waits_s: dict[str, float] = {}
        ahead_s: dict[str, float] = {}
        for key in keys:
            holders = [node for node in self._holders.get(key, ()) if node != asker]
            if not holders:
                break
            for node in holders:
                if node not in waits_s:
                    ahead_s[node] = waits_s[node] = self._wait_s(node)
            node = min(holders, key=lambda node: (ahead_s[node], node))
            ahead_s[node] += self._block_s
            nodes.append(node)
        self.stats.questions += 1
        self.stats.asked += len(keys)
        self.stats.located += len(nodes)
        return Located(nodes, {node: waits_s[node] for node in dict.fromkeys(nodes)})

    def promise(self, blocks: Mapping[str, int]) -> None:
        """Note that so many blocks will be asked of these nodes; raises LineError for what can't be."""
        now_s = self._now_s()
        for node, count in blocks.items():
            if node not in self._free_s or type(count) is not int or count < 0:
                raise LineError(f"promised: {count!r} blocks of {node!r}")
            self.stats.promised += count
            self._free_s[node] = max(now_s, self._free_s[node]) + count * self._block_s

    def blocks(self) -> int:
        """Return the blocks that are held anywhere."""
        return len(self._holders)

    def _wait_s(self, node: str) -> float:
        return max(0.0, self._free_s[node] - self._now_s())
