"""What a node behind a router says of itself."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

from hostlib.client.client import Client
from hostlib.model.arrivals import Arrival
from hostlib.model.watched_tiers import WatchedTiers
from hostlib.node.inference import InferenceNode
from hostlib.node.routed import RoutedNode
from hostlib.process.lines import to_line
from hostlib.protocol.members import Members

KEY, PUSHED = b"k" * 16, b"p" * 16


class _IdleClient:
    """A client that asks for nothing."""

    members = Members.of(["10.0.0.9"])

    def outstanding(self) -> Counter[str]:
        return Counter()

    def backlog_s(self, home: str) -> float:
        return 0.0


class _Node:
    """Looks a block up, computes until a report has passed, and keeps it; another was pushed meanwhile."""

    def __init__(self, tiers: WatchedTiers, reported: asyncio.Event) -> None:
        self._tiers, self._reported = tiers, reported

    async def serve(self, arrivals: AsyncIterator[Arrival], start_s: float) -> None:
        async for arrival in arrivals:
            assert self._tiers.use(KEY) is None
            self._reported.clear()
            await self._reported.wait()
            self._tiers.place(PUSHED)
            self._tiers.keep([KEY])
            arrival.prefilled()


def test_what_a_prefill_leaves_is_said_before_its_end_though_a_report_passed_meanwhile(
    tmp_path: Path,
) -> None:
    async def play() -> list[dict[str, Any]]:
        said: list[dict[str, Any]] = []
        reported = asyncio.Event()
        tiers = WatchedTiers(4, 4)
        routed = RoutedNode(str(tmp_path / "router"), "node1", cast(Client, _IdleClient()), tiers)
        report = routed._report

        def noticed() -> None:
            report()
            reported.set()

        routed._report = noticed  # type: ignore[method-assign]

        async def router(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(to_line({"request": [0.0, 512, 1, [1]], "fetch": False, "number": 7}))
            writer.write(to_line({"end": True}))
            said.extend([json.loads(line) async for line in reader])
            writer.close()

        async with await asyncio.start_unix_server(router, str(tmp_path / "router")) as server:
            await routed.play(cast(InferenceNode, _Node(tiers, reported)), 0.0)
            while {"prefilled": 7} not in said:
                await asyncio.sleep(0.001)
            server.close()
        return said

    said = asyncio.run(asyncio.wait_for(play(), 60))
    before = said[: said.index({"prefilled": 7})]
    held = {key for message in before for key in message.get("held", ())}
    assert held == {KEY.hex(), PUSHED.hex()}
