"""Requests towards one home: what waits, what is in flight within the window, and when it counts as lost.

The window's rules are in `hostlib.native.flow_window`. Timeouts follow RFC 6298, with exponential backoff.
Pure: time is a parameter. `lanes.c` and `flow.c` define the same classes in C, and
tests/hostlib/test_native.py compares them: who changes one changes both.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from hostlib.native.flow_window import FlowWindow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hostlib.native.lane_options import LaneOptions

Owner = TypeVar("Owner")

POOL = "pool"
"""Name, in place of a home's address, of the lane of requests that the pool will probably answer."""


@dataclass(slots=True, eq=False)
class Request(Generic[Owner]):
    """One fragment asked for (or offered, for a PUT) by its owner, a transfer."""

    owner: Owner
    fragment: int
    flags: int = 0
    """Flags that every transmission carries."""
    tries: int = 0
    first_sent_s: float = 0.0
    sent_s: float = 0.0
    timeout_s: float = 0.0
    done: bool = False
    """Answered, or no longer wanted."""
    lane: Lane[Owner] | None = None
    """The lane in which the request waits or is in flight."""


class RoundTrips:
    """Smoothed round-trip time of one home as in RFC 6298; all lanes of the home share it.

    The first requests of all nodes meet an empty queue, so their answers do not show the queue that they
    build. Only requests that left after the first answer count.
    """

    def __init__(self) -> None:
        self.forget()
        self.heard_s = 0.0

    def forget(self) -> None:
        """Forget the measurements, which are too old."""
        self.smoothed_s = self.variance_s = 0.0
        self.learned = False
        self._first_heard_s: float | None = None

    def measure(self, sent_s: float, now_s: float) -> None:
        """Take the answer to a first transmission into account."""
        self.heard_s = now_s
        if self._first_heard_s is None:
            self._first_heard_s = now_s
        self.learned = self.learned or sent_s >= self._first_heard_s
        sample_s = now_s - sent_s
        if not self.smoothed_s:
            self.smoothed_s, self.variance_s = sample_s, sample_s / 2
            return
        self.variance_s += (abs(self.smoothed_s - sample_s) - self.variance_s) / 4
        self.smoothed_s += (sample_s - self.smoothed_s) / 8


class Lane(FlowWindow, Generic[Owner]):
    """Requests towards one home: waiting, then in flight within the window, then answered or lost."""

    def __init__(self, home: str, options: LaneOptions, trips: RoundTrips | None = None) -> None:
        super().__init__(options)
        self.home = home
        self._options = options
        self._trips = trips or RoundTrips()
        self._waiting: deque[Request[Owner]] = deque()
        self._in_flight: dict[Request[Owner], None] = {}
        self._halved_s = 0.0
        self._backlog_s = 0.0

    @property
    def waits(self) -> bool:
        """Return whether anything has not been sent yet, or is to be sent again."""
        return bool(self._waiting)

    @property
    def busy(self) -> bool:
        """Return whether anything waits or is in flight."""
        return bool(self._waiting or self._in_flight)

    @property
    def timeout_s(self) -> float:
        """Return the seconds after which a first transmission counts as lost."""
        trips, options = self._trips, self._options
        least_s = options.min_timeout_s if trips.learned else options.initial_timeout_s
        return max(least_s, trips.smoothed_s + 4 * trips.variance_s)

    @property
    def in_flight(self) -> int:
        """Requests that were sent and not answered."""
        return len(self._in_flight)

    def oldest_s(self) -> float | None:
        """Return when the request that has been in flight longest was first sent; None if none is."""
        return min((request.first_sent_s for request in self._in_flight), default=None)

    def add(self, requests: Sequence[Request[Owner]]) -> None:
        """Queue first transmissions."""
        for request in requests:
            request.lane = self
            self._waiting.append(request)

    def launched(self, requests: Sequence[Request[Owner]], now_s: float) -> None:
        """Count requests as in flight that another home's packets carry to this lane's home, too.

        Requests that are in a lane, or done, are left.
        """
        timeout_s = self.timeout_s
        for request in requests:
            if not request.done and request.lane is None:
                request.lane = self
                self._stamp(request, now_s, timeout_s)

    def again(self, request: Request[Owner]) -> None:
        """Queue a request in flight for retransmission, before all first transmissions."""
        if request in self._in_flight:
            del self._in_flight[request]
            self._waiting.appendleft(request)

    def take(self, now_s: float, room: int | None = None) -> list[Request[Owner]]:
        """Return requests to transmit now, at most `room`."""
        taken: list[Request[Owner]] = []
        while self._waiting and self._waiting[0].done:
            self._waiting.popleft()
        if not self._in_flight and self._waiting and not self._waiting[0].tries:
            self._ask_anew(now_s)
        own = self.allowed - len(self._in_flight)
        room = own if room is None else min(own, room)
        timeout_s = self.timeout_s
        while self._waiting and len(taken) < room:
            request = self._waiting.popleft()
            if not request.done:
                self._stamp(request, now_s, timeout_s)
                taken.append(request)
        return taken

    def _stamp(self, request: Request[Owner], now_s: float, timeout_s: float) -> None:
        """Note that a request is sent now; `timeout_s` is that of a first transmission."""
        if request.tries:
            timeout_s *= 1 << min(request.tries, 8)
        else:
            request.first_sent_s = now_s
        request.sent_s = now_s
        request.timeout_s = min(self._options.max_timeout_s, timeout_s)
        self._in_flight[request] = None

    def _ask_anew(self, now_s: float) -> None:
        """Start anew if nothing was in flight for a while: the home had no chance to say its backlog."""
        if self.restart(now_s):
            self._backlog_s = 0.0
            if now_s - self._trips.heard_s >= self._options.min_timeout_s:
                self._trips.forget()

    def settle(
        self, request: Request[Owner], now_s: float, backlog_ms: int | None, merged: bool = False
    ) -> None:
        """Settle a request that was answered: by the home, which reports its backlog, or by someone nearer
        (None).

        `merged`: the reply is a copy of one that went to other nodes too.
        """
        request.done = True
        if self.home == POOL:  # nobody reports how much waits there
            backlog_ms, merged = 0, False
        if backlog_ms is not None:
            self._heard_s = now_s
            self._backlog_s = min(self._options.max_timeout_s, backlog_ms / 1000)
        if request not in self._in_flight:
            return
        del self._in_flight[request]
        self.answered(1, now_s, backlog_ms, merged)
        if backlog_ms is not None and not request.tries:  # a retransmission's answer is ambiguous (Karn)
            self._trips.measure(request.sent_s, now_s)

    def drop(self, request: Request[Owner]) -> None:
        """Drop a request whose answer nobody wants any more."""
        request.done = True
        self._in_flight.pop(request, None)

    def earliest_timeout_s(self) -> float:
        """Return the earliest time at which something in flight can time out, whatever is measured until
        then.

        The result is infinite if nothing is in flight.
        """
        for request in self._in_flight:  # in the order in which they were sent
            return request.sent_s + min(self._options.min_timeout_s, self._options.max_timeout_s)
        return math.inf

    def expire(self, now_s: float) -> tuple[list[Request[Owner]], list[Request[Owner]]]:
        """Return what timed out: (queued again, past the deadline and dropped)."""
        if now_s < self.earliest_timeout_s():
            return [], []
        # What waits at the home is not lost: the queue may have grown since the timeout was set.
        sent_before_s = now_s - self._backlog_s
        first_s = self.timeout_s  # more may be known by now of how long an answer takes
        late = []
        for request in self._in_flight:
            timeout_s = request.timeout_s if request.tries else min(first_s, request.timeout_s)
            if sent_before_s - request.sent_s >= timeout_s:
                late.append(request)
        if late and now_s - self._halved_s > self._trips.smoothed_s:
            self.halve()
            self._halved_s = now_s
        retried, dead = [], []
        for request in reversed(late):
            if now_s - request.first_sent_s >= self._options.deadline_s:
                self.drop(request)
                dead.append(request)
            else:
                request.tries += 1
                self.again(request)
                retried.append(request)
        return retried, dead
