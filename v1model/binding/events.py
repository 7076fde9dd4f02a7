"""The runtime's events turned into the control plane's: packets for the CPU, digest lists, idle
entries; log messages go to the logger `v1model.program`."""

from __future__ import annotations

import logging
import os
import struct
import threading
import time
from collections import deque
from enum import IntEnum
from typing import TYPE_CHECKING

from v1model.backend.layout import wire_bytes
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
    """enum event_kind"""

    PACKET = 0
    DIGEST = 1
    IDLE = 2
    LOG = 3
    PORT = 4
    TRACE = 5


class Events:
    """One consumer at a time reads the runtime's buffer; what it does not take waits in `_pending`."""

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
        """Ends a wait; when this returns, nobody reads any more."""
        self._closed = True
        self._handle.call("interrupt_events")
        with self._reading:
            pass

    def interrupt(self) -> None:
        """Ends a wait, or else the next one, with what there is."""
        self._interrupted = True
        self.look_again()

    def look_again(self) -> None:
        """Something may become due sooner than a wait that goes on has reckoned."""
        self._handle.call("interrupt_events")

    def collect(self) -> None:
        """Takes over what the runtime holds by now, unless somebody waits for it anyway."""
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
        """How long nothing can become due by itself."""
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
        text, at = _on_one_line(message.text), 0
        for width, signed in zip(message.widths, message.signed, strict=True):
            size = wire_bytes(width)
            value = int.from_bytes(data[at : at + size], "big")
            if signed and value >> (width - 1):
                value -= 1 << width
            text = text.replace("{}", str(value), 1)
            at += size
        logger.log(logging.ERROR if message.is_failure else logging.INFO, "%s", text)


def _on_one_line(text: str) -> str:
    """What a program says, without what would begin another line or command a terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
