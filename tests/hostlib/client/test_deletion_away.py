"""Deletions that storage nodes missed: those that come back learn of them, and bring no block back."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from hostlib.protocol import wire
from hostlib.protocol.block import Place
from hostlib.protocol.catalog import FIRST
from hostlib.protocol.errors import PutRefusedError, TransferError, TransferTimeoutError
from hostlib.protocol.members import SETTLED_S, Members
from hostlib.protocol.tombstones import Tombstone
from hostlib.storage.missed_deletions import DOUBT_S
from hostlib.storage.simulated_disk import SimulatedDisk
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
from tests.hostlib.network import NO_FAULTS, Faults
from tests.hostlib.sealed import TENANT, place
from tests.hostlib.world import NODE, World, content, key, ref

pytestmark = pytest.mark.usefixtures("either_core")


@in_virtual_time
async def test_it_outlives_a_power_cut_of_all() -> None:
    world = World(replicas=2)
    await world.client.put(ref(1), content(1), durable=True, replicas=2)
    await world.client.put(ref(2), content(2), durable=True, replicas=2)
    assert await world.client.delete(ref(1))
    for address in list(world.nodes):
        world.kill(address)
    for address in list(world.nodes):
        world.restart(address).start()
    await asyncio.sleep(5)
    assert not world.holders(1)
    assert not await is_found(world.client, 1)
    assert await is_found(world.client, 2)


@pytest.mark.parametrize("replicas", [1, 2])
@in_virtual_time
async def test_what_only_a_home_that_is_down_may_hold_is_not_said_to_be_deleted(replicas: int) -> None:
    world = World(replicas=replicas, controller="10.255.255.254")
    gone = absent_home(world)
    n = next(n for n in range(40) if world.homes(n)[0] == gone)
    await world.client.put(ref(n), content(n), durable=True)
    for other in set(world.holders(n)) - {gone}:
        world.stores[other].drop(place(key(n)))
    await goes_down(world, gone)
    with pytest.raises(TransferTimeoutError, match=f"{gone}: down, and may hold it"):
        await world.client.delete(ref(n))
    await come_back(world, gone)
    assert await is_found(world.client, n)
    assert await world.client.delete(ref(n))
    assert not await is_found(world.client, n)


@in_virtual_time
async def test_another_write_at_the_only_home_which_is_down_is_not_said_to_be_deleted() -> None:
    world = World(controller="10.255.255.254")
    gone = absent_home(world)
    n = next(n for n in range(40) if world.homes(n)[0] == gone)
    await world.client.put(ref(n), content(n), durable=True)
    await goes_down(world, gone)
    await world.client.put(ref(n), content(n + 1), durable=True)
    with pytest.raises(TransferTimeoutError, match="down, and may hold it"):
        await world.client.delete(ref(n))
    await come_back(world, gone)
    assert await world.client.delete(ref(n))
    assert not await is_found(world.client, n)


@in_virtual_time
async def test_what_only_one_that_stood_in_and_is_down_holds_is_not_said_to_be_deleted() -> None:
    world = World(controller="10.255.255.254")
    gone, *others = (one.address for one in world.members.nodes)
    n = next(n for n in range(40) if world.homes(n)[0] == gone)
    await goes_down(world, gone)
    await world.client.put(ref(n), content(n), durable=True)
    (standin,) = world.holders(n)
    world.kill(standin)
    states = [DOWN if one == standin else UP for one in others]
    world.announce(JOINING, *states)
    node = world.restart(gone)
    node.start()
    await asyncio.sleep(60)
    world.announce(UP if node.joining.caught_up else JOINING, *states)
    with pytest.raises(TransferTimeoutError, match=f"{standin}: down, and may hold it"):
        await world.client.delete(ref(n))


@in_virtual_time
async def test_a_store_that_was_away_does_not_bring_it_back() -> None:
    world = World(replicas=2, controller="10.255.255.254")
    for node in world.nodes.values():
        node.start()
    await asyncio.sleep(1)
    gone = absent_home(world)
    numbers = blocks_of(world, gone)
    for n in numbers:
        await world.client.put(ref(n), content(n), durable=True, replicas=2)
    kept = numbers[-1]
    await goes_down(world, gone)
    for n in numbers[:-1]:
        assert await world.client.delete(ref(n))
    world.announce(JOINING, UP, UP)
    node = world.restart(gone)
    node.start()
    assert node.joining.missed.in_doubt
    await until(lambda: node.joining.caught_up)
    assert not node.joining.missed.in_doubt
    assert [n for n in numbers if gone in world.holders(n)] == [kept]
    world.announce(UP, UP, UP)
    assert [n for n in numbers if await is_found(world.client, n)] == [kept]


@in_virtual_time
async def test_while_it_does_not_know_what_was_deleted_it_gives_nothing_away() -> None:
    world = World(replicas=2, controller="10.255.255.254")
    gone = absent_home(world)
    n = next(n for n in range(40) if world.homes(n)[0] == gone)
    await world.client.put(ref(n), content(n), durable=True, replicas=2)
    await goes_down(world, gone)
    assert await world.client.delete(ref(n))
    others = {one.address for one in world.members.nodes} - {gone}
    world.network.dead = set(others)
    node = world.restart(gone)
    node.start()
    get = wire.Message(wire.OP_GET, key(n), 0, 0, wire.FLAG_BYPASS, tenant=TENANT)
    stat = wire.Message(wire.OP_STAT, key(n), 0, 0, wire.FLAG_BYPASS, tenant=TENANT)
    world.network.deliver(NODE, gone, wire.encode(get))
    world.network.deliver(NODE, gone, wire.encode(stat))
    assert [m.generation for _, m in world.sent(gone, wire.OP_REFUSED)] == [wire.REFUSED_BUSY] * 2
    assert not world.sent(gone, wire.OP_NOT_FOUND)
    world.network.dead = set()
    await until(lambda: not node.joining.missed.in_doubt)
    assert gone not in world.holders(n)


@in_virtual_time
async def test_a_read_waits_for_the_only_holder_to_learn_what_was_deleted() -> None:
    world = World(replicas=2)
    await world.client.put(ref(1), content(1), replicas=2)
    holder, other = world.homes(1)
    world.stores[other].drop(place(key(1)))
    world.nodes[holder].joining.missed.in_doubt = True
    read = asyncio.create_task(world.client.get(ref(1)))
    await asyncio.sleep(0.2)
    assert not read.done()
    world.nodes[holder].joining.missed.in_doubt = False
    assert (await read).content == content(1)


@in_virtual_time
async def test_a_question_waits_for_the_only_holder_to_learn_what_was_deleted() -> None:
    world = World(replicas=2)
    await world.client.put(ref(1), content(1), replicas=2)
    holder, other = world.homes(1)
    world.stores[other].drop(place(key(1)))
    world.nodes[holder].joining.missed.in_doubt = True
    asked = asyncio.create_task(world.client.exists([ref(1)]))
    await asyncio.sleep(0.2)
    assert not asked.done()
    world.nodes[holder].joining.missed.in_doubt = False
    assert await asked == 1


@in_virtual_time
async def test_a_question_is_answered_by_the_home_that_knows() -> None:
    world = World(replicas=2)
    await world.client.put(ref(1), content(1), replicas=2)
    world.nodes[world.homes(1)[0]].joining.missed.in_doubt = True
    assert await world.client.exists([ref(1)]) == 1


@in_virtual_time
async def test_a_store_that_was_cut_off_learns_it_as_well() -> None:
    world = World(replicas=2, controller="10.255.255.254")
    for node in world.nodes.values():
        node.start()
    await asyncio.sleep(1)
    gone = absent_home(world)
    n = blocks_of(world, gone)[0]
    await world.client.put(ref(n), content(n), replicas=2)
    world.network.dead.add(gone)
    world.announce(DOWN, UP, UP)
    await asyncio.sleep(0.1)
    assert await world.client.delete(ref(n))
    world.network.dead.clear()
    world.announce(JOINING, UP, UP)
    assert world.nodes[gone].joining.missed.in_doubt
    await until(lambda: not world.nodes[gone].joining.missed.in_doubt)
    assert not world.holders(n)


@pytest.mark.parametrize("dies", [True, False])
@in_virtual_time
async def test_where_all_may_have_missed_deletions_they_learn_them_of_one_another(dies: bool) -> None:
    """By the list of a new controller nobody is up, and one of them may be dead."""
    world = World(replicas=2, controller="10.255.255.254")
    for node in world.nodes.values():
        node.start()
    await asyncio.sleep(1)
    world.announce(UP, UP, UP)
    await asyncio.sleep(10)
    gone = world.members.nodes[0].address
    for n in range(12):
        await world.client.put(ref(n), content(n), durable=True)  # at one home: the other lacks it
    if dies:
        world.kill(gone)
    world.members = replace(world.members, epoch=world.members.epoch + 1000)
    world.announce(JOINING, JOINING, JOINING)
    if dies:
        await asyncio.sleep(1)
        world.announce(DOWN, JOINING, JOINING)
        await asyncio.sleep(2)
        world.restart(gone).start()
        world.announce(JOINING, JOINING, JOINING)
    await until(lambda: all(node.joining.caught_up for node in world.nodes.values()), 10)
    assert all(set(world.holders(n)) == set(world.homes(n)) for n in range(12))


@in_virtual_time
async def test_who_is_back_with_nothing_does_not_say_that_it_knows_all() -> None:
    """The one that does know it is slow to say so."""
    world = World(replicas=2, controller="10.255.255.254")
    gone, empty, slow = world.nodes
    n = blocks_of(world, gone)[0]
    await world.client.put(ref(n), content(n), durable=True, replicas=2)
    await goes_down(world, gone)
    assert await world.client.delete(ref(n))
    world.kill(empty)
    world.disks[empty] = SimulatedDisk()
    world.announce(DOWN, DOWN, UP)
    answers_again = listens_to_no_list(world, slow)
    for address in (gone, empty):
        world.restart(address).start()
    world.announce(JOINING, JOINING, UP)
    await asyncio.sleep(2)
    assert wire.OP_VALUE not in await answers_of(world, gone, n)
    answers_again()
    await until(lambda: all(world.nodes[one].joining.caught_up for one in (gone, empty)), 10)
    world.announce(UP, UP, UP)
    assert not world.holders(n)
    assert all(world.nodes[one].joining.missed.knows_all for one in (gone, empty))


@in_virtual_time
async def test_who_returns_while_it_is_deleted_is_told_too() -> None:
    world = World(replicas=2, controller="10.255.255.254")
    gone = absent_home(world)
    n = blocks_of(world, gone)[0]
    await world.client.put(ref(n), content(n), durable=True, replicas=2)
    await goes_down(world, gone)
    deletion = asyncio.ensure_future(world.client.delete(ref(n)))
    await asyncio.sleep(0.0035)  # asked, and not told yet
    assert not deletion.done()
    world.restart(gone)
    world.announce(JOINING, UP, UP)
    assert await deletion
    assert gone not in world.holders(n)


@in_virtual_time
async def test_where_all_fall_while_they_are_told_nothing_is_said_to_be_deleted() -> None:
    world = World(homes=1)
    (home,) = world.nodes
    await world.client.put(ref(1), content(1))
    deletion = asyncio.ensure_future(world.client.delete(ref(1)))
    await asyncio.sleep(0.0045)  # it is being told
    world.network.dead.add(home)
    world.announce(DOWN)
    with pytest.raises(TransferTimeoutError, match="no storage node is up"):
        await deletion
    assert world.holders(1) == [home]


@in_virtual_time
async def test_who_falls_and_returns_while_another_is_waited_for_is_told_at_once() -> None:
    world = World(replicas=2)
    fallen, waited_for = world.homes(1)
    await world.client.put(ref(1), content(1), replicas=2)
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    deletion = asyncio.ensure_future(world.client.delete(ref(1)))
    await asyncio.sleep(0.0045)  # they are being told
    world.network.dead |= {fallen, waited_for}
    world.announce(*(DOWN if one.address == fallen else UP for one in world.members.nodes))
    await asyncio.sleep(0.15)
    world.announce(UP, UP, UP)
    world.network.dead.clear()
    assert await deletion
    assert not world.holders(1)
    assert 0.15 < loop.time() - began_s < 0.35


@in_virtual_time
async def test_who_is_away_again_soon_does_not_serve_what_was_deleted_the_second_time() -> None:
    """The doubt of the first time ends in the middle of the second."""
    world = World(replicas=2, controller="10.255.255.254")
    for node in world.nodes.values():
        node.start()
    await asyncio.sleep(1)
    gone, *others = (one.address for one in world.members.nodes)
    n = blocks_of(world, gone)[0]
    await world.client.put(ref(n), content(n), durable=True, replicas=2)

    async def is_away(*, deleting: bool) -> None:
        world.network.dead.add(gone)
        world.announce(DOWN, UP, UP)
        await asyncio.sleep(0.1)
        if deleting:
            assert await world.client.delete(ref(n))
            listens_to_no_list(world, gone, *others)
        world.network.dead.clear()
        world.announce(JOINING, UP, UP)

    await is_away(deleting=False)
    await until(lambda: not world.nodes[gone].joining.missed.in_doubt)
    await asyncio.sleep(DOUBT_S - 5)
    await is_away(deleting=True)
    await asyncio.sleep(10)
    assert await answers_of(world, gone, n) == {wire.OP_REFUSED}


@in_virtual_time
async def test_what_was_said_to_be_deleted_before_it_was_in_the_list_is_not_all() -> None:
    world = World(replicas=2, controller="10.255.255.254")
    gone, *others = (one.address for one in world.members.nodes)
    n = blocks_of(world, gone)[0]
    await world.client.put(ref(n), content(n), durable=True, replicas=2)
    world.kill(gone)
    listed = world.announce(DOWN, UP, UP)
    await asyncio.sleep(0.1)
    world.members = Members(0, 2, listed.nodes)  # it begins with no list of a controller
    node = world.restart(gone)
    world.members = listed
    node.start()
    await until(lambda: node.joining.catch_up.stats.passes > 0)
    assert node.joining.missed.in_doubt
    assert await world.client.delete(ref(n))
    listens_to_no_list(world, *others)
    world.announce(JOINING, UP, UP)
    await asyncio.sleep(1)
    assert await answers_of(world, gone, n) == {wire.OP_REFUSED}


@in_virtual_time
async def test_what_peers_began_to_say_before_it_was_away_is_not_all() -> None:
    """It compares what it has with what they have when the list before is settled, and has not ended yet."""
    world = World(replicas=2, controller="10.255.255.254")
    gone, *others = (one.address for one in world.members.nodes)
    n = blocks_of(world, gone)[0]
    await world.client.put(ref(n), content(n), durable=True, replicas=2)
    for other in others:
        stones = world.stores[other].graveyard.stones
        for number in range(100):  # their list goes on for a while behind the block's place
            made_up = Tombstone(Place(TENANT, bytes([255, number]) + bytes(14)), 5, bytes(16))
            stones.add(made_up, world.clock_s)
    world.network.faults = Faults(min_delay_s=0.05, max_delay_s=0.05)
    world.announce(UP, UP, UP)
    await asyncio.sleep(SETTLED_S + 0.2)
    world.announce(DOWN, UP, UP)
    await asyncio.sleep(0.1)
    assert await world.client.delete(ref(n))
    assert gone in world.holders(n)
    listens_to_no_list(world, *others, start=FIRST.key)
    world.announce(JOINING, UP, UP)
    await asyncio.sleep(1)
    world.network.faults = NO_FAULTS
    assert await answers_of(world, gone, n) == {wire.OP_REFUSED}


@in_virtual_time
async def test_nothing_is_given_away_while_a_peer_still_says_what_was_deleted() -> None:
    """However long that takes."""
    world = World(replicas=2, controller="10.255.255.254")
    gone, *others = (one.address for one in world.members.nodes)
    n = blocks_of(world, gone)[0]
    await world.client.put(ref(n), content(n), durable=True, replicas=2)
    await goes_down(world, gone)
    assert await world.client.delete(ref(n))
    for other in others:
        stones = world.stores[other].graveyard.stones
        for number in range(900):
            made_up = Tombstone(Place(TENANT, number.to_bytes(16, "big")), 5, bytes(16))
            stones.add(made_up, world.clock_s)
    world.network.faults = Faults(min_delay_s=0.2, max_delay_s=0.2)
    world.announce(JOINING, UP, UP)
    node = world.restart(gone)
    node.start()
    listens_to_no_list(world, gone)
    await asyncio.sleep(DOUBT_S + 1)
    assert gone not in world.holders(n) or node.joining.missed.in_doubt
    await until(lambda: not node.joining.missed.in_doubt)
    assert gone not in world.holders(n)


@in_virtual_time
async def test_who_waited_for_the_disk_when_a_home_fell_from_the_list_gets_nothing_that_was_deleted() -> None:
    world = World(replicas=2, controller="10.255.255.254", dram_bytes=1)
    for node in world.nodes.values():
        node.start()
    await asyncio.sleep(1)
    gone, *others = (one.address for one in world.members.nodes)
    n, later = blocks_of(world, gone)[:2]
    for number in (n, later):
        await world.client.put(ref(number), content(number), durable=True, replicas=2)
    world.nodes[gone].set_ssd_rate(len(content(n)))  # a block a second
    get = wire.Message(wire.OP_GET, key(n), 0, 0, wire.FLAG_BYPASS, tenant=TENANT)
    world.network.deliver(NODE, gone, wire.encode(get))
    world.network.dead.add(gone)
    world.announce(DOWN, UP, UP)
    assert await world.client.delete(ref(n))
    world.network.dead.clear()
    listens_to_no_list(world, gone, *others)
    world.announce(JOINING, UP, UP)
    await asyncio.sleep(1.5)
    assert not [True for to, _ in world.sent(gone, wire.OP_VALUE) if to == NODE]


@pytest.mark.parametrize("replicas", [1, 2])
@in_virtual_time
async def test_who_knows_that_it_is_down_gives_nothing_that_may_be_deleted_without_it(replicas: int) -> None:
    """It answers whoever asks all storage nodes. With R = 1 nobody deletes what it is the home of."""
    world = World(replicas=replicas, controller="10.255.255.254")
    home = absent_home(world)
    n = next(n for n in range(40) if world.homes(n)[0] == home)
    await world.client.put(ref(n), content(n), durable=True, replicas=replicas)
    world.announce(DOWN, UP, UP)
    await asyncio.sleep(0.1)
    if replicas == 1:
        with pytest.raises(TransferTimeoutError):
            await world.client.delete(ref(n))
        assert await answers_of(world, home, n) == {wire.OP_VALUE}
    else:
        assert await world.client.delete(ref(n))
        assert await answers_of(world, home, n) == {wire.OP_REFUSED}


@in_virtual_time
async def test_a_block_counts_for_nothing_from_who_does_not_know_yet_that_it_was_away() -> None:
    world = World(replicas=2, controller="10.255.255.254")
    home = absent_home(world)
    n = next(n for n in range(40) if world.homes(n)[0] == home)
    await world.client.put(ref(n), content(n), durable=True, replicas=2)
    world.announce(UP, UP, UP)
    world.network.dead.add(home)
    world.announce(DOWN, UP, UP)
    assert await world.client.delete(ref(n))
    listens_to_no_list(world, home, op=wire.OP_MEMBERS)
    world.network.dead.discard(home)
    world.announce(JOINING, UP, UP)
    assert await answers_of(world, home, n) == {wire.OP_VALUE}
    with pytest.raises(TransferError):
        await world.client.get(ref(n)._replace(homes=(home,)))


@in_virtual_time
async def test_a_home_that_does_not_know_that_it_was_away_gives_nothing_that_was_deleted() -> None:
    """Its link is back before it hears the list: nobody who goes by that takes a block from it."""
    world = World(replicas=2, controller="10.255.255.254")
    reader = world.another_client("10.0.0.9")
    world.announce(UP, UP, UP)
    await world.client.put(ref(1), content(1), durable=True, replicas=2)
    away = world.homes(1)[0]
    world.network.dead.add(away)
    assert await is_found(reader, 1)
    world.announce(*(DOWN if one.address == away else UP for one in world.members.nodes))
    assert await world.client.delete(ref(1))
    world.network.dead.discard(away)
    await asyncio.sleep(1)  # the reader hears of the home again, and that it goes by another list
    reading = asyncio.create_task(is_found(reader, 1))
    await asyncio.sleep(1)
    assert not reading.done()
    world.announce(*(JOINING if one.address == away else UP for one in world.members.nodes))
    assert not await reading


@in_virtual_time
async def test_a_home_that_does_not_know_that_it_was_away_holds_no_block_by_one_that_was_deleted() -> None:
    world = World(replicas=2, controller="10.255.255.254")
    world.announce(UP, UP, UP)
    away = world.homes(1)[0]
    await world.client.put(ref(1), content(1), durable=True, replicas=2)
    world.network.dead.add(away)
    world.announce(*(DOWN if one.address == away else UP for one in world.members.nodes))
    assert await world.client.delete(ref(1))
    world.announce(*(JOINING if one.address == away else UP for one in world.members.nodes))
    world.network.dead.discard(away)  # the list did not reach it
    writing = asyncio.create_task(world.client.put(ref(1), content(2)))
    await asyncio.sleep(1)
    assert not writing.done()
    world.announce(*(JOINING if one.address == away else UP for one in world.members.nodes))
    with pytest.raises(PutRefusedError, match="deleted"):
        await writing
    await world.client.put(ref(1), content(2))
    assert (await world.client.get(ref(1))).content == content(2)
