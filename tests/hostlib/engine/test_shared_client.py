"""One client in the service of other processes, over a real socket: guests, and hostile ones."""

from __future__ import annotations

import asyncio
import json
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

import pytest

from hostlib.client.client import Client
from hostlib.engine import shared_client
from hostlib.engine.frames import MAX_LINE_BYTES, Channel
from hostlib.engine.requests import MAX_QUESTIONS
from hostlib.engine.shared_client import Guest, Host
from hostlib.protocol.errors import (
    BlockNotFoundError,
    BlockTooLongError,
    ConfigError,
    OverloadedError,
    PutRefusedError,
)
from hostlib.protocol.hints import Hint, HintOutcome
from hostlib.protocol.transfer import BlockRef, chain_references
from hostlib.protocol.wire import MAX_BLOCK_BYTES
from tests.hostlib.engine.pool_world import PoolWorld, content, keys
from tests.hostlib.network import Faults

SETTINGS = {"homes": ["10.0.0.1"], "tenant": 7}
LENGTH = 3000
Story = Callable[["House"], Awaitable[None]]


class Play(Protocol):
    """Runs a story with a host."""

    def __call__(self, story: Story, silence_s: float = ...) -> None: ...


class House:
    """A host with a client of real storage nodes, and whoever comes to it."""

    def __init__(self, path: Path, silence_s: float) -> None:
        self.world = PoolWorld(homes=2)
        self.client: Client = self.world.client(self.world.config(silence_s=silence_s))
        self.host = Host(self.client, SETTINGS)
        self.failures: list[dict[str, Any]] = []
        self._path = path

    async def open(self) -> asyncio.Server:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: self.failures.append(context))
        return await asyncio.start_unix_server(self.host.serve, self._path)

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_unix_connection(self._path)

    @asynccontextmanager
    async def guest(self) -> AsyncIterator[Guest]:
        guest = Guest(Channel(*await self.connect()))
        await guest.enter(SETTINGS)
        try:
            yield guest
        finally:
            guest.close()

    async def stored(self, count: int) -> list[BlockRef]:
        """Blocks that are there."""
        blocks = chain_references(keys(count))
        await asyncio.gather(*(self.client.put(block, content(block.key, LENGTH)) for block in blocks))
        return blocks


@pytest.fixture
def play(tmp_path: Path) -> Play:
    def run(story: Story, silence_s: float = 0.3) -> None:
        async def main() -> None:
            house = House(tmp_path / "host", silence_s)
            server = await house.open()
            async with asyncio.timeout(60):
                await story(house)
            house.host.close()
            server.close()
            await asyncio.sleep(0)
            assert house.failures == []

        asyncio.run(main())

    return run


def test_a_guest_gets_what_the_client_gets(play: Play) -> None:
    async def story(house: House) -> None:
        async with house.guest() as guest:
            (block, *_), missing = await house.stored(3), BlockRef(bytes(16))
            assert (await guest.get(block)).content == content(block.key, LENGTH)
            room = bytearray(LENGTH + 1)
            fetched = await guest.get_into(block, memoryview(room))
            assert bytes(room[:LENGTH]) == content(block.key, LENGTH)
            assert len(fetched.content) == LENGTH
            assert fetched.times.home == house.world.home(block.key)
            assert await guest.present([block, missing], 30.0) == [True, False]
            many = chain_references(keys(2 * MAX_QUESTIONS + 1))
            assert await guest.present(many, 30.0) == [True] * 3 + [False] * (len(many) - 3)
            with pytest.raises(BlockNotFoundError):
                await guest.get(missing)
            with pytest.raises(BlockTooLongError):
                await guest.get_into(block, memoryview(bytearray(LENGTH - 1)))
            await guest.put(missing, b"here", replicas=1, at_least=1)
            assert (await house.client.get(missing)).content == b"here"
            with pytest.raises(PutRefusedError, match="homes asked for: 3"):
                await guest.put(BlockRef(bytes(15) + b"1"), b"here", replicas=3)
            with pytest.raises(ValueError, match="a block has 1 to"):
                await guest.put(BlockRef(bytes(15) + b"2"), b"")

    play(story)


def test_what_a_guest_deletes_is_gone_for_all(play: Play) -> None:
    async def story(house: House) -> None:
        async with house.guest() as guest:
            one, other = await house.stored(2)
            assert await guest.delete(one) is True
            assert await guest.delete(one) is False
            assert await guest.present([one, other], 30.0) == [False, True]
            with pytest.raises(BlockNotFoundError):
                await house.client.get(one)

    play(story)


def test_what_a_guest_hints_at_reaches_the_homes(play: Play) -> None:
    async def story(house: House) -> None:
        async with house.guest() as guest:
            (one,) = await house.stored(1)
            assert await guest.hint(one, Hint.RETAIN, 60) is HintOutcome.DONE
            assert await guest.hint(BlockRef(bytes(16)), Hint.PREFETCH) is HintOutcome.NOT_FOUND

    play(story)


def test_a_guest_is_told_which_homes_are_silent(play: Play) -> None:
    async def story(house: House) -> None:
        async with house.guest() as guest:
            blocks = await house.stored(20)
            dead = house.world.homes[0]
            house.world.network.dead.add(dead)
            living = [None if house.world.home(block.key) == dead else True for block in blocks]
            assert await guest.present(blocks, 30.0) == living
            assert (guest.suspects, guest.is_answering) == ([dead], True)
            house.world.network.dead.add(house.world.homes[1])
            while guest.is_answering:
                assert None in await guest.present(blocks, 30.0)
            assert sorted(guest.suspects) == house.world.homes
            house.world.network.dead.clear()
            while guest.suspects:
                await guest.present(blocks, 30.0)
                await asyncio.sleep(0.01)
            assert guest.is_answering

    play(story)


def test_who_has_other_settings_is_told_what_differs(play: Play) -> None:
    async def story(house: House) -> None:
        guest = Guest(Channel(*await house.connect()))
        with pytest.raises(ConfigError, match="tenant is 8 here and 7 there"):
            await guest.enter(SETTINGS | {"tenant": 8})
        guest.close()

    play(story)


BLOCK = ["00" * 16, 0, 1, 0, 0, []]
HELLO = {"do": "hello", "settings": SETTINGS}


def frame(said: Any, body: bytes = b"") -> bytes:
    line = said if isinstance(said, bytes) else json.dumps(said).encode()
    return struct.pack("<II", len(line), len(body)) + line + body


def get(**changes: Any) -> dict[str, Any]:
    return {"n": 1, "do": "get", "block": BLOCK, "room": 10} | changes


LENGTHS: list[Any] = [-1, 1 << 40, MAX_BLOCK_BYTES + 1, "9", 1.0, []]
NO_BLOCKS: list[Any] = [
    None,
    {},
    [],
    BLOCK[:3],
    ["00" * 15, *BLOCK[1:]],
    ["zz" * 16, *BLOCK[1:]],
    [5, *BLOCK[1:]],
    ["00" * 16, 70_000, 1, 0, 0, []],
    ["00" * 16, 0, -1, 0, 0, []],
    ["00" * 16, 0, 1, 1 << 32, 0, []],
    ["00" * 16, 0, 1, 0, 1e9, []],
    ["00" * 16, 0, 1, 0, 0, ["192.0.2.1"]],
]
HOSTILE: list[bytes] = [
    b"",
    b"\xff" * 100,
    struct.pack("<II", MAX_LINE_BYTES + 1, 0) + b"{",
    struct.pack("<II", 2, MAX_BLOCK_BYTES + 1) + b"{}",
    frame(b"?"),
    frame(b"[" * 50_000),
    frame([1]),
    frame({}),
    frame({"n": 1}),
    frame({"n": 1, "do": "format"}),
    frame({"n": 1, "do": ["get"]}),
    *(frame(get(n=number)) for number in (0, -1, 1.5, "1", None, True, 1 << 60)),
    *(frame(get(room=length)) for length in LENGTHS),
    *(frame(get(block=named)) for named in NO_BLOCKS),
    *(frame({"n": 1, "do": "put", "block": BLOCK} | more) for more in ({}, {"replicas": 0}, {"replicas": 4})),
    frame({"n": 1, "do": "put", "block": BLOCK, "replicas": 1, "at_least": "all"}, b"x"),
    *(
        frame({"n": 1, "do": "present", "blocks": blocks, "within_s": within_s})
        for blocks, within_s in (
            ([BLOCK] * (MAX_QUESTIONS + 1), 1.0),
            (BLOCK, 1.0),
            ([BLOCK], None),
            ([BLOCK], -1),
            ([BLOCK], float("nan")),
            ([BLOCK], float("inf")),
            ([BLOCK], 1e12),
        )
    ),
    frame(get(room=None)) + frame(get(room=None)),  # the same number while it is under way
]


def test_ranks_that_ask_for_the_same_object_at_once_share_one_fetch(play: Play) -> None:
    """As those of a model with latent attention, whose KV is the same on each of them."""

    async def story(house: House) -> None:
        (block,) = await house.stored(1)
        fetched = house.client.stats.blocks_fetched
        house.world.network.faults = Faults(min_delay_s=0.1, max_delay_s=0.1)
        async with house.guest() as first, house.guest() as second, house.guest() as third:
            rooms = [memoryview(bytearray(LENGTH)) for _ in range(3)]
            guests = zip((first, second, third), rooms, strict=True)
            await asyncio.gather(*(guest.get_into(block, room) for guest, room in guests))
            assert {bytes(room) for room in rooms} == {content(block.key, LENGTH)}
            assert house.client.stats.blocks_fetched == fetched + 1
            await first.get_into(block, rooms[0])
            assert house.client.stats.blocks_fetched == fetched + 2

    play(story, silence_s=30)


@pytest.mark.parametrize("after_hello", [True, False])
def test_who_sends_what_is_no_request_is_sent_away_and_nobody_else_notices(
    play: Play, after_hello: bool
) -> None:
    async def story(house: House) -> None:
        async with house.guest() as guest:
            (block,) = await house.stored(1)
            for sent in HOSTILE:
                reader, writer = await house.connect()
                writer.write((frame(HELLO) if after_hello else b"") + sent)
                if not sent:
                    writer.write_eof()
                await reader.read()  # until the host ends the connection
                writer.close()
                assert await guest.present([block], 30.0) == [True]

    play(story)


def test_who_connects_and_says_nothing_is_not_waited_for(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_client, "GREETING_S", 0.05)

    async def story(house: House) -> None:
        reader, writer = await house.connect()
        assert await reader.read() == b""
        writer.close()

    play(story)


def test_no_more_guests_come_in_than_there_is_room_for(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_client, "MAX_GUESTS", 2)

    async def story(house: House) -> None:
        async with house.guest(), house.guest():
            reader, writer = await house.connect()
            assert await reader.read() == b""
            writer.close()
        while True:  # the host has noticed that they left
            try:
                async with house.guest():
                    return
            except EOFError:
                await asyncio.sleep(0.01)

    play(story)


@pytest.mark.parametrize("limit", ["MAX_REQUESTS", "MAX_GUEST_BYTES"])
def test_what_one_guest_has_under_way_is_bounded(
    play: Play, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    monkeypatch.setattr(shared_client, limit, 10 if limit == "MAX_REQUESTS" else 10 * LENGTH)

    async def story(house: House) -> None:
        house.world.network.dead |= set(house.world.homes)  # nothing ends soon
        async with house.guest() as hostile, house.guest() as other:
            rooms = [memoryview(bytearray(LENGTH)) for _ in range(30)]
            asked = [
                asyncio.ensure_future(hostile.get_into(block, room))
                for block, room in zip(chain_references(keys(30)), rooms, strict=True)
            ]
            done, waiting = await asyncio.wait(asked, timeout=1.0)
            assert len(done) == 20
            assert all(isinstance(one.exception(), OverloadedError) for one in done)
            house.world.network.dead.clear()
            (block,) = await house.stored(1)
            room = bytearray(LENGTH)
            await other.get_into(block, memoryview(room))
            assert room == content(block.key, LENGTH)
            for one in waiting:
                one.cancel()
            await asyncio.wait(waiting)
            fetched = await hostile.get_into(block, rooms[0])
            assert len(fetched.content) == LENGTH

    play(story, silence_s=60.0)
