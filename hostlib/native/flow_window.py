"""Window of fragments in flight towards one home: the rules that hosts and the simulator share.

The receiver drives: a home sends only what was asked for, so the longest queue that an incast can build is
the sum of the windows of all nodes. The window grows by one fragment a round trip while the home reports a
short backlog. It shrinks by a fifth a round trip while the home reports a long one, and halves, at most once
a round trip, when something is lost. That is additive increase and multiplicative decrease, so nodes that
share a home come to share it evenly.

Replies that are merged on their way are an exception. Nodes that ask for the same blocks load the home
together as much as one of them. The further each asks ahead, the more of their requests are in flight at the
same time and merge, even if one node is late.

The module does no I/O, and time is a parameter. `flow.c` has the same rules in C, and
tests/hostlib/test_native.py compares the two: change both together.
"""

from __future__ import annotations

from hostlib.native.lane_options import LaneOptions

UNSHARED = 2  # what a reply that is not shared takes back of what shared ones gave
SHRINK = 0.2  # a reply; a window has as many replies a round trip as it is long


class FlowWindow:
    """The window towards one home, in fragments."""

    __slots__ = (
        "_heard_s",
        "_idle_s",
        "_initial",
        "_least",
        "_merged_backlog_ms",
        "_most",
        "_most_open",
        "_opening",
        "_shared",
        "_target_backlog_ms",
        "window",
    )

    def __init__(self, options: LaneOptions) -> None:
        self.window = self._initial = float(options.initial_window)
        self._least, self._most = options.min_window, options.max_window
        self._most_open = min(options.opened_window, options.max_window)
        self._target_backlog_ms = options.target_backlog_ms
        self._merged_backlog_ms = options.merged_backlog_ms
        self._idle_s = options.min_timeout_s
        self._heard_s = 0.0
        self._shared = 0
        self._opening = True
        """Whether nothing was lost and no backlog was long so far."""

    @property
    def allowed(self) -> int:
        """Fragments that may be in flight: the window, and more while replies are shared."""
        allowed = int(self.window) + self._shared
        return allowed if allowed < self._most else self._most

    def answered(self, fragments: int, now_s: float, backlog_ms: float | None, merged: bool) -> None:
        """Note that so many fragments in flight were answered: by the home, which said its backlog, or by
        someone nearer (None).

        `merged`: the reply is a copy of one that went to other nodes too.
        """
        if backlog_ms is None:  # says nothing about the home, but there was room on the way to who answered
            self._open(fragments)
            return
        self._heard_s = now_s
        if merged:
            if backlog_ms <= self._merged_backlog_ms:
                self._shared += fragments
            return
        if self._shared:
            self._shared = max(0, self._shared - UNSHARED * fragments)
        if backlog_ms <= self._target_backlog_ms:
            if not self._open(fragments) and self.window < self._most:
                self.window = min(self._most, self.window + fragments / self.window)
        else:
            self._opening = False
            self.window = max(self._least, self.window - SHRINK * fragments)

    def _open(self, fragments: int) -> bool:
        """Grow by so many fragments if no loss has limited the window yet; return whether it grew."""
        if not self._opening or self.window >= self._most_open:
            return False
        self.window = min(self._most_open, self.window + fragments)
        return True

    def feel(self, backlog_ms: float) -> None:
        """Take note of the backlog of another home for which these packets are meant, too."""
        if backlog_ms > self._target_backlog_ms:
            self.window = max(self._least, self.window - SHRINK)

    def halve(self) -> None:
        """Halve the window, because something was lost."""
        self.window = max(self._least, self.window / 2)
        self._opening = False

    def restart(self, now_s: float) -> bool:
        """Begin again with nothing in flight; return whether the knowledge of the home's load has aged."""
        aged = now_s - self._heard_s >= self._idle_s
        if aged:
            self.window = self._initial
            self._opening = True
        self._heard_s = now_s
        self._shared = 0  # what is asked for next, others may not want
        return aged
