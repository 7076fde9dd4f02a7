"""Queue of a switch's messages that the controller has not read yet: bounded for each kind of message.

Answers to the controller's own operations, and heartbeats, come before reports. A flood of reports does not
push them out, nor does a flood of messages about blocks that nodes compute. Such messages wait until reports
are read. The others, of which several come within milliseconds, wait for one another, so the reader is woken
once for all of them.
"""

from __future__ import annotations

import threading
from collections import deque
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

GATHER_S: Final = 0.005
"""Seconds for which others are waited for if there is no report."""


class Kind(IntEnum):
    """Kinds of messages, in the order in which they are taken."""

    ANSWER = 0
    REPORT = 1
    EXPECTATION = 2


class Inbox:
    """Stream messages from one thread to another."""

    def __init__(self, most: int, kind_of: Callable[[Any], Kind]) -> None:
        """Make an inbox for at most so many messages of each kind."""
        self._most, self._kind_of = most, kind_of
        self._waiting: dict[Kind, deque[Any]] = {kind: deque() for kind in Kind}
        self._reports = self._waiting[Kind.REPORT]
        self._woken = False
        self._changed = threading.Condition()

    def put(self, message: Any) -> bool:
        """Keep a message; False if there are too many of its kind."""
        with self._changed:
            waiting = self._waiting[self._kind_of(message)]
            if len(waiting) >= self._most:
                return False
            waiting.append(message)
            if waiting is self._reports or len(waiting) == 1:
                self._changed.notify()
            return True

    def wake(self) -> None:
        """End a `take` that waits."""
        with self._changed:
            self._woken = True
            self._changed.notify()

    def take(self, timeout_s: float, most: int) -> list[Any]:
        """Return up to `most` messages; none if none came in time, or `wake` was called.

        It waits for the first message, and for more if that is no report.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._woken or any(self._waiting.values()), timeout_s)
            if any(self._waiting.values()):
                self._changed.wait_for(lambda: self._woken or self._reports, min(GATHER_S, timeout_s))
            self._woken = False
            taken: list[Any] = []
            for waiting in self._waiting.values():
                while waiting and len(taken) < most:
                    taken.append(waiting.popleft())
            return taken
