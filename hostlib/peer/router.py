"""The router: Mooncake's conductor in front of real nodes.

    python -m hostlib.peer.router CONFIG.json

It has all requests of a run, and sends each at its time to the node that `workload.conductor` picks by what
nodes and the controller report: who holds which blocks, what waits, what the switches' pools hold. See
`RouterConfig` for the file, `hostlib.node.routed` for what nodes say, `controller.pool.residents` for what
the controller says, and `hostlib.process.process` for how it is controlled.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hostlib.peer.cluster_state import ClusterState
from hostlib.peer.serving import ServingConfig
from hostlib.process.config import check_each_once, check_positive
from hostlib.process.lines import MAX_LINE_BYTES, listen_at, read_lines, to_line
from hostlib.process.process import HostProcess, main
from hostlib.protocol.errors import LineError, RouterError
from hostlib.storage.storage import read_keys
from workload.conductor import Conductor, ConductorOptions
from workload.keys import KeySpace
from workload.schedule import Route
from workload.trace import Request

JOIN_TIMEOUT_S = 30.0


@dataclass(frozen=True, kw_only=True)
class RouterConfig(ServingConfig):
    """The configuration file of a router."""

    socket: str
    """Path of the Unix socket to listen at."""
    nodes: list[str]
    """Names of the nodes that will come."""
    stored: str | None = None
    """A file with the keys of blocks that storage nodes hold at the start, one a line."""
    ttft_slo_s: float | None = None
    """Real seconds: requests whose first token is expected later are refused; null: none is."""
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(link_bit_s=self.link_bit_s)
        check_each_once("nodes", self.nodes)
        if self.ttft_slo_s is not None:
            check_positive(ttft_slo_s=self.ttft_slo_s)


class RouterProcess(HostProcess):
    """See the module."""

    def __init__(self, config: RouterConfig) -> None:
        self._config = config
        self._requests = config.load_trace().requests
        self._loop = asyncio.get_running_loop()
        self._state = ClusterState(
            len(config.nodes),
            config.members,
            KeySpace(config.model, block_tokens=config.block_tokens),
            config.cost,
            config.scale,
            config.link_bit_s,
            self._loop.time,
        )
        if config.stored is not None:
            self._state.stored(read_keys(Path(config.stored)))
        slo_s = None if config.ttft_slo_s is None else config.scale.duration_s(config.ttft_slo_s)
        self._conductor = Conductor(self._state, ConductorOptions(ttft_slo_s=slo_s), config.seed)
        self._writers: dict[int, asyncio.StreamWriter] = {}
        self._joined = asyncio.Event()
        self._failed: asyncio.Future[None] = self._loop.create_future()
        self._done = False
        self._records: list[dict[str, Any]] = []
        self._refused: list[float] = []
        self._socket = listen_at(config.socket)

    async def run(self, start_s: float) -> None:
        """Send all requests to nodes; raises RouterError or LineError if one does not come, goes away or
        says what can't be."""
        server = await asyncio.start_unix_server(self._serve, sock=self._socket, limit=MAX_LINE_BYTES)
        try:
            work = asyncio.create_task(self._work(start_s))
            await asyncio.wait([work, self._failed], return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                work.cancel()
                self._failed.result()
            work.result()
        finally:
            server.close()  # `async with` would wait for those who are connected, from Python 3.12 on

    def progress(self) -> dict[str, Any]:
        """Return how far it is."""
        return {"routed": len(self._records), "rejected": len(self._refused)}

    def report(self) -> dict[str, Any]:
        """Return the counters."""
        return {
            "requests": len(self._requests),
            "conductor": asdict(self._conductor.stats),
            "pooled_blocks": self._state.pooled_blocks(),
        }

    def result(self) -> dict[str, Any]:
        """Return the counters, a record of each routed request, and when the refused ones came."""
        return {
            **self.report(),
            "records": self._records,
            "refused_s": self._refused,
        }

    def close(self) -> None:
        """Give up the socket."""
        for writer in self._writers.values():
            writer.close()
        self._socket.close()
        Path(self._config.socket).unlink(missing_ok=True)

    async def _work(self, start_s: float) -> None:
        try:
            await asyncio.wait_for(self._joined.wait(), JOIN_TIMEOUT_S)
        except TimeoutError:
            missing = sorted(set(self._config.nodes) - {self._config.nodes[n] for n in self._writers})
            raise RouterError(
                f"these nodes did not come in {JOIN_TIMEOUT_S:g} s: {', '.join(missing)}"
            ) from None
        for request in self._requests:
            await asyncio.sleep(start_s + request.arrival_s - self._loop.time())
            route = self._conductor.assign(request)
            if route is None:
                self._refused.append(request.arrival_s)
            else:
                await self._send(request, route)
        self._done = True
        for writer in self._writers.values():
            writer.write(to_line({"end": True}))
            await writer.drain()

    async def _send(self, request: Request, route: Route) -> None:
        name = self._config.nodes[route.node]
        record = {"arrival_s": request.arrival_s, "node": name, "fetch": route.fetch, "ttft_s": route.ttft_s}
        self._records.append(record)
        asked = [request.arrival_s, request.input_tokens, request.output_tokens, request.blocks]
        writer = self._writers[route.node]
        writer.write(to_line({"request": asked, "fetch": route.fetch, "number": route.number}))
        with suppress(ConnectionError):  # the other side of the connection says so
            await writer.drain()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection: a node's, or the controller's."""
        node: int | None = None
        try:
            async for message in read_lines(reader):
                if "switch" in message:
                    self._state.switch_reports(str(message["switch"]), message)
                elif "node" in message:
                    node = self._join(message["node"], writer)
                elif node is None:
                    raise RouterError(f"who speaks? {str(message)[:80]}")
                elif "prefilled" in message:
                    self._conductor.prefilled(message["prefilled"])
                else:
                    self._state.node_reports(node, message)
            if node is not None and not self._done:
                raise RouterError(f"{self._config.nodes[node]} went away before all requests were sent")
        except (RouterError, LineError) as error:
            if not self._done and not self._failed.done():
                self._failed.set_exception(error)
        finally:
            writer.close()

    def _join(self, name: Any, writer: asyncio.StreamWriter) -> int:
        if name not in self._config.nodes or self._config.nodes.index(name) in self._writers:
            raise RouterError(f"a node that says it is {name!r} is not expected")
        node = self._config.nodes.index(name)
        self._writers[node] = writer
        if len(self._writers) == len(self._config.nodes):
            self._joined.set()
        return node


if __name__ == "__main__":
    sys.exit(main(RouterConfig, RouterProcess, sys.argv[1:]))
