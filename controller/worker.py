"""Worker of one switch: keeps a session open and drives the switch's pool, in a thread of its own.

It can also be driven from outside, step by step and by another clock (`connect`, `step`, `disconnect`).
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from controller.deletions import Deletions
from controller.errors import SwitchError
from controller.membership import Announcements
from controller.operations import HotMiss, Subscription
from controller.pool.hit_meter import MIN_PERIOD_S, least_period_s, next_period_s
from hostlib.protocol import wire
from hostlib.protocol.members import HEARTBEAT_S

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from ipaddress import IPv4Address
    from typing import Any

    from controller.membership import Membership
    from controller.p4runtime.session import Session
    from controller.pool.pool import Pool

log = logging.getLogger(__name__)

TICK_S: Final = 0.02
"""Seconds between two looks at what there is to push."""
LEAST_WAIT_S: Final = 0.001
WATCH_S: Final = 1.5 * HEARTBEAT_S
"""Seconds between two looks at storage nodes that are heard; a heartbeat comes before. HEARTBEAT_S if none
came."""
OUTCOMES_PERIOD_S: Final = 1.0
"""Least seconds between two readings of the outcomes."""
READ_BACK_PERIOD_S: Final = 1.0
"""The least time between two read-backs of a switch that keeps refusing things."""
FIRST_BACKOFF_S: Final = 0.1
MAX_BACKOFF_S: Final = 2.0


@dataclass(frozen=True, slots=True)
class Clocks:
    """Seconds, by different clocks."""

    wall_s: Callable[[], float] = time.time
    """Function that returns the seconds since 1970."""
    monotonic_s: Callable[[], float] = time.monotonic
    cpu_s: Callable[[], float] = time.thread_time
    """Function that returns the seconds of CPU time that this thread used."""


class SwitchWorker:
    """One switch. Other threads may read its attributes and call start, stop and join."""

    def __init__(
        self,
        name: str,
        session: Session,
        pool: Pool,
        membership: Membership,
        hosts: Iterable[IPv4Address],
        clocks: Clocks | None = None,
        switches: int = 1,
        deletions: Deletions | None = None,
    ) -> None:
        """Make a worker. `switches` is how many this process looks after, so that counters are read at a pace
        it can bear."""
        self.name, self.session, self.pool = name, session, pool
        self._clocks = clocks or Clocks()
        self._hosts = tuple(hosts)
        self._switches = switches
        self._membership, self._announcements = membership, Announcements(membership, self._hosts)
        self._stores = tuple(host for host in self._hosts if membership.members.at(str(host)))
        membership.on_change.append(session.wake)
        self._deletions = Deletions() if deletions is None else deletions
        self._deletions.joins(name, session.wake)
        self.ready = threading.Event()
        """Set from the first time that the switch is as it should be, or when the worker ends."""
        self.connected = False
        self.failure: Exception | None = None
        """Why the worker ended, if it was not asked to."""
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._backoff_s = FIRST_BACKOFF_S
        self._complaint = ""
        self._next_hits_s = self._next_outcomes_s = self._next_read_back_s = 0.0
        self._dropped = 0
        self._heard_beat = False

    @property
    def outcomes(self) -> list[int]:
        """Return the switch's packets by what became of them, as last read."""
        return self.session.adapter.outcomes

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Ask to end; the outcomes are read once more."""
        self._stopping.set()
        self.session.wake()

    def join(self, timeout_s: float) -> None:
        """Wait until the thread has ended."""
        self._thread.join(timeout_s)

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                self._serve_once()
        except Exception as error:  # handed over: the main thread raises it
            self.failure = error
        finally:
            self.ready.set()

    def _serve_once(self) -> None:
        """Serve one session, and wait before the next."""
        backoff_s = 0.0
        try:
            self.connect()
            while not self._stopping.is_set():
                self.step(self.patience_s)
            self.session.adapter.read_outcomes()
        except SwitchError as error:
            self.complain(error)
        finally:
            backoff_s = self.disconnect()
        self._stopping.wait(backoff_s)

    def complain(self, error: SwitchError) -> None:
        """Log what went wrong; again and again the same is worth one warning."""
        text = str(error)
        level = logging.DEBUG if text == self._complaint else logging.WARNING
        log.log(level, "%s: %s; trying again", self.name, text)
        self._complaint = text

    def connect(self) -> None:
        """Open a session and bring the switch in order; SwitchError."""
        reached = self.session.open(self._clocks.wall_s())
        self.pool.read_back(self._clocks.monotonic_s(), reached)
        self._backoff_s, self._complaint = FIRST_BACKOFF_S, ""
        self.connected = True
        log.info("%s: connected; its pool holds %d blocks", self.name, len(self.pool.resident))
        self.ready.set()

    def disconnect(self) -> float:
        """End the session, if there is one; how long to wait before the next, in seconds."""
        self.connected = False
        self.session.close()
        self._membership.out_of_sight(self._stores)
        backoff_s, self._backoff_s = self._backoff_s, min(MAX_BACKOFF_S, self._backoff_s * 2)
        return backoff_s

    @property
    def patience_s(self) -> float:
        """Return how long to wait for the switch to say something: until the next thing is due."""
        due_s = min(self._next_outcomes_s, self._announcements.due_s, self.pool.due_s)
        due_s = min(due_s, self._deletions.due_s(self.name))
        if self.pool.resident:
            due_s = min(due_s, self._next_hits_s)
        if self.pool.needs_read_back:
            due_s = min(due_s, self._next_read_back_s)
        patience_s = max(LEAST_WAIT_S, due_s - self._clocks.monotonic_s())
        if self.pool.push is not None:
            patience_s = min(patience_s, TICK_S)
        if self._stores and self._membership.counts_heartbeats:
            patience_s = min(patience_s, WATCH_S if self._heard_beat else HEARTBEAT_S)
        return patience_s

    def step(self, timeout_s: float) -> None:
        """Take messages, waiting so long for the first, and do what is due; SwitchError."""
        self._take(self.session.receive(timeout_s), self._clocks.monotonic_s())
        self._do_what_is_due(self._clocks.monotonic_s())

    def _take(self, messages: Sequence[Any], now_s: float) -> None:
        self._heard_beat = False
        misses: list[HotMiss] = []
        for message in messages:
            for report in self.session.adapter.reports(message):
                if isinstance(report, HotMiss):
                    misses.append(report)
                elif isinstance(report, Subscription):
                    self.pool.subscribed(report, now_s)
                elif report.message.op == wire.OP_HELLO:
                    self._heard_beat = True
                    self._membership.hello(report, now_s)
                    self._announcements.asked(report)
                elif report.message.op == wire.OP_DELETE:
                    self._deletions.asked(self.name, report, now_s)
                elif report.message.op == wire.OP_DELETED:
                    self._deletions.obeyed(self.name, report)
                else:
                    self.pool.answered(report, now_s)
        self.pool.hot_misses(misses, now_s)
        dropped, self._dropped = self._dropped, self.session.costs.messages_dropped
        self.pool.dropped(self._dropped - dropped)
        self.pool.commit(now_s)

    def _do_what_is_due(self, now_s: float) -> None:
        self.pool.tick(now_s)
        if self._stores:
            self._membership.look(now_s, self._stores)
        if deletions := self._deletions.work(self.name, now_s, self._membership.members.epoch):
            self.session.adapter.send(deletions)
        if announcements := self._announcements.poll(now_s):
            self.session.adapter.send(announcements)
        if now_s >= self._next_hits_s:
            self._next_hits_s = now_s + self._read_hits(now_s)
        if now_s >= self._next_outcomes_s:
            self.session.adapter.read_outcomes()
            self._took_outcomes(now_s)
        if self.pool.needs_read_back and now_s >= self._next_read_back_s:
            self._next_read_back_s = now_s + READ_BACK_PERIOD_S
            self.pool.read_back(now_s)

    def _read_hits(self, now_s: float) -> float:
        """Read the hit counters; the time until they are read again."""
        if not self.pool.resident:
            return MIN_PERIOD_S
        # A busy machine's wall clock says nothing of what reading costs.
        began_s = self._clocks.cpu_s()
        self.pool.read_hits(now_s)
        self._took_outcomes(now_s)
        self.pool.commit(now_s)
        return next_period_s(self._clocks.cpu_s() - began_s, self._switches)

    def _took_outcomes(self, now_s: float) -> None:
        """Note that outcomes were read, alone or with the hits."""
        self._next_outcomes_s = now_s + least_period_s(self._switches, OUTCOMES_PERIOD_S)
