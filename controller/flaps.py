"""Storage nodes that say again and again that they missed something: each time counts for longer.

Every change of the list of storage nodes is work for all hosts. One that is up and says that it has not
caught up is joining at once; the more often that happens, the longer it waits until it is up again. Pure:
time is a parameter.
"""

from __future__ import annotations

from typing import Final

FREE_FALLS: Final = 2
"""Number of times within CALM_S that a storage node may be joining again without a wait."""
WAIT_S: Final = 1.0
"""Seconds of the first wait; each further wait is twice as long."""
MOST_WAIT_S: Final = 60.0
CALM_S: Final = 60.0
"""Seconds without a fall after which all falls are forgotten."""


class Flaps:
    """Falls of storage nodes, by address."""

    def __init__(self) -> None:
        self._falls: dict[str, tuple[int, float]] = {}
        """How often, and when last."""

    def fell(self, address: str, now_s: float) -> None:
        """Count a fall of a storage node: it was up, and says that it missed something."""
        count, at_s = self._falls.get(address, (0, now_s))
        self._falls[address] = (count + 1 if now_s - at_s < CALM_S + self._wait_s(count) else 1), now_s

    def may_rise(self, address: str, now_s: float) -> bool:
        """Return whether it is up again if it says that it has caught up."""
        count, at_s = self._falls.get(address, (0, now_s))
        return now_s - at_s >= self._wait_s(count)

    def _wait_s(self, count: int) -> float:
        return (
            0.0 if count <= FREE_FALLS else min(MOST_WAIT_S, WAIT_S * 2.0 ** min(16, count - FREE_FALLS - 1))
        )
