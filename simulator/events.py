"""Clock and queue of the simulation; a process is a generator that yields what it waits for.

Actions that are due at the same time happen in the order in which they were scheduled. A process that is
started takes its first step before anything else that is due. An action allocates nothing but its entry in
the heap, which is most of what a simulation with hundreds of thousands of actions spends.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from heapq import heappop, heappush
from types import TracebackType
from typing import Any, Final

PAGES_PER_S: Final = 1024.0
"""Pages per simulated second. The busiest simulations have a few thousand actions a second, so a page has a
few entries."""

AT_ONCE = 1 << 62
"""Number that is subtracted from an action's number to put it before all that is due now."""


class Event:
    """Event that happens once."""

    __slots__ = ("_callbacks", "_loop", "happened")

    def __init__(self, loop: Loop) -> None:
        self.happened = False
        self._loop = loop
        self._callbacks: list[Callable[[], None]] = []

    def succeed(self) -> None:
        """Make it happen now, after what is already due."""
        self._loop.after(0.0, self._fire)

    def call(self, action: Callable[[], None]) -> None:
        """Call `action` when the event happens; it must not have happened yet."""
        self._callbacks.append(action)

    def _fire(self) -> None:
        self.happened = True
        for action in self._callbacks:
            action()
        self._callbacks.clear()


Steps = Generator[Event | float, None, None]
"""Process that yields an event to wait for, or seconds to pass."""


Place = tuple[float, int, Callable[..., object], tuple[Any, ...]]
"""Time in seconds, number that orders actions of the same time, action, and its arguments."""


class Loop:
    """Clock, in seconds from 0 on, and the actions that are due."""

    def __init__(self) -> None:
        self.now = 0.0
        self._open: list[Place] = []
        """Heap of what is due up to the end of the current page of time."""
        self._page = 0
        self._later: dict[int, list[Place]] = {}
        """Actions of later pages by page, unordered."""
        self._pages: list[int] = []
        """Heap of the later pages that have actions."""
        self._number = 0

    def after(self, delay_s: float, action: Callable[..., object], *arguments: Any) -> None:
        """Call `action` in `delay_s` seconds."""
        self._number = number = self._number + 1
        time_s = self.now + delay_s
        self._put((time_s, number, action, arguments), int(time_s * PAGES_PER_S))

    def at(self, time_s: float, action: Callable[..., object], *arguments: Any) -> None:
        """Call `action` at a time that has not passed."""
        self._number = number = self._number + 1
        self._put((time_s, number, action, arguments), int(time_s * PAGES_PER_S))

    def event(self) -> Event:
        """Return an event that has not happened."""
        return Event(self)

    def process(self, steps: Steps) -> Event:
        """Run a process and return the event of its end."""
        ended = Event(self)
        self._begin(steps, ended)
        return ended

    def start(self, steps: Steps) -> None:
        """Run a process whose end nothing waits for."""
        self._begin(steps, None)

    def run(self, until: Event | None = None) -> None:
        """Run until the event has happened or, without one, until nothing is left to do.

        Raises RuntimeError if nothing is left to do and the event has not happened.
        """
        end = Event(self) if until is None else until
        places = self._open
        while not end.happened:
            if not places:
                if not self._pages:
                    break
                self._page = heappop(self._pages)
                places = self._open = self._later.pop(self._page)
                places.sort()
            self.now, _number, action, arguments = heappop(places)  # "_" would make an object of it in mypyc
            action(*arguments)
        if until is not None and not until.happened:
            raise RuntimeError("nothing is left to do, but the end has not come")

    def _put(self, place: Place, page: int) -> None:
        if page <= self._page:
            heappush(self._open, place)
            return
        places = self._later.get(page)
        if places is None:
            self._later[page] = [place]
            heappush(self._pages, page)
        else:
            places.append(place)

    def _begin(self, steps: Steps, ended: Event | None) -> None:
        self._number += 1
        place = self.now, self._number - AT_ONCE, self._step, (steps, ended)
        self._put(place, int(self.now * PAGES_PER_S))

    def _step(self, steps: Steps, ended: Event | None) -> None:
        for awaited in steps:
            if not isinstance(awaited, Event):
                self.after(awaited, self._step, steps, ended)
                return
            if not awaited.happened:
                awaited.call(lambda: self._step(steps, ended))
                return
        if ended is not None:
            ended.succeed()


class Turns:
    """Queue for something that one process has at a time, in the order in which they asked."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._waiting: deque[Event] = deque()
        """Events of the turns; the first has its turn now."""

    def request(self) -> Turn:
        """Return a turn: wait for `begun`, and leave by ending the `with` block."""
        begun = Event(self._loop)
        self._waiting.append(begun)
        if len(self._waiting) == 1:
            begun.succeed()
        return Turn(self, begun)

    def end(self) -> None:
        """End the first turn and begin the next."""
        self._waiting.popleft()
        if self._waiting:
            self._waiting[0].succeed()


class Turn:
    """Turn of one process, as a context manager."""

    __slots__ = ("_turns", "begun")

    def __init__(self, turns: Turns, begun: Event) -> None:
        self._turns = turns
        self.begun = begun

    def __enter__(self) -> Event:
        return self.begun

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._turns.end()
