"""Work that is too long for one turn of the loop, and goes on in a later one."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class LaterTurn:
    """The rest of a piece of work, which the loop's next turn does. There is at most one."""

    def __init__(self) -> None:
        self._handle: asyncio.Handle | None = None
        self._work: Callable[[], object] | None = None

    def begin(self, work: Callable[[], object]) -> None:
        """Have the work done in the next turn, unless some waits for that already."""
        if self._handle is None:
            self._work = work
            self._handle = asyncio.get_running_loop().call_soon(self._do)

    def finish(self) -> None:
        """Do the work now, and what that leaves to a later turn, too."""
        while self._handle is not None:
            self._handle.cancel()
            self._do()

    def stop(self) -> None:
        """Do nothing any more."""
        if self._handle is not None:
            self._handle.cancel()

    def _do(self) -> None:
        work, self._handle, self._work = self._work, None, None
        if work is not None:
            work()
