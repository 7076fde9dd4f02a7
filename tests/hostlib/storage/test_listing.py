"""A storage node lists its blocks to members alone, and spends a bounded time on it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from hostlib.protocol import wire
from hostlib.protocol.block import Place
from hostlib.protocol.catalog import PAGE_ENTRIES, read_page
from hostlib.protocol.members import State
from hostlib.protocol.tombstones import Tombstone, read_stones_page
from hostlib.storage.listing import LOOK_S, PIECE, REST, SORT_S, STONE_S, in_order
from tests.asynchronous import in_virtual_time
from tests.hostlib.sealed import TENANT, place
from tests.hostlib.world import World, key, put_all, ref

UP = State.UP
BLOCKS = 60
STONES = 2_000


@in_virtual_time
async def test_only_members_are_told_what_is_there() -> None:
    world = World()
    asked = world.network.port("10.0.0.66")
    replies: list[object] = []
    asked.set_receiver(lambda address, datagrams: replies.extend(datagrams))
    home = world.members.nodes[0].address
    asked.send(home, [wire.encode(wire.Message(wire.OP_LIST, bytes(16), 0, 0, homes=(1, 0, 0)))])
    await asyncio.sleep(1)
    assert replies == []
    assert world.nodes[home].stats.unexpected == 1


@in_virtual_time
async def test_a_peer_that_asks_without_end_takes_a_fifth_of_the_time_and_no_other_peers_turn() -> None:
    """2,000 questions a second, each for a new list."""
    world = World(homes=3, replicas=3)
    home, liar, honest = (member.address for member in world.members.nodes)
    await put_all(world, 0, BLOCKS)
    port = world.network.port(liar)
    asked = wire.encode(wire.Message(wire.OP_LIST, bytes(16), 0, 0, homes=(2, 0, 0)))
    world.nodes[honest].start()
    for _ in range(2_000):
        port.send(home, [asked])
        await asyncio.sleep(0.0005)
    held = len(world.stores[home].places())
    costs_s = held * SORT_S + PAGE_ENTRIES * LOOK_S
    answers = [to for to, _ in world.sent(home, wire.OP_KEYS)]
    assert 5 < answers.count(liar) <= 1 / (REST * costs_s) + 2
    assert answers.count(honest) >= -(-held // PAGE_ENTRIES)


@in_virtual_time
async def test_a_list_says_which_blocks_came_before_the_node_knew_what_others_hold() -> None:
    world = World(homes=2, replicas=2)
    asker, asked = (member.address for member in world.members.nodes)
    await put_all(world, 0, 3)
    places = sorted(world.stores[asked].places())
    question = wire.encode(wire.Message(wire.OP_LIST, bytes(16), 0, 0, homes=(1, 0, 0)))
    for fresh in ([], places[:1], places[1:]):
        world.nodes[asked].joining.settled = False
        world.nodes[asked].joining._fresh.clear()
        for one in fresh:
            world.nodes[asked].joining.made(one)
        world.network.port(asker).send(asked, [question])
        await asyncio.sleep(1)
        _, page = world.sent(asked, wire.OP_KEYS)[-1]
        _, entries = read_page(page.value, page.content)
        assert (page.flags, [entry.place for entry in entries]) == (0, places)
        assert [entry.place for entry in entries if entry.fresh] == fresh


@in_virtual_time
async def test_who_goes_on_with_a_list_that_was_begun_before_a_restart_hears_the_rest() -> None:
    world = World(homes=2, replicas=2)
    asker, asked = (member.address for member in world.members.nodes)
    await put_all(world, 0, 6)
    deleted = sorted(place(key(number)) for number in range(3))
    for number in range(3):
        await world.client.delete(ref(number))
    held = sorted(world.stores[asked].places())
    world.kill(asked)
    world.restart(asked)
    port = world.network.port(asker)
    for flags, start in ((0, held[1]), (wire.FLAG_TOMBSTONES, deleted[1])):
        question = wire.Message(wire.OP_LIST, start.key, 0, 0, flags, tenant=TENANT, homes=(1, 0, 0))
        port.send(asked, [wire.encode(question)])
        await asyncio.sleep(1)
    (_, blocks), (_, stones) = world.sent(asked, wire.OP_KEYS)
    assert [entry.place for entry in read_page(blocks.value)[1]] == held[1:]
    assert [stone.place for stone, *_ in read_stones_page(stones.value)[1]] == deleted[1:]


@in_virtual_time
async def test_a_peer_with_an_older_list_of_members_does_not_say_what_it_holds() -> None:
    """By its list the asker may be no home of what is the asker's by now."""
    world = World(homes=2, replicas=2)
    asker, peer = (member.address for member in world.members.nodes)
    await put_all(world, 0, 3)
    asked = wire.Message(wire.OP_LIST, bytes(16), 0, 0, homes=(1, 0, 0), generation=1, epoch=1)
    world.network.port(asker).send(peer, [wire.encode(asked)])
    await asyncio.sleep(1)
    assert not world.sent(peer, wire.OP_KEYS)
    world.announce(UP, UP)
    world.network.port(asker).send(peer, [wire.encode(asked)])
    await asyncio.sleep(1)
    assert len(world.sent(peer, wire.OP_KEYS)) == 1


@in_virtual_time
async def test_a_peer_that_asks_for_deletions_without_end_takes_a_fifth_of_the_time() -> None:
    world = World(homes=2, replicas=2)
    home, liar = (member.address for member in world.members.nodes)
    for number in range(STONES):
        name = number.to_bytes(16, "big")
        world.stores[home].graveyard.bury(Tombstone(Place(TENANT, name), 1, name), 0.0)
    port = world.network.port(liar)
    flags = wire.FLAG_TOMBSTONES
    asked = wire.encode(wire.Message(wire.OP_LIST, bytes(16), 0, 0, flags, homes=(2, 0, 0)))
    for _ in range(1_000):
        port.send(home, [asked])
        await asyncio.sleep(0.001)
    answers = [to for to, _ in world.sent(home, wire.OP_KEYS)]
    assert 5 < answers.count(liar) <= 1 / (REST * (LOOK_S + STONES * STONE_S)) + 2


@in_virtual_time
async def test_others_have_their_turn_while_many_entries_are_sorted() -> None:
    """A list of a million blocks kept a storage node from saying that it lives, and it fell from the list."""
    made = [Place(number % 3, key(number)) for number in range(4 * PIECE)]
    turns, turns_before_sorting = 0, 0

    def entries() -> Iterator[Place]:
        nonlocal turns_before_sorting
        yield from made
        turns_before_sorting = turns

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    beside = asyncio.create_task(others())
    assert await in_order(entries(), lambda place: place) == sorted(made)
    beside.cancel()
    assert turns_before_sorting >= 3
    assert turns > turns_before_sorting + 3
