"""A node behind a router: takes requests from it, and reports what the node holds and what waits.

    router > {"request": [arrival_s, input_tokens, output_tokens, blocks], "fetch": true, "number": 7}
    router > {"end": true}                            no more requests
    node   > {"node": "node1"}                        once, first
    node   > {"held": [key, ...], "gone": [key, ...], "stored": [key, ...], "lost": [key, ...],
              "waiting_fragments": 31, "home_s": {"10.0.0.9": 0.02}}
                                                      what changed; keys in hexadecimal
    node   > {"prefilled": 7}                         the first token of that request is there

They speak in lines (hostlib.process.lines).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from functools import partial
from typing import Any

from hostlib.client.client import Client
from hostlib.model.arrivals import Arrival
from hostlib.model.watched_tiers import WatchedTiers
from hostlib.node.inference import InferenceNode
from hostlib.process.lines import MAX_LINE_BYTES, in_lines, read_lines, to_line
from hostlib.protocol.errors import RouterError
from workload.trace import Request

REPORT_PERIOD_S = 0.05
"""Seconds between reports of the work that waits. The end of a prefill, and what the node holds then, is
reported at once."""


class RoutedNode:
    """See the module; `name` is the node's, `path` the router's socket."""

    def __init__(self, path: str, name: str, client: Client, tiers: WatchedTiers) -> None:
        self.received = 0
        """Requests."""
        self._path, self._name = path, name
        self._client, self._tiers = client, tiers
        self._stored: list[bytes] = []
        self._lost: list[bytes] = []
        self._load: dict[str, Any] = {}

    async def play(self, node: InferenceNode, start_s: float) -> None:
        """Serve what the router sends, until it has no more; raises RouterError or LineError."""
        try:
            reader, self._writer = await asyncio.open_unix_connection(self._path, limit=MAX_LINE_BYTES)
        except OSError as error:
            raise RouterError(f"no router at {self._path}: {error.strerror}") from None
        node.on_stored, node.on_lost = self._stored.append, self._lost.append
        self._writer.write(to_line({"node": self._name}))
        reports = asyncio.create_task(self._report_load())
        try:
            await node.serve(self._arrivals(reader), start_s)
        finally:
            reports.cancel()
            self._writer.close()

    async def _arrivals(self, reader: asyncio.StreamReader) -> AsyncIterator[Arrival]:
        async for message in read_lines(reader):
            if "end" in message:
                return
            arrival_s, input_tokens, output_tokens, blocks = message["request"]
            self.received += 1
            request = Request(arrival_s, input_tokens, output_tokens, tuple(blocks))
            yield Arrival(request, message["fetch"], partial(self._prefilled, message["number"]))
        raise RouterError("the router is gone before its requests were served")

    def _prefilled(self, number: int) -> None:
        # The node keeps the blocks before this is called: the router hears of them first.
        self._report()
        self._writer.write(to_line({"prefilled": number}))

    async def _report_load(self) -> None:
        while True:
            await asyncio.sleep(REPORT_PERIOD_S)
            self._report()

    def _report(self) -> None:
        came, left = self._tiers.changed()
        self._say("held", came)
        self._say("gone", left)
        for name, keys in (("stored", self._stored), ("lost", self._lost)):
            self._say(name, keys)
            keys.clear()
        waiting = self._client.outstanding()
        homes = {*waiting, *(member.address for member in self._client.members.nodes)}
        home_s = {home: round(self._client.backlog_s(home), 4) for home in sorted(homes)}
        load = {"waiting_fragments": waiting.total(), "home_s": home_s}
        if load != self._load:
            self._load = load
            self._writer.write(to_line(load))

    def _say(self, name: str, keys: Iterable[bytes]) -> None:
        for message in in_lines(name, keys):
            self._writer.write(to_line(message))
