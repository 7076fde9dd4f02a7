"""Hints that a node gets before it asks for blocks: who holds them, and how much already waits there.

Without hints the gate knows a home's backlog from that home's last answer. Nodes that all ask at once
therefore fetch from a home that is about to be congested. With hints they ask first, in messages that wait at
links like all others, and book their turn:

    homes    each home says which of the blocks it holds, and how long what it has promised to others takes
    switch   the switch counts what it forwards, so it also says what its pool holds and what is on its way

The answers are looked up here when the last of them has come.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from simulator.client import Client
from simulator.events import Event, Loop
from simulator.messages import Block
from simulator.network import Network
from simulator.switch import Switch

POOLED = "pool"
"""Place of a block that is served without its home."""
_PURGE = 4096
"""Number of recorded blocks on their way above which outdated ones are removed."""


class Hints:
    """Hints for all nodes; it stands for what homes, or the switch, count."""

    def __init__(
        self,
        loop: Loop,
        network: Network,
        homes: Mapping[str, Callable[[Block], bool]],
        switches: Mapping[str, Switch],
        by_switch: bool,
        block_s: float,
    ) -> None:
        self.loop = loop
        self._network, self._homes, self._switches = network, homes, switches
        self._by_switch, self._block_s = by_switch, block_s
        for switch in switches.values():
            switch.tells = by_switch
        self._free_s: dict[str, float] = {}
        """Time in seconds at which all that a home has promised will have left, by home."""
        self._coming_s: dict[bytes, float] = {}
        """Time in seconds at which a promised block will pass the switch, by key."""
        self._paths: dict[tuple[str, str], list[str]] = {}

    def wait_s(self, place: Hashable) -> float:
        """Return how many seconds a block from that place waits before it is sent."""
        now_s = self.loop.now
        if isinstance(place, bytes):
            return max(0.0, self._coming_s.get(place, 0.0) - now_s - self._block_s)
        return max(0.0, self._free_s.get(str(place), 0.0) - now_s)

    def places(self, node: str, blocks: Sequence[Block]) -> list[Hashable]:
        """Return where each block comes from, up to the first that is nowhere."""
        found: list[Hashable] = []
        for block in blocks:
            if self._by_switch and self.pooled(node, block):
                found.append(POOLED)
            elif self._by_switch and self._coming_s.get(block.key, 0.0) > self.loop.now:
                found.append(block.key)
            elif self._homes[block.home](block):
                found.append(block.home)
            else:
                break
        return found

    def promise(self, blocks: Sequence[Block], places: Sequence[Hashable]) -> None:
        """Book the fetches of these blocks from these places."""
        now_s = self.loop.now
        for block, place in zip(blocks, places, strict=False):
            if place == block.home:
                free_s = max(now_s, self._free_s.get(block.home, 0.0)) + self._block_s
                self._free_s[block.home] = free_s
                if self._by_switch:
                    self._coming_s[block.key] = free_s
        if len(self._coming_s) > _PURGE:
            self._coming_s = {key: at_s for key, at_s in self._coming_s.items() if at_s > now_s}

    def pooled(self, node: str, block: Block) -> bool:
        """Return whether a switch on the way holds all of a block."""
        return any(self._switches[name].holds(block) for name in self._path(node, block.home))

    def _path(self, node: str, home: str) -> list[str]:
        """Return the switches between a node and a home."""
        path = self._paths.get((node, home))
        if path is None:
            path, vertex = [], self._network.next_hop(node, home)
            while vertex != home:
                path.append(vertex)
                vertex = self._network.next_hop(vertex, home)
            self._paths[node, home] = path
        return path


class NodeHints:
    """Hints of one node."""

    def __init__(self, hints: Hints, client: Client) -> None:
        self._hints, self._client = hints, client
        self.wait_s: Callable[[Any], float] = hints.wait_s
        self.promise = hints.promise

    def places(self, blocks: Sequence[Block]) -> list[Hashable]:
        """Return where each block comes from, up to the first that is nowhere."""
        return self._hints.places(self._client.name, blocks)

    def asked(self, blocks: Sequence[Block]) -> Event:
        """Ask who holds these blocks; the event happens when it is answered."""
        done = self._hints.loop.event()
        self._client.ask(blocks, done.succeed)
        return done
