"""Frames between processes of one node and one user: a line of JSON that says what, then bytes."""

from __future__ import annotations

import json
import os
import socket
import struct
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from hostlib.protocol.errors import ConfigError
from hostlib.protocol.wire import MAX_BLOCK_BYTES

if TYPE_CHECKING:
    import asyncio

    from hostlib.protocol.wire import Buffer

MAX_LINE_BYTES = 1 << 16
"""Enough for the longest request: 256 questions."""
_LENGTHS = struct.Struct("<II")
_CREDENTIALS = struct.Struct("=iII")

Frame = tuple[dict[str, Any], bytes]


class Channel:
    """One end of a connection. Frames are sent whole; read from one task."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    def check_user(self) -> None:
        """Raise ConfigError if the other end is another user's process, which could read and write our
        blocks."""
        connection = self._writer.get_extra_info("socket")
        raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        process, user, _ = _CREDENTIALS.unpack(raw)
        if user != os.geteuid():
            raise ConfigError(f"the pool's client at this address is process {process} of another user")

    async def read(self) -> Frame | None:
        """Return the next frame; None at the end of the connection, and where what comes is no frame."""
        try:
            said, body = _LENGTHS.unpack(await self._reader.readexactly(_LENGTHS.size))
            if said > MAX_LINE_BYTES or body > MAX_BLOCK_BYTES:
                return None
            line = await self._reader.readexactly(said)
            what = json.loads(line)
            return (what, await self._reader.readexactly(body)) if isinstance(what, dict) else None
        except (EOFError, OSError, ValueError, RecursionError):
            return None

    def send(self, said: dict[str, Any], body: Buffer = b"") -> None:
        """Queue a frame, whose body may change afterwards; nothing happens on a connection that has ended."""
        line = json.dumps(said, separators=(",", ":")).encode()
        content = memoryview(body).cast("B")
        self._writer.write(_LENGTHS.pack(len(line), len(content)) + line)
        if len(content):
            self._writer.write(bytes(content))  # from Python 3.12 on, what waits is not copied

    async def drain(self) -> None:
        """Wait while too much is queued."""
        with suppress(OSError):  # `read` says that the connection has ended
            await self._writer.drain()

    def close(self) -> None:
        """End the connection."""
        self._writer.close()
