"""Window of what a node may have in flight towards all homes together: the bound of the incast at its own
link.

Each home bounds its own queue (`hostlib.native.flow_window`), but many homes that answer one node fill the
queue before that node. Nobody reports that queue, so the window is learned from losses, as TCP does it. It
grows by one fragment a round trip while it is what limits the node, and halves when something was lost, at
most once in `calm_s`. The module does no I/O, and time is a parameter.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NodeWindowOptions:
    """Window sizes in fragments: as many as a switch's queue of 64 packets holds, and fewer where others use
    that, too."""

    initial: int = 64
    least: int = 16
    most: int = 64
    calm_s: float = 0.2
    """Losses closer together are one event."""


class NodeWindow:
    """See the module."""

    def __init__(self, options: NodeWindowOptions) -> None:
        self._options = options
        self._size = float(options.initial)
        self._halved_s = float("-inf")
        self._limits = False

    @property
    def size(self) -> int:
        """Fragments that may be in flight."""
        return int(self._size)

    def room(self, in_flight: int) -> int:
        """Return how many more may be sent."""
        return max(0, self.size - in_flight)

    def limits(self, whether: bool) -> None:
        """Note whether something waits that the window does not let out."""
        self._limits = whether

    def answered(self, fragments: int = 1) -> None:
        """Note that so many fragments came."""
        if self._limits:
            for _ in range(fragments):
                if self._size == self._options.most:
                    break
                self._size = min(self._options.most, self._size + 1 / self._size)

    def lost(self, now_s: float) -> None:
        """Halve the window, because something did not come in time."""
        if now_s - self._halved_s >= self._options.calm_s:
            self._halved_s = now_s
            self._size = max(self._options.least, self._size / 2)
