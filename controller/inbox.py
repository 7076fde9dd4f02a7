"""What a switch said and the controller has not read yet: bounded, and by kind.

Answers to the controller's own operations, and heartbeats, come before reports, and a flood of reports does
not push them out. Entries wait for reports; answers, of which several come within milliseconds, wait for one
another: who reads is woken once for all of them.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

GATHER_S: Final = 0.005
"""That an answer waits for others, where no report is there."""


class Inbox:
    """Stream messages from one thread to another."""

    def __init__(self, most: int, is_report: Callable[[Any], bool]) -> None:
        """At most so many reports, and so many other messages."""
        self._most, self._is_report = most, is_report
        self._answers: deque[Any] = deque()
        self._reports: deque[Any] = deque()
        self._woken = False
        self._changed = threading.Condition()

    def put(self, message: Any) -> bool:
        """Keep a message; False if there are too many of its kind."""
        with self._changed:
            kind = self._reports if self._is_report(message) else self._answers
            if len(kind) >= self._most:
                return False
            kind.append(message)
            if kind is self._reports or len(kind) == 1:
                self._changed.notify()
            return True

    def wake(self) -> None:
        """End a `take` that waits."""
        with self._changed:
            self._woken = True
            self._changed.notify()

    def take(self, timeout_s: float, most: int) -> list[Any]:
        """Up to `most` messages, waiting for the first, and after an answer for more; none if there was none
        in time, or `wake`."""
        with self._changed:
            self._changed.wait_for(lambda: self._woken or self._answers or self._reports, timeout_s)
            if self._answers:
                self._changed.wait_for(lambda: self._woken or self._reports, min(GATHER_S, timeout_s))
            self._woken = False
            taken: list[Any] = []
            for kind in (self._answers, self._reports):
                while kind and len(taken) < most:
                    taken.append(kind.popleft())
            return taken
