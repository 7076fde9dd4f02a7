"""Objects against several storage nodes: what one that is dead, slow or wrong costs, and what it does not."""

from __future__ import annotations

import asyncio
import logging

import pytest

from experiments.simulate_faults.virtual_time import run_virtual
from hostlib.client.client import Client
from hostlib.engine import Item, ObjectPool, PoolConfig, objects
from hostlib.protocol.content import derivation
from hostlib.protocol.members import Members
from hostlib.protocol.transfer import BlockRef, chain_references
from hostlib.storage.storage_node import StorageNode
from hostlib.storage.store import BlockStore
from tests.asynchronous import in_virtual_time
from tests.hostlib.engine.pool_world import PoolWorld, content, keys, timed
from tests.hostlib.network import NO_FAULTS, Faults
from tests.hostlib.sealed import SEAL
from tests.hostlib.shaped import ShapedNetwork

LENGTH = 1000
SOON_S = 0.1
LARGE = 16_384
RATE_BIT_S = 5e6
SECONDS_OF_FOUR = 4 * 8 * LARGE / RATE_BIT_S
"""How long the link takes for four large objects."""


def items(blocks: list[BlockRef]) -> list[Item]:
    return [Item(block, content(block.key, LENGTH)) for block in blocks]


async def load(pool: ObjectPool, blocks: list[BlockRef]) -> list[bool]:
    """Which arrive; all that do are right."""
    rooms = [bytearray(LENGTH) for _ in blocks]
    arrived = await pool.load([Item(block, room) for block, room in zip(blocks, rooms, strict=True)])
    for block, room, there in zip(blocks, rooms, arrived, strict=True):
        assert not there or room == content(block.key, LENGTH)
    return arrived


@pytest.mark.parametrize("replicas", [1, 2, 3])
@in_virtual_time
async def test_each_object_is_stored_so_many_times_as_the_settings_say(replicas: int) -> None:
    world = PoolWorld(replicas=replicas)
    pool = world.objects()
    blocks = chain_references(keys(40))
    assert all(await pool.store(items(blocks)))
    assert [world.copies(block.key) for block in blocks] == [replicas] * 40


@in_virtual_time
async def test_what_is_not_stored_in_time_is_not_read_any_more() -> None:
    """Whoever offers objects may put others in their place after a time."""
    world = PoolWorld()
    pool = world.objects(waiting_bytes=LENGTH)
    world.network.faults = Faults(min_delay_s=0.3, max_delay_s=0.3)
    blocks = chain_references(keys(40))
    offered = [Item(block, bytearray(content(block.key, LENGTH))) for block in blocks]
    held, took_s = await timed(pool.store(offered, within_s=5.0))
    assert held == [False] * 40
    assert took_s == pytest.approx(5.0, abs=SOON_S)
    assert pool.stats.not_stored == 40
    for item in offered:
        memoryview(item.buffer)[:] = bytes(LENGTH)
    await asyncio.sleep(60)
    assert pool.queue.waiting_bytes == 0
    assert 0 < sum(await load(world.objects(), blocks)) < 40


@in_virtual_time
async def test_an_objects_time_does_not_pass_while_others_are_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many large objects at once, as of a long prompt, over a link that takes longer for all of them."""
    monkeypatch.setattr(objects, "SENT_AT_ONCE_BYTES", 4 * LARGE)
    network = ShapedNetwork(RATE_BIT_S, queue_packets=64)
    StorageNode(network.port("10.0.1.1"), BlockStore(1 << 26, None, derivation(SEAL)))
    config = PoolConfig.from_mapping(
        {"address": "10.0.0.1", "homes": ["10.0.1.1"], "transfer_timeout_s": SECONDS_OF_FOUR * 2}
    )
    client = Client(network.port(config.address), Members.of(config.homes), SEAL)
    pool = ObjectPool(client, config)
    offered = [Item(block, content(block.key, LARGE)) for block in chain_references(keys(40))]
    held, took_s = await timed(pool.store(offered))
    assert all(held)
    assert took_s > 2 * config.transfer_timeout_s


def test_of_one_dead_home_only_what_it_holds_is_missing(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        world = PoolWorld()
        pool = world.objects(lookup_timeout_s=30.0)
        blocks = chain_references(keys(200))
        assert all(await pool.store(items(blocks)))
        dead = world.homes[1]
        world.network.dead.add(dead)
        living = [world.home(block.key) != dead for block in blocks]
        there, took_s = await timed(pool.present(blocks))
        assert there == living
        assert took_s < 1.0 + SOON_S  # silence_s
        for _ in range(20):
            assert (await timed(pool.present(blocks)))[1] < SOON_S
            assert await pool.prefix(blocks) == living.index(False)
        arrived, took_s = await timed(load(pool, blocks))
        assert arrived == living
        assert took_s < 1.0
        new = chain_references(keys(200, first=1000))
        assert await pool.store(items(new)) == [world.home(block.key) != dead for block in new]
        assert pool.is_answering

        world.network.dead.clear()
        async with asyncio.timeout(10):
            while not all(await pool.present(blocks)):
                await asyncio.sleep(0.1)
        assert all(await load(pool, blocks))

    with caplog.at_level(logging.WARNING, "weir"):
        run_virtual(story())
    assert [record.message for record in caplog.records] == [
        "Storage node 10.0.1.2 does not answer: what only it holds is computed until it does.",
        "Storage node 10.0.1.2 answers again.",
    ]


@in_virtual_time
async def test_with_two_homes_a_dead_one_costs_nothing_but_time() -> None:
    world = PoolWorld(replicas=2)
    pool = world.objects(lookup_timeout_s=30.0)
    blocks = chain_references(keys(200))
    assert all(await pool.store(items(blocks)))
    world.network.dead.add(world.homes[1])
    assert await pool.prefix(blocks) == 200
    assert all(await load(pool, blocks))
    new = chain_references(keys(200, first=1000))
    held, took_s = await timed(pool.store(items(new)))
    assert all(held)  # at the other home, where no controller names another
    assert took_s < 1.0
    assert await pool.prefix(new) == 200
    assert all(await load(pool, new))
    assert {world.copies(block.key) for block in new} == {1, 2}


@in_virtual_time
async def test_two_writers_of_one_object_are_both_told_when_a_home_is_dead() -> None:
    world = PoolWorld(homes=2, replicas=2)
    pool = world.objects()
    world.network.dead.add(world.homes[0])
    (one,) = items(chain_references(keys(1)))
    assert await asyncio.gather(*(pool.store([one]) for _ in range(3))) == [[True]] * 3
    world.network.dead.add(world.homes[1])
    (other,) = items(chain_references(keys(1, first=9)))
    assert await pool.store([other]) == [False]


@in_virtual_time
async def test_a_home_that_is_silent_for_longer_than_a_look_up_may_take_is_noticed() -> None:
    """Otherwise each look-up would wait for it anew."""
    world = PoolWorld()
    pool = world.objects(lookup_timeout_s=0.3, silence_s=1.0)
    blocks = chain_references(keys(40))
    assert all(await pool.store(items(blocks)))
    dead = world.homes[0]
    world.network.dead.add(dead)
    living = [world.home(block.key) != dead for block in blocks]
    slow = 0
    for _ in range(50):
        there, took_s = await timed(pool.present(blocks))
        assert there == living
        slow += took_s > SOON_S
    assert 1 <= pool.stats.slow_lookups <= slow <= 5


@in_virtual_time
async def test_a_slow_look_up_is_no_dead_pool() -> None:
    world = PoolWorld()
    pool = world.objects(lookup_timeout_s=0.5, silence_s=30.0)
    blocks = chain_references(keys(20))
    assert all(await pool.store(items(blocks)))
    world.network.faults = Faults(min_delay_s=2.0, max_delay_s=2.0)
    there, took_s = await timed(pool.present(blocks))
    assert not any(there)
    assert took_s <= 0.5
    assert pool.stats.slow_lookups == 1
    assert pool.is_answering
    world.network.faults = NO_FAULTS
    async with asyncio.timeout(30):
        while not all(await pool.present(blocks)):
            await asyncio.sleep(0.1)


@in_virtual_time
async def test_of_many_look_ups_at_once_a_bounded_number_of_questions_is_open() -> None:
    world = PoolWorld()
    pool = world.objects(lookup_timeout_s=30.0)
    chains = [chain_references(keys(600, first=1000 * number)) for number in range(10)]
    client = pool._client
    most = 0

    async def watch() -> None:
        nonlocal most
        while True:
            most = max(most, len(client._lookup.active))  # type: ignore[attr-defined]
            await asyncio.sleep(0.0005)

    watching = asyncio.ensure_future(watch())
    assert await asyncio.gather(*(pool.present(chain) for chain in chains)) == [[False] * 600] * 10
    watching.cancel()
    assert 256 <= most <= 8 * 256


@in_virtual_time
async def test_what_is_found_and_fails_to_load_again_is_not_offered_until_it_was_stored() -> None:
    world = PoolWorld()
    pool = world.objects()
    blocks = chain_references(keys(3))
    assert all(await pool.store(items(blocks)))
    (broken, *_) = blocks

    async def fails() -> None:
        assert await pool.load([Item(broken, bytearray(LENGTH + 1))]) == [False]

    await fails()
    assert await pool.prefix(blocks) == 3  # it may have been put right
    await fails()
    assert await pool.prefix(blocks) == 0
    assert await pool.present(blocks) == [False, True, True]
    assert all(await pool.store(items([broken])))
    assert await pool.prefix(blocks) == 3


@in_virtual_time
async def test_what_was_not_there_is_found_as_soon_as_another_stores_it() -> None:
    world = PoolWorld()
    pool, other = world.objects(), world.objects()
    blocks = chain_references(keys(3))
    for _ in range(3):
        assert await load(pool, blocks) == [False] * 3
        assert await pool.prefix(blocks) == 0
    assert all(await other.store(items(blocks)))
    assert await pool.prefix(blocks) == 3
    assert all(await load(pool, blocks))


def test_a_pool_of_which_no_home_answers_is_named_once(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        world = PoolWorld(homes=2)
        pool = world.objects()
        blocks = chain_references(keys(10))
        assert all(await pool.store(items(blocks)))
        world.network.dead |= set(world.homes)
        assert await pool.prefix(blocks) == 0
        assert not pool.is_answering
        for _ in range(20):
            assert (await timed(pool.prefix(blocks)))[1] < SOON_S
        world.network.dead.remove(world.homes[0])
        async with asyncio.timeout(10):
            while not any(await pool.present(blocks)):
                await asyncio.sleep(0.1)
        world.network.dead.clear()
        async with asyncio.timeout(10):
            while not all(await pool.present(blocks)):
                await asyncio.sleep(0.1)

    with caplog.at_level(logging.WARNING, "weir"):
        run_virtual(story())
    assert [record.message for record in caplog.records] == [
        "The pool does not answer (none of 10.0.1.1, 10.0.1.2): prompts are computed until it does.",
        "The pool answers again.",
        "Storage node 10.0.1.2 does not answer: what only it holds is computed until it does.",
        "Storage node 10.0.1.2 answers again.",
    ]
