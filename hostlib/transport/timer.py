"""A timer that is asked for several times and goes off once, at the earliest of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable


class Timer:
    """Calls `function(how late)` once, at the earliest of the times asked for."""

    def __init__(self, loop: asyncio.AbstractEventLoop, function: Callable[[float], None]) -> None:
        self._loop, self._function = loop, function
        self._handle: asyncio.TimerHandle | None = None

    @property
    def is_set(self) -> bool:
        """Return whether it is going to be called."""
        return self._handle is not None

    def at_latest(self, when_s: float) -> None:
        """Call it then, by the loop's clock, unless that is due before anyway."""
        if self._handle is not None:
            if self._handle.when() <= when_s:
                return
            self._handle.cancel()
        self._handle = self._loop.call_at(when_s, self._fire, when_s)

    def cancel(self) -> None:
        """Call nothing any more."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _fire(self, due_s: float) -> None:
        self._handle = None
        self._function(self._loop.time() - due_s)
