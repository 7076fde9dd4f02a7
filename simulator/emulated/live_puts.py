"""PUTs fragment by fragment, as hosts send them (hostlib.client.offers), for comparison with the emulator.

Fragments leave within the window of the home's lane, until an acknowledgement says that the home holds the
block, no matter who completed it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from hostlib.native.lane_options import LaneOptions
from simulator.events import Loop
from simulator.lane import Lane
from simulator.messages import Block, Put
from simulator.network import Network


class Piece(Put):
    """Fragment of a block that is sent fragment by fragment."""

    __slots__ = ()


class _Offer:
    """Block on its way to its home."""

    __slots__ = ("in_flight", "lane", "waiting")

    def __init__(self, lane: Lane[Put]) -> None:
        self.lane = lane
        self.waiting = 0
        """Number of fragments that have not left."""
        self.in_flight = 0
        """Number of fragments in flight, not yet acknowledged."""


class LivePuts:
    """Live PUTs of one node, a limited number of blocks at a time."""

    def __init__(self, loop: Loop, name: str, network: Network, options: LaneOptions, workers: int) -> None:
        self.done = 0
        """Number of blocks that their homes hold."""
        self.stored: list[Block] = []
        """Blocks that their homes hold and that no router has been told of yet."""
        self._loop, self._name, self._network = loop, name, network
        self._options, self._workers = options, workers
        self._lanes: dict[str, Lane[Put]] = {}
        self._waiting: deque[Block] = deque()
        self._active: dict[bytes, _Offer] = {}

    def store(self, blocks: Iterable[Block], most: int) -> None:
        """Send these blocks home in the background; at most `most` of them wait, others are dropped."""
        for block in blocks:
            if len(self._waiting) < most:
                self._waiting.append(block)
        self._start()

    def acknowledged(self, put: Put) -> None:
        """Note that the home has a fragment, or the whole block."""
        offer = self._active.get(put.block.key)
        if offer is None:
            return  # an earlier acknowledgement has ended the offer
        lane = offer.lane
        offer.in_flight -= 1
        lane.settle(1, self._loop.now, 0.0)
        if put.held:
            self.done += 1
            self.stored.append(put.block)
            del self._active[put.block.key]
            lane.in_flight -= offer.in_flight
            lane.waiting = deque(one for one in lane.waiting if one.block is not put.block)
            self._start()
        elif not offer.waiting and not offer.in_flight:  # the home has lost some fragments
            self._queue(put.block, offer)
        self._pump(lane)

    def _start(self) -> None:
        while self._waiting and len(self._active) < self._workers:
            block = self._waiting.popleft()
            if block.key in self._active:
                continue
            lane = self._lanes.get(block.home)
            if lane is None:
                lane = self._lanes[block.home] = Lane(self._options)
            offer = self._active[block.key] = _Offer(lane)
            self._queue(block, offer)
            self._pump(lane)

    def _queue(self, block: Block, offer: _Offer) -> None:
        """Queue all fragments of a block."""
        offer.waiting = block.fragments
        offer.lane.waiting.extend(Piece(block, 1, self._name, n) for n in range(block.fragments))

    def _pump(self, lane: Lane[Put]) -> None:
        for put in lane.take(self._loop.now):
            offer = self._active[put.block.key]
            offer.waiting -= 1
            offer.in_flight += 1
            self._network.put(self._name, put)
