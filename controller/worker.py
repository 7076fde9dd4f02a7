"""The thread that looks after one switch: keeps a session open and drives the switch's pool."""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING, Final

from controller.errors import SwitchError
from controller.hit_meter import MIN_PERIOD_S, next_period_s
from controller.operations import HotMiss, Subscription
from controller.p4_constants import OUTCOME_NAMES

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from controller.pool import Pool
    from controller.session import Session

log = logging.getLogger(__name__)

TICK_S: Final = 0.02
OUTCOMES_PERIOD_S: Final = 1.0
READ_BACK_PERIOD_S: Final = 1.0
"""The least time between two read-backs of a switch that keeps refusing things."""
FIRST_BACKOFF_S: Final = 0.1
MAX_BACKOFF_S: Final = 2.0


class SwitchWorker:
    """One switch. Other threads may read its attributes and call start, stop and join."""

    def __init__(self, name: str, session: Session, pool: Pool) -> None:
        self.name, self.session, self.pool = name, session, pool
        self.outcomes = [0] * len(OUTCOME_NAMES)
        """The switch's packets by what became of them, as last read."""
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

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Ask to end; the outcomes are read once more."""
        self._stopping.set()

    def join(self, timeout_s: float) -> None:
        """Wait for the end."""
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
        """One session, and the wait before the next."""
        try:
            self._open()
            self._serve()
        except SwitchError as error:
            self._complain(str(error))
        finally:
            self.connected = False
            self.session.close()
        self._stopping.wait(self._backoff_s)
        self._backoff_s = min(MAX_BACKOFF_S, self._backoff_s * 2)

    def _complain(self, text: str) -> None:
        """Log what went wrong; again and again the same is worth one warning."""
        log.log(logging.DEBUG if text == self._complaint else logging.WARNING, "%s: %s", self.name, text)
        self._complaint = text

    def _open(self) -> None:
        reached = self.session.open(time.time())
        self.pool.slots.start_after(reached)
        self.pool.read_back(time.monotonic())
        self._backoff_s, self._complaint = FIRST_BACKOFF_S, ""
        self.connected = True
        self.ready.set()

    def _serve(self) -> None:
        while not self._stopping.is_set():
            self._take(self.session.receive(TICK_S), time.monotonic())
            self._do_what_is_due(time.monotonic())
        self.outcomes = self.session.adapter.read_outcomes()

    def _take(self, messages: Sequence[Any], now_s: float) -> None:
        for message in messages:
            for report in self.session.adapter.reports(message):
                if isinstance(report, HotMiss):
                    self.pool.hot_miss(report, now_s)
                elif isinstance(report, Subscription):
                    self.pool.subscribed(report, now_s)
                else:
                    self.pool.answered(report, now_s)
        dropped, self._dropped = self._dropped, self.session.costs.messages_dropped
        self.pool.dropped(self._dropped - dropped)
        self.pool.commit(now_s)

    def _do_what_is_due(self, now_s: float) -> None:
        self.pool.tick(now_s)
        if now_s >= self._next_hits_s:
            self._next_hits_s = now_s + self._read_hits(now_s)
        if now_s >= self._next_outcomes_s:
            self._next_outcomes_s = now_s + OUTCOMES_PERIOD_S
            self.outcomes = self.session.adapter.read_outcomes()
        if self.pool.needs_read_back and now_s >= self._next_read_back_s:
            self._next_read_back_s = now_s + READ_BACK_PERIOD_S
            self.pool.read_back(now_s)

    def _read_hits(self, now_s: float) -> float:
        """Read the hit counters; the time until they are read again."""
        if not self.pool.resident:
            return MIN_PERIOD_S
        self.pool.hit_packets(self.session.adapter.read_hits(), now_s)
        self.pool.commit(now_s)
        return next_period_s(time.monotonic() - now_s)
