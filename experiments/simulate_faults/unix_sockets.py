"""Unix sockets in virtual time: what an index and its nodes say to each other stays in this process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

Factory = Callable[[], asyncio.BaseProtocol]


class Pipe(asyncio.Transport):
    """One end of a connection; what is written there arrives in the loop's next round."""

    def __init__(self, loop: asyncio.AbstractEventLoop, protocol: Any) -> None:
        super().__init__()
        self.protocol = protocol
        self.other: Pipe
        self._loop, self._closed = loop, False

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        """Send to the other end."""
        if not self._closed:
            self._loop.call_soon(self.other._take, bytes(data))

    def close(self) -> None:
        """Close both ends; what was written before still arrives."""
        if not self._closed:
            self._closed = True
            self._loop.call_soon(self.protocol.connection_lost, None)
            self._loop.call_soon(self.other.close)

    def is_closing(self) -> bool:
        """Return whether it is closed."""
        return self._closed

    def get_write_buffer_size(self) -> int:
        """Return 0: the other end takes all that is written."""
        return 0

    def pause_reading(self) -> None:
        """Do nothing: what a reader does not take yet waits in its buffer."""

    def resume_reading(self) -> None:
        """Do nothing, either."""

    def _take(self, data: bytes) -> None:
        if not self._closed:
            self.protocol.data_received(data)


class Listener:
    """Listener at a path; `listeners` are all, by path."""

    def __init__(self, path: str, listeners: dict[str, Listener], make_protocol: Factory) -> None:
        self._path, self._listeners, self._make_protocol = path, listeners, make_protocol
        self._accepted: list[Pipe] = []
        listeners[path] = self

    def connect(self, loop: asyncio.AbstractEventLoop, make_protocol: Factory) -> Pipe:
        """Return the end of who connects."""
        here, there = Pipe(loop, make_protocol()), Pipe(loop, self._make_protocol())
        here.other, there.other = there, here
        self._accepted.append(there)
        for end in (there, here):
            end.protocol.connection_made(end)
        return here

    def close(self) -> None:
        """End all connections and take no more, as when the process ends."""
        if self._listeners.get(self._path) is self:
            del self._listeners[self._path]
        for end in self._accepted:
            end.close()

    async def serve_forever(self) -> None:
        """Wait until cancelled."""
        await asyncio.get_running_loop().create_future()

    async def __aenter__(self) -> Listener:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()
