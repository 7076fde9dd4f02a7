"""Flow control towards one home, for one operation: what may be in flight, and when it counts as lost.

The receiver drives: a home sends only what was asked for, so the sum of the windows of all nodes is the
longest queue that an incast can build. The window grows by one fragment a round trip while the home reports
a short backlog, shrinks by a fifth a round trip while it reports a long one, and halves, at most once a
round trip, when something is lost. That is additive increase and multiplicative decrease, so nodes that
share a home come to share it evenly. Replies that are merged on their way are an exception: nodes that ask
for the same load the home together as much as one of them, and the further each asks ahead, the more of what
they ask for is in flight at the same time and merges, even if one of them is late. Timeouts follow RFC 6298,
with exponential backoff.
Pure: time is a parameter. The compiled core has the same rules (`hostlib/native/lanes.c`, `requests.c`), and
tests/hostlib/test_native.py compares the two: who changes one changes both.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hostlib.native import Core

Owner = TypeVar("Owner")

UNSHARED = 2  # what a reply that is not shared takes back of what shared ones gave
SHRINK = 0.2  # a reply; a window has as many replies a round trip as it is long


@dataclass(frozen=True, slots=True)
class LaneOptions:
    """Windows in fragments, times in seconds."""

    initial_window: int = 4
    """First requests of 16 nodes at the same moment fit a queue of 64 packets."""
    opened_window: int = 32
    """Up to this, each answer adds one fragment, so a round trip as many again, until something is lost or
    the backlog is long."""
    min_window: int = 4
    max_window: int = 128
    target_backlog_ms: int = 20
    """More than that waiting at the home shrinks the window."""
    merged_backlog_ms: int = 80
    """Up to this, a reply that several nodes share lets one fragment more than the window be in flight."""
    initial_timeout_s: float = 1.0
    min_timeout_s: float = 0.2
    max_timeout_s: float = 2.0
    deadline_s: float = 10.0
    """How long one fragment is asked for, from its first transmission. What to do about a home that is silent
    altogether is decided sooner (`hostlib.client.health`)."""


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
    """Where it waits or is in flight."""


class RoundTrips:
    """How long a home takes to answer, smoothed as in RFC 6298; the lanes of one home share it.

    The first requests of all nodes meet an empty queue; their answers say nothing of the one that they build.
    Only what was asked for after the first answer tells how long an answer takes.
    """

    def __init__(self) -> None:
        self.forget()
        self.heard_s = 0.0

    def forget(self) -> None:
        """What was learned has aged."""
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


class Lane(Generic[Owner]):
    """Requests towards one home: waiting, then in flight within the window, then answered or lost."""

    def __init__(
        self, home: str, options: LaneOptions, trips: RoundTrips | None = None, core: Core | None = None
    ) -> None:
        self._core = core
        self.home = home
        self.window = float(options.initial_window)
        self._options = options
        self._trips = trips or RoundTrips()
        self._waiting: deque[Request[Owner]] = deque()
        self._in_flight: dict[Request[Owner], None] = {}
        self._halved_s = 0.0
        self._heard_s = 0.0
        self._backlog_s = 0.0
        self._shared = 0
        self._opening = True
        """Whether nothing was lost and no backlog was long so far."""

    @property
    def allowed(self) -> int:
        """Fragments that may be in flight: the window, and more while replies are shared."""
        return min(self._options.max_window, int(self.window) + self._shared)

    @property
    def waits(self) -> bool:
        """Whether anything has not been sent yet, or is to be sent again."""
        return bool(self._waiting)

    @property
    def busy(self) -> bool:
        """Whether anything waits or is in flight."""
        return bool(self._waiting or self._in_flight)

    @property
    def timeout_s(self) -> float:
        """After which a first transmission counts as lost."""
        trips, options = self._trips, self._options
        least_s = options.min_timeout_s if trips.learned else options.initial_timeout_s
        return max(least_s, trips.smoothed_s + 4 * trips.variance_s)

    @property
    def in_flight(self) -> int:
        """Requests that were sent and not answered."""
        return len(self._in_flight)

    def oldest_s(self) -> float | None:
        """When the request that has been in flight longest was first sent; None if none is."""
        return min((request.first_sent_s for request in self._in_flight), default=None)

    def add(self, requests: Iterable[Request[Owner]]) -> None:
        """Queue first transmissions."""
        if self._core is not None:
            self._core.add(self, list(requests))
            return
        for request in requests:
            request.lane = self
            self._waiting.append(request)

    def launched(self, request: Request[Owner], now_s: float) -> None:
        """Someone else's packet carries the request to this lane's home as well: count it as in flight."""
        request.lane = self
        self._stamp(request, now_s, self.timeout_s)

    def launched_run(self, requests: list[Request[Owner]], now_s: float) -> None:
        """As `launched` for those that are not done and were not sent yet."""
        if self._core is not None:
            self._core.launched(self, requests, now_s, self.timeout_s)
            return
        for request in requests:
            if not request.done and request.lane is None:
                self.launched(request, now_s)

    def again(self, request: Request[Owner]) -> None:
        """Queue a request in flight for retransmission, before all first transmissions."""
        if request in self._in_flight:
            del self._in_flight[request]
            self._waiting.appendleft(request)

    def take(self, now_s: float, room: int | None = None) -> list[Request[Owner]]:
        """Requests to transmit now, at most `room`."""
        taken: list[Request[Owner]] = []
        while self._waiting and self._waiting[0].done:
            self._waiting.popleft()
        if not self._in_flight and self._waiting and not self._waiting[0].tries:
            self._restart(now_s)
        own = self.allowed - len(self._in_flight)
        room = own if room is None else min(own, room)
        timeout_s = self.timeout_s
        if self._core is not None:
            return self._core.take(self, now_s, room, timeout_s)
        while self._waiting and len(taken) < room:
            request = self._waiting.popleft()
            if not request.done:
                self._stamp(request, now_s, timeout_s)
                taken.append(request)
        return taken

    def _stamp(self, request: Request[Owner], now_s: float, timeout_s: float) -> None:
        """It is sent now; `timeout_s` is that of a first transmission."""
        if request.tries:
            timeout_s *= 1 << min(request.tries, 8)
        else:
            request.first_sent_s = now_s
        request.sent_s = now_s
        request.timeout_s = min(self._options.max_timeout_s, timeout_s)
        self._in_flight[request] = None

    def _restart(self, now_s: float) -> None:
        """Nothing was asked for: the home had nothing to say, and what was learned of its load has aged."""
        if now_s - self._heard_s >= self._options.min_timeout_s:
            self.window = float(self._options.initial_window)
            self._opening = True
            self._backlog_s = 0.0
            if now_s - self._trips.heard_s >= self._options.min_timeout_s:
                self._trips.forget()
        self._heard_s = now_s
        self._shared = 0  # what is asked for next, others may not want

    def settle(
        self, request: Request[Owner], now_s: float, backlog_ms: int | None, merged: bool = False
    ) -> None:
        """The request is answered: by the home, which reports its backlog, or by someone nearer (None).

        `merged`: the reply is a copy of one that went to other nodes too.
        """
        request.done = True
        if backlog_ms is not None:
            self._heard_s = now_s
            self._backlog_s = min(self._options.max_timeout_s, backlog_ms / 1000)
        if request not in self._in_flight:
            return
        del self._in_flight[request]
        if backlog_ms is None:  # says nothing about the home, but there was room on the way to who answered
            self._open()
            return
        if merged:
            if backlog_ms <= self._options.merged_backlog_ms:
                self._shared += 1
        else:
            self._shared = max(0, self._shared - UNSHARED)
            self._adjust(backlog_ms)
        if not request.tries:  # a retransmission's answer is ambiguous (Karn)
            self._trips.measure(request.sent_s, now_s)

    def _open(self) -> bool:
        """One fragment more, if the window is still on its way to what it may be without losses."""
        opens = self._opening and self.window < min(self._options.opened_window, self._options.max_window)
        self.window += opens
        return opens

    def _adjust(self, backlog_ms: int) -> None:
        if backlog_ms <= self._options.target_backlog_ms:
            if not self._open():
                self.window = min(self._options.max_window, self.window + 1 / self.window)
        else:
            self._opening = False
            self.window = max(self._options.min_window, self.window - SHRINK)

    def drop(self, request: Request[Owner]) -> None:
        """Nobody wants the request any more."""
        request.done = True
        self._in_flight.pop(request, None)

    def feel(self, backlog_ms: int) -> None:
        """Another home for which this lane's packets are meant, too, reports its backlog."""
        if backlog_ms > self._options.target_backlog_ms:
            self.window = max(self._options.min_window, self.window - SHRINK)

    def earliest_timeout_s(self) -> float:
        """Before this moment nothing in flight times out, whatever is learned meanwhile; infinite if nothing
        is in flight."""
        for request in self._in_flight:  # in the order in which they were sent
            return request.sent_s + min(self._options.min_timeout_s, self._options.max_timeout_s)
        return math.inf

    def expire(self, now_s: float) -> tuple[list[Request[Owner]], list[Request[Owner]]]:
        """What timed out: (queued again, past the deadline and dropped)."""
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
            self.window = max(self._options.min_window, self.window / 2)
            self._opening = False
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
