"""A node's lanes that take turns exactly as those of hosts do."""

from __future__ import annotations

from simulator.lane import Lane
from simulator.lanes import Lanes


class LiveLanes(Lanes):
    """Whose turn it is depends on lanes of PUTs and what they send, too, and the pool has no lane before it
    has answered."""

    def _set_up(self) -> None:
        """Without the pool's."""

    def puts_to_another(self) -> None:
        """PUTs go to one home more, in a lane that is elsewhere: turns count it."""
        self._lanes.append(Lane(self._bodies))

    def put(self, fragments: int) -> None:
        """So many fragments of PUTs have been sent."""
        self._sent += fragments
