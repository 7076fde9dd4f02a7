"""Rule by which a controller goes on from a list that is later than its own, and that a host says to know.

Such a list is of an earlier controller that got further, or whose clock was ahead. Hosts that know it take no
earlier one for some seconds. A storage node is believed at once, and a node that has said so for a while. As
either may lie, and as all storage nodes copy again what they may have missed by such a list, it happens less
and less often. The module does no I/O, and time is a parameter.
"""

from __future__ import annotations

from typing import Final

from hostlib.protocol.members import EPOCHS, is_later

FOLLOW_S: Final = 10.0
"""A controller goes on from another's list at most so often; twice as long after each time."""
MOST_FOLLOW_S: Final = 3600.0
SAID_S: Final = 3.0
"""A node has to say for so long that it knows a later list."""
MOST_NODES: Final = 256
"""Number of nodes whose word is remembered."""
FURTHEST: Final = (1 << 31) - (1 << 28)
"""Number of epochs that a controller goes on from its own first one. Further, and a host that missed some
lists would take a later one for an earlier one."""


class LaterLists:
    """`first` is the epoch of the controller's own first list."""

    def __init__(self, first: int) -> None:
        self._first = first
        self._next_s, self._wait_s = float("-inf"), FOLLOW_S
        self._said_s: dict[str, float] = {}
        """Since when nodes have said that they know a later list."""

    def follows(self, source: str, is_store: bool, epoch: int, own: int, now_s: float) -> bool:
        """Return whether the controller goes on from a list of this epoch, where its own has another."""
        if not is_later(epoch, own):
            self._said_s.pop(source, None)
            return False
        if not is_store:
            if len(self._said_s) >= MOST_NODES and source not in self._said_s:
                return False
            if now_s - self._said_s.setdefault(source, now_s) < SAID_S:
                return False
        if (epoch - self._first) % EPOCHS >= FURTHEST or now_s < self._next_s:
            return False
        self._next_s = now_s + self._wait_s
        self._wait_s = min(MOST_FOLLOW_S, 2 * self._wait_s)
        self._said_s.clear()
        return True
