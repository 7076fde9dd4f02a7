"""Proxy between two Unix sockets whose connections hang on request.

    python -m experiments.faults.proxy LISTENING SERVER

    stdout  < {"event": "ready"}
    stdin   > hang              pass nothing on
    stdin   > on                pass everything on again
    stdin   > stop              end; as does the end of stdin

Neither end learns that its connection hangs: the proxy takes what it sends, and nothing comes back.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from commands.child import commands, say

CHUNK_BYTES = 1 << 16


class Proxy:
    """Proxy between each client that connects and the socket `server`."""

    def __init__(self, server: Path) -> None:
        self.passing = asyncio.Event()
        self.passing.set()
        self._server = server

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection, which ends if either of its ends closes it."""
        try:
            from_server, to_server = await asyncio.open_unix_connection(self._server)
        except OSError:  # the server is not there: the client sees its connection close
            writer.close()
            return
        ways = [
            asyncio.create_task(self._pass(reader, to_server)),
            asyncio.create_task(self._pass(from_server, writer)),
        ]
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        for way in ways:
            way.cancel()
        for end in (writer, to_server):
            end.close()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(CHUNK_BYTES):
                await self.passing.wait()
                writer.write(data)
                await writer.drain()
        except OSError:
            return


async def _run(listening: Path, server: Path) -> None:
    proxy = Proxy(server)
    listener = await asyncio.start_unix_server(proxy.serve, listening)
    say("ready")
    async for line in commands():
        if line == "hang":
            proxy.passing.clear()
        else:
            proxy.passing.set()
    listener.close()


def main(arguments: list[str]) -> int:
    """Run the proxy until stdin ends. Returns exit code 0, or 2 if it could not begin."""
    if len(arguments) != 2:
        print("usage: python -m experiments.faults.proxy LISTENING SERVER", file=sys.stderr)
        return 2
    try:
        asyncio.run(_run(Path(arguments[0]), Path(arguments[1])))
    except OSError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
