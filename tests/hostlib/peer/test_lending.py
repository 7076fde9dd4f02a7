"""Nodes that lend their memory: who is asked, what comes, and what a bad index can do."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hostlib.peer import lending as module
from hostlib.peer.index import IndexProcess
from hostlib.process.lines import to_line
from hostlib.protocol.content import block_content
from hostlib.protocol.errors import BlockNotFoundError
from hostlib.protocol.transfer import BlockRef
from tests.asynchronous import in_real_time, until
from tests.hostlib.lenders import INDEX_LINK_BIT_S, LendingNode, index, known
from tests.hostlib.network import MemoryNetwork
from tests.hostlib.world import BLOCK_BYTES, FRAGMENTS, key, ref

A, B, C = NODES = ["10.0.0.1", "10.0.0.2", "10.0.0.3"]


class Lenders:
    """Three of them, and what closes them."""

    def __init__(self, folder: Path) -> None:
        self.network = MemoryNetwork()
        self.a, self.b, self.c = (
            LendingNode(self.network, address, NODES, folder / "index") for address in NODES
        )

    async def join(self) -> None:
        for node in (self.a, self.b, self.c):
            node.lending.join()
        await until(lambda: all(node.lending.joined for node in (self.a, self.b, self.c)))

    def close(self) -> None:
        for node in (self.a, self.b, self.c):
            node.close()


@asynccontextmanager
async def one_lent(folder: Path) -> AsyncIterator[tuple[IndexProcess, Lenders]]:
    """The index and its nodes once it knows that the second holds block 1."""
    async with index(folder, NODES) as served:
        nodes = Lenders(folder)
        try:
            await nodes.join()
            nodes.b.hold(1)
            await known(served, 1)
            yield served, nodes
        finally:
            nodes.close()


@in_real_time
async def test_a_chain_comes_from_the_nodes_that_hold_it(tmp_path: Path) -> None:
    async with index(tmp_path, NODES) as served:
        nodes = Lenders(tmp_path)
        nodes.b.hold(1, 2)
        await nodes.join()
        nodes.c.hold(3)
        await known(served, 3)
        located = await nodes.a.lending.locate([ref(number) for number in (1, 2, 3, 4)])
        assert [block.homes for block in located] == [(B,), (B,), (C,)]
        nodes.a.lending.promise(located)
        fetched = await nodes.a.client.get_chain(located)
        assert [block.content for block in fetched.blocks] == [
            block_content(key(number), BLOCK_BYTES) for number in (1, 2, 3)
        ]
        assert await nodes.a.lending.locate([ref(4)]) == []
        again = await nodes.c.lending.locate([ref(1)])
        assert again[0].homes == (B,)
        block_s = FRAGMENTS * 8 * 634 / INDEX_LINK_BIT_S
        assert 0 < nodes.c.lending.wait_s(B) <= 2 * block_s
        assert nodes.c.lending.wait_s(A) == 0
        nodes.close()


@in_real_time
async def test_what_a_node_no_longer_holds_it_neither_lends_nor_is_asked_for(tmp_path: Path) -> None:
    async with one_lent(tmp_path) as (served, nodes):
        (old,) = await nodes.a.lending.locate([ref(1)])
        for number in range(10, 18):  # as many as it has room for
            nodes.b.hold(number)
        await until(lambda: served.report()["blocks"] == 8)
        assert await nodes.a.lending.locate([ref(1)]) == []
        with pytest.raises(BlockNotFoundError):
            await nodes.a.client.get(old)


@in_real_time
async def test_a_node_that_goes_away_is_not_named_any_more(tmp_path: Path) -> None:
    async with one_lent(tmp_path) as (served, nodes):
        nodes.b.lending.close()
        await known(served, 0)
        assert await nodes.a.lending.locate([ref(1)]) == []


@in_real_time
async def test_without_an_index_nothing_is_located_and_nothing_waits(tmp_path: Path) -> None:
    nodes = Lenders(tmp_path)
    nodes.a.lending.join()
    nodes.b.hold(1)
    assert await nodes.a.lending.locate([ref(1)]) == []
    assert nodes.a.lending.stats.unanswered == 1
    nodes.close()


@in_real_time
async def test_an_index_that_goes_away_costs_what_others_hold(tmp_path: Path) -> None:
    nodes = Lenders(tmp_path)
    async with index(tmp_path, NODES) as served:
        await nodes.join()
        nodes.b.hold(1)
        await known(served, 1)
        assert await nodes.a.lending.locate([ref(1)])
    assert await nodes.a.lending.locate([ref(1)]) == []
    nodes.b.hold(2)  # and is told to nobody
    await asyncio.sleep(0)
    nodes.close()


@in_real_time
async def test_an_index_that_comes_back_learns_everything_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "REJOIN_S", 0.01)
    nodes = Lenders(tmp_path)
    for node in (nodes.a, nodes.b, nodes.c):  # there is none yet
        node.lending.join()
    nodes.b.hold(1)
    for _ in range(2):
        async with index(tmp_path, NODES) as served:
            await known(served, 1)
            (block,) = await _located(nodes.a, 1)
            assert block.homes == (B,)
    nodes.close()


async def _located(node: LendingNode, number: int) -> list[BlockRef]:
    """Once its index answers."""
    found: list[BlockRef] = []
    async with asyncio.timeout(60):
        while not found:
            found = await node.lending.locate([ref(number)])
            await asyncio.sleep(0.002)
    return found


@in_real_time
async def test_an_index_that_hangs_is_waited_for_once_and_gone_back_to_less_and_less_often(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FIND_TIMEOUT_S", 0.05)
    monkeypatch.setattr(module, "REJOIN_S", 0.01)
    came: list[asyncio.StreamWriter] = []

    async def hangs(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        came.append(writer)

    async with await asyncio.start_unix_server(hangs, str(tmp_path / "index")):
        node = LendingNode(MemoryNetwork(), A, NODES, tmp_path / "index")
        node.lending.join()
        await until(lambda: node.lending.joined)
        assert await node.lending.locate([ref(1)]) == []
        waited_s = node.lending.stats.asked_s
        assert waited_s >= 0.05
        for _ in range(20):  # the connection is left: nobody waits again before it is back
            assert await node.lending.locate([ref(1)]) == []
        assert node.lending.stats.asked_s - waited_s < 0.05
        again_s = []
        for number in (2, 3, 4):
            left_s = asyncio.get_running_loop().time()
            await until(lambda number=number: len(came) == number)  # type: ignore[misc]
            again_s.append(asyncio.get_running_loop().time() - left_s)
            assert await node.lending.locate([ref(1)]) == []
        assert again_s[2] > 0.04  # 0.01, 0.02, 0.04
        node.close()
        for writer in came:
            writer.close()


@in_real_time
async def test_an_index_that_takes_nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_UNSENT_BYTES", 1 << 16)

    came: list[asyncio.StreamWriter] = []

    async def takes_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        came.append(writer)

    async with await asyncio.start_unix_server(takes_nothing, str(tmp_path / "index")):
        node = LendingNode(MemoryNetwork(), A, NODES, tmp_path / "index")
        node.lending.join()
        await until(lambda: node.lending.joined)
        for _ in range(10_000):
            node.lending.promise([ref(1)._replace(homes=(B,))])
        assert not node.lending.joined
        node.close()
        for writer in came:
            writer.close()


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"nodes": None, "waits_s": {}},
        {"nodes": ["10.9.9.9"], "waits_s": {"10.9.9.9": 0.0}},
        {"nodes": [B, B], "waits_s": {B: 0.0}},
        {"nodes": [B], "waits_s": {}},
        {"nodes": [B], "waits_s": {B: "soon"}},
        {"nodes": [B], "waits_s": {B: 10**400}},
        {"nodes": [[B]], "waits_s": {B: 0.0}},
        {"nodes": [B], "waits_s": {B: 0.0}, "number": [7]},
        {"nodes": [B], "waits_s": {B: 0.0}, "number": 99},
    ],
)
@in_real_time
async def test_an_index_that_says_what_cannot_be_is_as_good_as_none(
    tmp_path: Path, answer: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FIND_TIMEOUT_S", 0.05)

    async def answers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async for line in reader:
            message = json.loads(line)
            if "find" in message:
                writer.write(to_line({"number": message["number"], **answer}))
        writer.close()

    async with await asyncio.start_unix_server(answers, str(tmp_path / "index")):
        nodes = Lenders(tmp_path)
        await nodes.join()
        assert await nodes.a.lending.locate([ref(1)]) == []
        assert nodes.a.lending.stats.unanswered == 1
        nodes.close()


@pytest.mark.parametrize("line", [b"no JSON\n", b"[]\n", b"x" * (2 << 20)])
@in_real_time
async def test_an_index_that_says_nonsense_is_left(
    tmp_path: Path, line: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async def talks(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(line)
        async for _ in reader:
            pass
        writer.close()

    async with await asyncio.start_unix_server(talks, str(tmp_path / "index")):
        node = LendingNode(MemoryNetwork(), A, NODES, tmp_path / "index")
        node.lending.join()
        await until(lambda: "the index says nonsense" in caplog.text)
        assert await node.lending.locate([ref(1)]) == []
        node.close()
