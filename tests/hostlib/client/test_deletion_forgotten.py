"""Deletions that nobody remembers any more: no block is brought back for that, and none is lost."""

from __future__ import annotations

import asyncio

import pytest

from hostlib.protocol import wire
from hostlib.protocol.block import Place
from hostlib.protocol.tombstones import MAX_OF_BLOCK, TOMBSTONE_S, WHOLE_TENANT
from tests.asynchronous import in_virtual_time, until
from tests.hostlib.deletions import (
    DOWN,
    JOINING,
    UP,
    absent_home,
    answers_of,
    blocks_of,
    come_back,
    goes_down,
    is_found,
    listens_to_no_list,
)
from tests.hostlib.sealed import TENANT, place
from tests.hostlib.world import World, content, key, ref

pytestmark = pytest.mark.usefixtures("either_core")


@in_virtual_time
async def test_tombstones_are_forgotten_in_the_end_and_who_was_away_longer_asks_for_each_block() -> None:
    world = World(replicas=2, controller="10.255.255.254")
    gone = absent_home(world)
    numbers = blocks_of(world, gone)[:2]
    for n in numbers:
        await world.client.put(ref(n), content(n), durable=True, replicas=2)
    await goes_down(world, gone)
    deleted, kept = numbers
    assert await world.client.delete(ref(deleted))
    world.clock_s += 86_500
    for store in world.stores.values():
        store.graveyard.stones.expire()
    assert not any(len(store.graveyard.stones) for store in world.stores.values())
    world.announce(JOINING, UP, UP)
    node = world.restart(gone)
    node.start()
    assert node.joining.missed.in_doubt
    await until(lambda: node.joining.caught_up)
    assert gone in world.holders(kept)
    assert not node.joining.catch_up.stats.copied
    assert not world.holders(deleted)


@pytest.mark.parametrize("replicas", [1, 2])
@in_virtual_time
async def test_a_day_in_which_all_are_off_costs_no_block(replicas: int) -> None:
    """Nobody deletes what nobody can be asked about."""
    world = World(replicas=replicas, controller="10.255.255.254")
    for n in range(20):
        await world.client.put(ref(n), content(n), durable=True, replicas=replicas)
    addresses = list(world.nodes)
    for address in addresses:
        world.kill(address)
    world.clock_s += 90_000
    world.announce(JOINING, JOINING, JOINING)
    nodes = [world.restart(address) for address in addresses]
    for node in nodes:
        node.start()
    await until(lambda: all(node.joining.caught_up for node in nodes))
    world.announce(UP, UP, UP)
    assert all([await is_found(world.client, n) for n in range(20)])


@in_virtual_time
async def test_who_may_have_missed_deletions_that_nobody_remembers_keeps_what_others_hold() -> None:
    """It gives up blocks that the other home, which was there, does not hold, and counts as up after that."""
    world = World(replicas=2, controller="10.255.255.254")
    gone = absent_home(world)
    numbers = blocks_of(world, gone)[:6]
    for n in numbers:
        await world.client.put(ref(n), content(n), durable=True, replicas=2)
    await goes_down(world, gone)
    world.clock_s += 10
    for n in numbers[:3]:
        assert await world.client.delete(ref(n))
    world.clock_s += 10
    for store in world.stores.values():
        stones = store.graveyard.stones
        for n in numbers[:3]:
            for stone in stones.of(place(key(n))):
                stones.incomplete(Place(TENANT, WHOLE_TENANT), world.clock_s - 5)
                stones._forget(stone)
    world.announce(JOINING, UP, UP)
    node = world.restart(gone)
    node.start()
    await until(lambda: node.joining.caught_up)
    assert [n for n in numbers if gone in world.holders(n)] == numbers[3:]
    assert not node.joining.catch_up.stats.copied
    assert (
        node.joining._store.graveyard.stones.complete_since_s(Place(TENANT, WHOLE_TENANT))
        >= world.clock_s - 6
    )


@in_virtual_time
async def test_what_nobody_remembers_to_be_deleted_is_not_given_away_before_another_home_has_it() -> None:
    """Other blocks are."""
    world = World(replicas=2, controller="10.255.255.254")
    gone, *others = (one.address for one in world.members.nodes)
    n, new = blocks_of(world, gone)[:2]
    await world.client.put(ref(n), content(n), durable=True, replicas=2)
    await goes_down(world, gone)
    world.clock_s += 86_500
    listen_again = listens_to_no_list(world, *others, op=wire.OP_STAT)
    world.announce(JOINING, UP, UP)
    node = world.restart(gone)
    node.start()
    await until(lambda: not node.joining.missed.in_doubt)
    await world.client.put(ref(new), content(new), durable=True, replicas=2)
    assert await answers_of(world, gone, n) == {wire.OP_REFUSED}
    assert await answers_of(world, gone, new) == {wire.OP_VALUE}
    listen_again()
    await until(lambda: node.joining.caught_up)
    assert await answers_of(world, gone, n) == {wire.OP_VALUE}


@in_virtual_time
async def test_a_clock_that_is_a_day_ahead_for_a_moment_brings_nothing_back() -> None:
    world = World(replicas=2, controller="10.255.255.254")
    for node in world.nodes.values():
        node.start()
    gone = absent_home(world)
    n = blocks_of(world, gone)[0]
    await world.client.put(ref(n), content(n), durable=True, replicas=2)
    await goes_down(world, gone)
    world.clock_s += 10
    assert await world.client.delete(ref(n))
    world.clock_s += 90_000
    for store in world.stores.values():
        store.graveyard.stones.expire()
    world.clock_s -= 90_000
    await come_back(world, gone)
    assert not world.holders(n)


async def delete_often(world: World, n: int) -> None:
    """More often than a storage node remembers of one block."""
    for _ in range(MAX_OF_BLOCK + 1):
        await world.client.put(ref(n), content(n), replicas=2)
        assert await world.client.delete(ref(n))


def is_cut_off(world: World, home: str) -> None:
    """It lives, and neither hears nor reaches anybody until `World.announce` says that it is back."""
    world.network.dead.add(home)
    world.announce(DOWN, UP, UP)


@in_virtual_time
async def test_a_block_that_is_deleted_often_costs_no_other_block_of_its_tenant() -> None:
    """A node that returned gave up each block of the tenant that was put at it alone."""
    world = World(replicas=2, controller="10.255.255.254")
    gone = absent_home(world)
    alone, often = [n for n in blocks_of(world, gone) if world.homes(n)[0] == gone][:2]
    await world.client.put(ref(alone), content(alone), durable=True)
    await world.client.put(ref(often), content(often), durable=True, replicas=2)
    await goes_down(world, gone)
    world.clock_s += 10
    await delete_often(world, often)
    world.clock_s += 10
    await come_back(world, gone)
    assert await is_found(world.client, alone)
    assert gone not in world.holders(often)
    assert not await is_found(world.client, often)


@pytest.mark.parametrize("heard_s", [(), (10.0, 10.0), (2 * TOMBSTONE_S, 10.0, 10.0)])
@in_virtual_time
async def test_who_was_there_until_a_moment_ago_has_missed_no_deletion_of_before(
    heard_s: tuple[float, ...],
) -> None:
    """It heard no new list for long, as nothing changed. When it was cut off for a moment, it gave up each
    block that was put at it alone: nobody remembered what was deleted in all that time."""
    world = World(replicas=2, controller="10.255.255.254")
    world.announce(UP, UP, UP)
    home = absent_home(world)
    alone, often = [n for n in blocks_of(world, home) if world.homes(n)[0] == home][:2]
    world.clock_s += 10
    await delete_often(world, often)
    for n in (alone, often):
        await world.client.put(ref(n), content(n), durable=True)
    for later_s in heard_s:
        world.clock_s += later_s
        world.repeat()
        await asyncio.sleep(0.1)
    is_cut_off(world, home)
    await asyncio.sleep(0.1)
    world.clock_s += 1
    world.network.dead.discard(home)
    world.announce(JOINING, UP, UP)
    node = world.nodes[home]
    assert node.joining.missed.in_doubt
    await until(lambda: node.joining.caught_up)
    world.announce(UP, UP, UP)
    await asyncio.sleep(0.1)
    assert [n for n in (alone, often) if await is_found(world.client, n)] == [alone, often]


@in_virtual_time
async def test_who_falls_again_while_it_asks_for_each_block_asks_again() -> None:
    """What it said to its disk at its start, and what it had learned from others, was as if it had been there
    all the time."""
    world = World(replicas=2, controller="10.255.255.254")
    gone = absent_home(world)
    deleted, kept, later = blocks_of(world, gone)[:3]
    for n in (deleted, kept, later):
        await world.client.put(ref(n), content(n), durable=True, replicas=2)
    await goes_down(world, gone)
    assert await world.client.delete(ref(deleted))
    world.clock_s += 86_500
    for store in world.stores.values():
        store.graveyard.stones.expire()
    assert await world.client.delete(ref(later))
    world.clock_s += 1
    others = [one.address for one in world.members.nodes if one.address != gone]
    listen_again = listens_to_no_list(world, *others, op=wire.OP_STAT)
    world.announce(JOINING, UP, UP)
    node = world.restart(gone)
    node.start()
    await until(lambda: not node.joining.missed.in_doubt)
    await asyncio.sleep(1)
    world.kill(gone)
    listen_again()
    world.clock_s += 1
    world.announce(DOWN, UP, UP)
    await asyncio.sleep(0.1)
    await come_back(world, gone)
    assert not world.holders(deleted)
    assert gone in world.holders(kept)


@in_virtual_time
async def test_who_waited_in_vain_for_others_obeys_what_they_say_later() -> None:
    """Also that they do not remember all deletions of a block."""
    world = World(replicas=2, controller="10.255.255.254")
    gone = absent_home(world)
    often, kept = blocks_of(world, gone)[:2]
    for n in (often, kept):
        await world.client.put(ref(n), content(n), durable=True, replicas=2)
    await goes_down(world, gone)
    world.clock_s += 10
    await delete_often(world, often)
    world.clock_s += 10
    others = [one.address for one in world.members.nodes if one.address != gone]
    listen_again = listens_to_no_list(world, *others)
    world.announce(JOINING, UP, UP)
    node = world.restart(gone)
    node.start()
    await until(lambda: not node.joining.missed.in_doubt)
    assert gone in world.holders(often)
    listen_again()
    await until(lambda: node.joining.caught_up)
    assert gone not in world.holders(often)
    assert gone in world.holders(kept)


@pytest.mark.parametrize("answers_late", [False, True])
@in_virtual_time
async def test_who_gave_up_a_block_copies_what_another_home_has_in_its_place(answers_late: bool) -> None:
    """Also where it knows so late that it has read the others' lists before."""
    world = World(replicas=2, controller="10.255.255.254")
    gone = absent_home(world)
    n = blocks_of(world, gone)[0]
    await world.client.put(ref(n), content(n), durable=True, replicas=2)
    await goes_down(world, gone)
    assert await world.client.delete(ref(n))
    world.clock_s += TOMBSTONE_S + 100
    for store in world.stores.values():
        store.graveyard.stones.expire()
    await world.client.put(ref(n), content(n + 1), durable=True, replicas=2)
    if answers_late:
        others = [one for one in world.nodes if one != gone]
        asyncio.get_running_loop().call_later(10, listens_to_no_list(world, *others, op=wire.OP_STAT))
    await come_back(world, gone)  # it is up
    held = world.stores[gone].get(place(key(n)))
    assert held is not None
    assert bytes(held.content) == content(n + 1)
