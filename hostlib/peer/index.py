"""The index: says which node holds which block, where nodes lend one another their memory.

    python -m hostlib.peer.index CONFIG.json

Nodes tell it what they hold as that changes, ask it where the missing blocks of a chain are before they fetch
them, and say what they then fetch (`hostlib.peer.lending`):

    node  > {"node": "10.0.0.1"}                      once, first
    node  > {"held": [key, ...], "gone": [key, ...]}  what changed; keys in hexadecimal
    node  > {"find": [key, ...], "number": 7}
    index > {"number": 7, "nodes": [address, ...], "waits_s": {address: 0.02}}
                                                      of the longest prefix that other nodes hold
    node  > {"promised": {address: blocks}}

See `IndexConfig` for the file and `hostlib.process.process` for how it is controlled.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hostlib.peer.holdings import Holdings
from hostlib.process.config import ProcessConfig, check_address, check_each_once, check_positive
from hostlib.process.lines import MAX_LINE_BYTES, keys_in, listen_at, read_lines, to_line
from hostlib.process.process import HostProcess, main
from hostlib.protocol.errors import LineError
from hostlib.protocol.wire import VALUE_FRAME_BYTES

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class IndexConfig(ProcessConfig):
    """The configuration file of an index."""

    socket: str
    """Path of the Unix socket to listen at."""
    nodes: list[str]
    """Addresses of the nodes that may come."""
    block_fragments: float
    """Fragments of a block as it is sent, on average."""
    link_bit_s: float
    """Rate of a node's link."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(block_fragments=self.block_fragments, link_bit_s=self.link_bit_s)
        check_each_once("nodes", self.nodes)
        for node in self.nodes:
            check_address("nodes", node)

    @property
    def block_s(self) -> float:
        """Return the seconds that a block takes on a node's link."""
        return self.block_fragments * 8 * VALUE_FRAME_BYTES / self.link_bit_s


class IndexProcess(HostProcess):
    """See the module. A node that says nonsense is no longer listened to, and lends nothing."""

    def __init__(self, config: IndexConfig) -> None:
        self._path = Path(config.socket)
        loop = asyncio.get_running_loop()
        self._holdings = Holdings(config.nodes, config.block_s, loop.time)
        self._absent = set(config.nodes)
        self._refused = 0
        self._connections: set[asyncio.StreamWriter] = set()
        self._socket = listen_at(config.socket)
        self._serving = loop.create_task(self._listen())
        self._serving.add_done_callback(lambda task: self._socket.close())

    async def run(self, start_s: float) -> None:
        """Serve until stopped."""
        await self._serving

    def progress(self) -> dict[str, Any]:
        """Return how much is known."""
        return {"blocks": self._holdings.blocks(), "questions": self._holdings.stats.questions}

    def report(self) -> dict[str, Any]:
        """Return all counters."""
        return {"blocks": self._holdings.blocks(), "refused": self._refused, **asdict(self._holdings.stats)}

    def close(self) -> None:
        """Give up the socket."""
        self._serving.cancel()
        for writer in self._connections:
            writer.close()
        self._path.unlink(missing_ok=True)

    async def _listen(self) -> None:
        """Listen from the beginning: nodes say what they hold before the run does."""
        server = await asyncio.start_unix_server(self._serve, sock=self._socket, limit=MAX_LINE_BYTES)
        async with server:
            await server.serve_forever()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections.add(writer)
        node: str | None = None
        try:
            async for message in read_lines(reader):
                if node is None:
                    node = self._join(message)
                else:
                    await self._answer(node, message, writer)
        except (LineError, ConnectionError) as error:
            self._refused += 1
            log.warning("%s is not listened to any more: %s", node or "somebody", error)
        finally:
            if node is not None:
                self._holdings.forget(node)
                self._absent.add(node)
            self._connections.discard(writer)
            writer.close()

    def _join(self, message: dict[str, Any]) -> str:
        node = message.get("node")
        if not isinstance(node, str) or node not in self._absent:
            raise LineError(f"a node that says it is {str(node)[:80]!r} is not expected")
        self._absent.remove(node)
        return node

    async def _answer(self, node: str, message: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        self._holdings.held(node, keys_in(message, "held"))
        self._holdings.gone(node, keys_in(message, "gone"))
        promised = message.get("promised", {})
        if not isinstance(promised, dict):
            raise LineError(f"promised: not blocks by node: {str(promised)[:80]}")
        self._holdings.promise(promised)
        if "find" in message:
            located = self._holdings.locate(node, keys_in(message, "find"))
            writer.write(to_line({"number": message.get("number"), **located._asdict()}))
            await writer.drain()


if __name__ == "__main__":
    sys.exit(main(IndexConfig, IndexProcess, sys.argv[1:]))
