"""A bound on how much the controller hears of nodes, of which each has its share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from controller.pool.pace import Pace

if TYPE_CHECKING:
    from ipaddress import IPv4Address

WINDOW_S: Final = 4.0
"""Seconds over which rates are bounded. A request tells of all its new blocks at once."""
LEAST_SHARES: Final = 2
"""Least number of shares of what is heard. One node causes half at most, and where more nodes speak, none
more than its share, so nodes that never stop leave as much for each of the others."""
MAX_SOURCES: Final = 1024
"""Nodes whose rates are remembered; a switch has fewer ports."""


class FairPace:
    """Bound on the blocks that all nodes together speak of: `most_per_s` are heard."""

    def __init__(self, most_per_s: int) -> None:
        self._most = max(LEAST_SHARES, round(WINDOW_S * most_per_s))
        self._all = Pace(self._most, WINDOW_S)
        self._sources: dict[IPv4Address, Pace] = {}

    def heard(self, source: IPv4Address, blocks: int, now_s: float) -> int:
        """Return how many of the blocks that a node speaks of are heard, which count from now on."""
        own = self._sources.get(source)
        if own is None:
            if len(self._sources) >= MAX_SOURCES:
                return 0
            own = self._sources[source] = Pace(self._most, WINDOW_S)
        others = sum(pace.within(now_s) > 0 for pace in self._sources.values() if pace is not own)
        share = self._most // max(LEAST_SHARES, others + 1)
        room = min(share - own.within(now_s), self._most - self._all.within(now_s))
        taken = max(0, min(blocks, room))
        own.sent(now_s, taken)
        self._all.sent(now_s, taken)
        return taken
