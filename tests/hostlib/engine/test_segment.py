"""Segments against real storage nodes, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.simulate_faults.virtual_time import run_virtual
from hostlib.client.client import Client
from hostlib.engine import ObjectPool, PoolConfig
from hostlib.engine.segment import (
    STAMP_BITS,
    Commit,
    RolledBackError,
    SecondWriterError,
    SegmentError,
    SegmentReader,
    SegmentWriter,
)
from hostlib.protocol.content import derivation
from hostlib.protocol.members import Members
from hostlib.storage.storage_node import StorageNode
from hostlib.storage.store import BlockStore
from tests.hostlib.network import MemoryNetwork
from tests.hostlib.sealed import SEAL

HOMES = ("10.0.0.101", "10.0.0.102")
SIZE, PAGE = 1000, 64


class World:
    """Two storage nodes, and whoever opens the segment."""

    def __init__(self) -> None:
        self.network = MemoryNetwork()
        self.members = self.network.members = Members.of(HOMES)
        self.stores = [BlockStore(1 << 24, None, derivation(SEAL)) for _ in HOMES]
        self.nodes = [
            StorageNode(self.network.port(home), store)
            for home, store in zip(HOMES, self.stores, strict=True)
        ]
        self._hosts = 0

    def _host(self) -> tuple[ObjectPool, Client]:
        self._hosts += 1
        address = f"10.0.0.{self._hosts}"
        config = PoolConfig.from_mapping({"address": address, "homes": HOMES, "transfer_timeout_s": 60})
        client = Client(self.network.port(address), self.members, SEAL)
        return ObjectPool(client, config), client

    def reader(self) -> SegmentReader:
        return SegmentReader(*self._host(), SEAL, "kv")

    async def writer(self, size: int = SIZE) -> SegmentWriter:
        writer = SegmentWriter(*self._host(), SEAL, "kv", size, PAGE)
        await writer.open()
        return writer


def play(story: Callable[[World], Awaitable[None]]) -> None:
    async def run() -> None:
        await story(World())

    run_virtual(run())


def test_nothing_is_seen_before_it_is_published_and_then_all_of_it() -> None:
    async def story(world: World) -> None:
        writer, reader = await world.writer(), world.reader()
        assert await reader.refresh() == 0
        with pytest.raises(SegmentError, match="no version yet"):
            await reader.load(0, 1)
        await writer.store(10, b"first")
        await writer.store(900, b"last")
        assert await writer.load(10, 5) == b"first"
        assert await reader.refresh() == 0
        assert await writer.publish() == 1
        assert await reader.refresh() == 1
        assert await reader.load(8, 9) == b"\0\0first\0\0"
        await writer.store(10, b"other")
        assert await writer.publish() == 2
        assert await reader.load(10, 5) == b"first"  # as it was when it refreshed last
        assert await reader.refresh() == 2
        assert await reader.load(10, 5) == b"other"
        assert await reader.load(900, 4) == b"last"

    play(story)


@given(
    st.lists(
        st.tuples(st.integers(0, SIZE - 1), st.binary(min_size=1, max_size=200), st.booleans()), max_size=8
    )
)
def test_it_is_what_bytes_in_memory_are(stores: list[tuple[int, bytes, bool]]) -> None:
    async def story(world: World) -> None:
        writer, reader, expected = await world.writer(), world.reader(), bytearray(SIZE)
        for offset, drawn, publish in stores:
            content = drawn[: SIZE - offset]
            await writer.store(offset, content)
            expected[offset : offset + len(content)] = content
            if publish:
                version = await writer.publish()
                assert await reader.refresh() == version
                assert await reader.load(0, SIZE) == expected
        assert await writer.load(0, SIZE) == expected

    play(story)


def test_pages_are_spread_over_all_homes() -> None:
    async def story(world: World) -> None:
        writer = await world.writer()
        await writer.store(0, bytes(range(250)) * 4)
        await writer.publish()
        held = [store.sizes()["dram"] for store in world.stores]
        assert sum(held) == -(-SIZE // PAGE) + 1
        assert min(held) > 2

    play(story)


def test_of_two_writers_one_is_told_and_the_segment_stays_the_others() -> None:
    async def story(world: World) -> None:
        one, other, reader = await world.writer(), await world.writer(), world.reader()
        await one.store(0, b"one" * 100)
        await other.store(0, b"two" * 100)
        outcomes = await asyncio.gather(one.publish(), other.publish(), return_exceptions=True)
        assert sum(isinstance(outcome, SecondWriterError) for outcome in outcomes) == 1
        await reader.refresh()
        right = b"one" if outcomes[0] == 1 else b"two"
        assert await reader.load(0, 300) == right * 100

    play(story)


def test_a_writer_that_comes_later_goes_on_from_the_newest_version() -> None:
    async def story(world: World) -> None:
        writer = await world.writer()
        for version in range(1, 20):
            await writer.store(version, bytes([version]))
            assert await writer.publish() == version
        later = await world.writer()
        await later.store(0, b"\xff")
        assert await later.publish() == 20
        assert await later.load(0, 20) == b"\xff" + bytes(range(1, 20))
        with pytest.raises(SegmentError, match="has 1000 bytes in pages of 64"):
            await world.writer(size=2000)

    play(story)


def test_a_version_that_was_seen_and_is_gone_is_refused() -> None:
    async def story(world: World) -> None:
        writer, reader = await world.writer(), world.reader()
        await writer.store(0, b"new")
        await writer.publish()
        await reader.refresh()
        for store in world.stores:
            store._dram.clear()
        with pytest.raises(RolledBackError, match="version 1 was there"):
            await reader.refresh()
        with pytest.raises(SegmentError, match="could be loaded"):
            await reader.load(0, 3)

    play(story)


def test_outside_is_refused() -> None:
    async def story(world: World) -> None:
        writer = await world.writer()
        for offset, length in ((-1, 1), (SIZE, 1), (0, SIZE + 1), (5, -1)):
            with pytest.raises(SegmentError, match="not within"):
                await writer.load(offset, length)
        with pytest.raises(SegmentError, match="not within"):
            await writer.store(SIZE - 1, b"ab")

    play(story)


@given(st.binary(max_size=80))
def test_anything_may_lie_where_a_commit_record_should(record: bytes) -> None:
    try:
        commit = Commit.decode(record)
    except SegmentError:
        return
    assert commit.encode() == record


def test_a_commit_record_names_no_page_of_a_later_version() -> None:
    commit = Commit(bytes(16), 3, 100, 64, (3 << STAMP_BITS | 7, 4 << STAMP_BITS))
    with pytest.raises(SegmentError, match="contradicts itself"):
        Commit.decode(commit.encode())
