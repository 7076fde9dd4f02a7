"""What a storage node tells the controller of new blocks."""

from __future__ import annotations

import asyncio

import pytest

from experiments.simulate_faults.virtual_time import run_virtual
from hostlib import wire
from hostlib.errors import MalformedError
from hostlib.news import ENTRIES, MAX_MESSAGES, MAX_WAITING, NewBlock, NewsToTell, read_news
from tests.hostlib.sealed import TENANT
from tests.hostlib.world import FRAGMENTS, World, content, key, ref

pytestmark = pytest.mark.usefixtures("either_core")

CONTROLLER = "10.255.0.1"


def block(number: int) -> NewBlock:
    return NewBlock(TENANT, FRAGMENTS, number, 9, 0xABCD, key(number))


def test_a_heartbeat_takes_so_many_and_the_next_the_rest() -> None:
    news = NewsToTell()
    blocks = [block(number) for number in range(MAX_MESSAGES * ENTRIES + 3)]
    for one in blocks:
        news.add(one)
    first = [wire.decode(message) for message in news.messages(7, 5)]
    assert len(first) == MAX_MESSAGES
    assert {(message.op, message.backlog_ms, message.epoch) for message in first} == {(wire.OP_KEYS, 7, 5)}
    (rest,) = [wire.decode(message) for message in news.messages(0, 5)]
    assert [one for message in (*first, rest) for one in read_news(message.value)] == blocks
    assert not list(news.messages(0, 5))


def test_of_too_many_the_youngest_are_told() -> None:
    news = NewsToTell()
    for number in range(MAX_WAITING + 1):
        news.add(block(number % 60_000))
    assert len(news) == MAX_WAITING
    assert read_news(wire.decode(next(news.messages(0, 0))).value)[0] == block(1)


@pytest.mark.parametrize("value", [bytes(27), bytes(28)])
def test_what_is_no_news_is_refused(value: bytes) -> None:
    with pytest.raises(MalformedError):
        read_news(value)


def told(world: World, home: str) -> list[NewBlock]:
    sent = world.sent(home, wire.OP_KEYS)
    return [one for to, message in sent if to == CONTROLLER for one in read_news(message.value)]


@pytest.mark.parametrize("durable", [False, True])
def test_the_first_home_tells_once_of_a_block_that_is_new(durable: bool) -> None:
    async def main() -> None:
        world = World(homes=2, replicas=2, controller=CONTROLLER)
        for node in world.nodes.values():
            node.start()
        named = ref(1)._replace(depth=3, chain_blocks=5, parent=77)
        for _ in range(2):
            await world.client.put(named, content(1), durable=durable, replicas=2)
        await asyncio.sleep(0.5)
        first, second = world.homes(1)
        assert told(world, first) == [NewBlock(TENANT, FRAGMENTS, 3, 5, 77, key(1))]
        assert not told(world, second)
        for node in world.nodes.values():
            node.close()

    run_virtual(main())
