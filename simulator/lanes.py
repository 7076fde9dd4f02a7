"""Lanes of a node for GETs, as in hostlib.client.exchange.

Each home has a lane for probes and one for bodies. Bodies that the pool will answer have another. One bound
limits what all lanes have in flight together.
"""

from __future__ import annotations

from dataclasses import replace

from hostlib.client.client_options import ClientOptions
from hostlib.native.lane import POOL
from hostlib.native.lane_options import LaneOptions
from simulator.lane import Lane
from simulator.messages import Ask


class Lanes:
    """Lanes by home; the bound is in fragments and constant, because nothing is lost in a simulation."""

    def __init__(self, options: LaneOptions) -> None:
        hosts = ClientOptions()
        first = min(options.initial_window, hosts.probe_window)
        self._bodies = options
        self._probes = replace(
            options,
            initial_window=first,
            opened_window=hosts.probe_window,
            min_window=first,
            max_window=max(hosts.probe_window, options.max_window // 4),
        )
        self._most = hosts.node.initial
        self._lanes: list[Lane[Ask]] = []
        """All lanes; the one that sent last is the last."""
        self._probes_to: dict[str, Lane[Ask]] = {}
        self._bodies_to: dict[str, Lane[Ask]] = {}
        self._questions_to: dict[str, Lane[Ask]] = {}

    @property
    def pool(self) -> Lane[Ask]:
        """Return the lane of bodies that the pool will answer."""
        return self.bodies(POOL)

    def is_pool(self, lane: Lane[Ask]) -> bool:
        """Return whether a lane is the pool's."""
        return lane is self._bodies_to.get(POOL)

    def probes(self, home: str) -> Lane[Ask]:
        """Return the lane of first fragments to a home."""
        return self._probes_to.get(home) or self._new(self._probes_to, home, self._probes)

    def questions(self, home: str) -> Lane[Ask]:
        """Return the lane of questions whether blocks are at a home."""
        return self._questions_to.get(home) or self._new(self._questions_to, home, self._probes)

    def bodies(self, home: str) -> Lane[Ask]:
        """Return the lane of bodies whose probe came from this home."""
        return self._bodies_to.get(home) or self._new(self._bodies_to, home, self._bodies)

    def take(self, now_s: float) -> list[Ask]:
        """Return what may be sent now.

        If the bound is scarce, the lane that sent longest ago comes first. A part larger than the bound goes
        alone.
        """
        asks: list[Ask] = []
        waiting = [lane for lane in self._lanes if lane.waiting]
        if not waiting:
            return asks
        in_flight = sum([lane.in_flight for lane in self._lanes])
        for lane in waiting:
            room = self._most - in_flight
            if not in_flight:
                room = max(room, lane.waiting[0].fragments)
            before = lane.in_flight
            asks += lane.take(now_s, room)
            if lane.in_flight > before:
                in_flight += lane.in_flight - before
                self._lanes.remove(lane)
                self._lanes.append(lane)
        return asks

    def _new(self, lanes: dict[str, Lane[Ask]], home: str, options: LaneOptions) -> Lane[Ask]:
        lane = lanes[home] = Lane(options)
        self._lanes.append(lane)
        return lane
