"""A node of the experiment: writes segments, and reads them as it is told.

    python -m experiments.guidelines.reader CONFIG.json      {"address": ..., "homes": [...]}

stdout  < {"event": "ready"}
stdin   > {"write": {"name", "size", "page_bytes", "homes"}}
stdout  < {"event": "written"}
stdin   > {"read": {"name", "homes", "request_bytes", "in_flight", "warm_s", "seconds", "at_s", "seed",
                   "hot"}}
stdout  < {"event": "read", "bytes": n, "latency_ms": p50, "failed": requests}
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
from collections import deque
from pathlib import Path
from typing import Any

from hostlib.client.client import Client
from hostlib.engine import ObjectPool, PoolConfig
from hostlib.engine.segment import SegmentError, SegmentReader, SegmentWriter
from hostlib.protocol.members import Members
from hostlib.protocol.seal import Seal
from hostlib.transport.endpoint import UdpEndpoint

SILENCE_S = 10.0


class Node:
    """One client; a segment's homes are those that a command names."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._config = config
        self._endpoint: UdpEndpoint | None = None

    async def obey(self, command: dict[str, Any]) -> dict[str, Any]:
        """What to say of it."""
        if "write" in command:
            return await self._write(**command["write"])
        return await self._read(**command["read"])

    def _open(self, homes: list[str]) -> tuple[ObjectPool, Client, Seal]:
        # Links are full on purpose: a home that answers late is not dead.
        patience = {"transfer_timeout_s": 60.0, "silence_s": SILENCE_S}
        settings = PoolConfig.from_mapping({**self._config, **patience, "homes": homes})
        seal = Seal(settings.tenant, settings.secret_bytes())
        self._endpoint = UdpEndpoint(settings.address)
        client = Client(self._endpoint, Members.of(homes), seal)
        return ObjectPool(client, settings), client, seal

    def _close(self, client: Client) -> None:
        client.close()
        if self._endpoint is not None:
            self._endpoint.close()

    async def _write(self, name: str, size: int, page_bytes: int, homes: list[str]) -> dict[str, Any]:
        pool, client, seal = self._open(homes)
        try:
            writer = SegmentWriter(pool, client, seal, name, size, page_bytes)
            await writer.open()
            await writer.store(0, random.Random(name).randbytes(size))
            await writer.publish()
        finally:
            self._close(client)
        return {"event": "written"}

    async def _read(
        self,
        name: str,
        homes: list[str],
        request_bytes: int,
        in_flight: int,
        warm_s: float,
        seconds: float,
        at_s: float,
        seed: int,
        hot: bool,
    ) -> dict[str, Any]:
        """Load from `at_s` on, all places in random order or always the first, and count the bytes of pages
        that arrive within `seconds`, which begin `warm_s` later."""
        pool, client, seal = self._open(homes)
        loop, choose = asyncio.get_running_loop(), random.Random(seed)
        latencies_s: list[float] = []
        failed: list[int] = []
        begins_s = at_s + warm_s
        ends_s = begins_s + seconds
        counted: list[int] = []

        async def count() -> None:
            for moment_s in (begins_s, ends_s):
                await asyncio.sleep(moment_s - loop.time())
                counted.append(pool.stats.loaded_bytes)

        async def load() -> None:
            while (began_s := loop.time()) < ends_s:
                place = places.popleft()  # none is loaded twice at once, which would be one transfer
                try:
                    await reader.load(place * request_bytes, request_bytes)
                    if began_s >= begins_s:
                        latencies_s.append(loop.time() - began_s)
                except SegmentError:
                    failed.append(place)
                places.append(place)

        try:
            reader = SegmentReader(pool, client, seal, name)
            await reader.refresh()
            assert reader.commit is not None
            order = list(range(in_flight if hot else reader.commit.size // request_bytes))
            choose.shuffle(order)
            places = deque([0] * len(order) if hot else order)
            await asyncio.sleep(at_s - loop.time())
            await asyncio.gather(count(), *(load() for _ in range(in_flight)))
        finally:
            self._close(client)
        middle = sorted(latencies_s)[len(latencies_s) // 2] if latencies_s else 0.0
        return {
            "event": "read",
            "bytes": counted[1] - counted[0],
            "latency_ms": round(1000 * middle, 3),
            "failed": len(failed),
        }


async def serve(config: dict[str, Any]) -> None:
    """Until the end of stdin, or stop."""
    node = Node(config)
    print(json.dumps({"event": "ready"}), flush=True)
    while (line := await asyncio.to_thread(sys.stdin.readline)) and line.strip() != "stop":
        print(json.dumps(await node.obey(json.loads(line))), flush=True)


if __name__ == "__main__":
    asyncio.run(serve(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))))
