"""The runtime's events as those of the control plane: packets for the CPU, digest lists, idle entries.

Log messages go to the logger `v1model.program`.
"""

from __future__ import annotations

import logging
import os
import struct
import threading
import time
from collections import deque
from enum import IntEnum
from typing import TYPE_CHECKING

from v1model.binding.messages import show
from v1model.dataplane import DigestList, Output, TableEntry
from v1model.trace.events import TraceEvent

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from v1model.backend.unit import LogMessage
    from v1model.binding.digests import Digests
    from v1model.binding.library import Handle
    from v1model.binding.profiles import Profiles
    from v1model.binding.tables import Tables
    from v1model.trace.decoder import Decoder

logger = logging.getLogger("v1model.program")

MAX_PENDING = 65536
IDLE_SWEEP_S = 0.1
_EVENT = struct.Struct("=4IQ")  # struct event

Event = Output | DigestList | TableEntry


class EventKind(IntEnum):
    """Kinds of events, as enum event_kind of the runtime."""

    PACKET = 0
    DIGEST = 1
    IDLE = 2
    LOG = 3
    PORT = 4
    TRACE = 5


class Events:
    """Reader of the runtime's event buffer: one consumer at a time; untaken events wait in `_pending`."""

    def __init__(
        self,
        handle: Handle,
        tables: Tables,
        profiles: Profiles,
        digests: Digests,
        messages: Sequence[LogMessage],
        decoder: Decoder,
    ) -> None:
        self._handle, self._tables, self._profiles = handle, tables, profiles
        self._digests, self._messages = digests, messages
        self._reading = threading.Lock()
        self._pending: deque[Event] = deque(maxlen=MAX_PENDING)
        self._decoder, self.traces = decoder, deque[TraceEvent](maxlen=MAX_PENDING)
        self.on_trace: Callable[[TraceEvent], None] = self.traces.append
        self._closed = self._interrupted = False
        self._handle.call("enable_log", bool(messages))

    def clear(self) -> None:
        self._pending.clear()
        self.traces.clear()

    def close(self) -> None:
        """End a wait. After this returns, no thread reads any more."""
        self._closed = True
        self._handle.call("interrupt_events")
        with self._reading:
            pass

    def interrupt(self) -> None:
        """End a wait, or else the next one, with the events that there are."""
        self._interrupted = True
        self.look_again()

    def look_again(self) -> None:
        """Wake a wait to compute its deadline again, because something may be due sooner."""
        self._handle.call("interrupt_events")

    def collect(self) -> None:
        """Take the runtime's events, unless another thread waits for them anyway."""
        if self._reading.acquire(blocking=False):
            try:
                self._read(0)
            finally:
                self._reading.release()

    def wait(self, timeout_s: float) -> list[Event]:
        until = time.monotonic() + timeout_s
        with self._reading:
            while not self._closed:
                self._read(0 if self._pending or timeout_s <= 0 else self._patience_us(until))
                if self._pending or self._interrupted or time.monotonic() >= until:
                    self._interrupted = False
                    events = list(self._pending)
                    self._pending.clear()
                    return events
        return []

    def _patience_us(self, until: float) -> int:
        """Return the microseconds for which nothing can become due by itself."""
        patience_s = until - time.monotonic()
        deadline_ns = self._digests.next_deadline_ns()
        if deadline_ns is not None:
            patience_s = min(patience_s, (deadline_ns - self._now_ns()) / 1e9)
        if self._tables.has_idle_timeouts() or self._profiles.has_watches():
            patience_s = min(patience_s, IDLE_SWEEP_S)
        return max(0, int(patience_s * 1e6) + 1)

    def _now_ns(self) -> int:
        return int(self._handle.call("now_us")) * 1000

    def _read(self, patience_us: int) -> None:
        if self._tables.has_idle_timeouts():
            self._handle.call("sweep_idle")
        if self._profiles.has_watches():
            self._handle.call("look_at_links")
        data = self._handle.read("wait_events", patience_us, self._digests.samples_wanted())
        at = 0
        while at < len(data):
            kind, size, identity, handle, time_us = _EVENT.unpack_from(data, at)
            at += _EVENT.size
            self._take(kind, identity, handle, time_us * 1000, data[at : at + size])
            at += (size + 7) // 8 * 8
        self._pending.extend(self._digests.due(self._now_ns()))

    def _take(self, kind: int, identity: int, handle: int, time_ns: int, data: bytes) -> None:
        event: Event | None = None
        if kind == EventKind.PACKET:
            event = Output(identity, data)
        elif kind == EventKind.DIGEST:
            event = self._digests.add(identity, data, time_ns)
        elif kind == EventKind.IDLE:
            event = self._tables.by_handle(identity, handle)
        elif kind == EventKind.LOG:
            self._log(self._messages[identity], data)
        elif kind == EventKind.TRACE:
            self.on_trace(self._decoder.decode(identity, handle, time_ns // 1000, data))
        elif kind == EventKind.PORT:
            logger.warning("port %d is down: %s", identity, os.strerror(handle))
        if event is not None:
            self._pending.append(event)

    def _log(self, message: LogMessage, data: bytes) -> None:
        level = logging.ERROR if message.is_failure else logging.INFO
        logger.log(level, "%s", show(message, data))
