"""An event loop whose clock jumps to the next timer instead of waiting for it."""

from __future__ import annotations

import asyncio
import selectors
import socket
from collections.abc import Coroutine
from typing import Any, TypeVar

from experiments.simulate_faults.unix_sockets import Factory, Listener, Pipe

Result = TypeVar("Result")


class StuckError(Exception):
    """Error of a loop in which nothing is scheduled any more, so that what runs waits for ever."""


class JumpingSelector(selectors.DefaultSelector):
    """Selector without files: waiting means that the clock moves."""

    now_s = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise StuckError("nothing is scheduled and nobody can wake the loop")
        self.now_s += max(0.0, timeout)
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """Runs timers in order without waiting for them."""

    def __init__(self) -> None:
        self._jumping = JumpingSelector()
        self._listeners: dict[str, Listener] = {}
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now_s

    def step_clock(self, by_s: float) -> None:
        """Let the clock go forward at once, as for a machine that stood still."""
        self._jumping.now_s += by_s

    async def create_unix_server(  # type: ignore[override]
        self, protocol_factory: Factory, path: str | None = None, *, sock: socket.socket, **_: Any
    ) -> Listener:
        return Listener(path or sock.getsockname(), self._listeners, protocol_factory)

    async def create_unix_connection(  # type: ignore[override]
        self, protocol_factory: Factory, path: str, **_: Any
    ) -> tuple[Pipe, Any]:
        if path not in self._listeners:
            raise ConnectionRefusedError(path)
        pipe = self._listeners[path].connect(self, protocol_factory)
        return pipe, pipe.protocol


def run_virtual(main: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine as asyncio.run does, in virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)
