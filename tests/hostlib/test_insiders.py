"""A host of the tenant that knows keys, but not the secret, PUTs garbage: what was acknowledged stays
readable."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import pytest

from hostlib.client.client import Client
from hostlib.protocol import wire
from hostlib.protocol.block import Place
from hostlib.protocol.catalog import read_page
from hostlib.protocol.errors import BlockNotFoundError, PutRefusedError
from hostlib.protocol.hints import Hint, HintOutcome
from hostlib.protocol.members import SETTLED_S, State
from hostlib.protocol.seal import Seal
from hostlib.protocol.tombstones import MAX_OF_BLOCK, Tombstone, delete_message
from hostlib.storage.store_options import StoreOptions
from tests.asynchronous import in_virtual_time, until
from tests.hostlib.network import Faults
from tests.hostlib.sealed import TENANT, fragments
from tests.hostlib.world import FRAGMENTS, NODE, World, content, key, ref

pytestmark = pytest.mark.usefixtures("either_core")

UP, DOWN, JOINING = State.UP, State.DOWN, State.JOINING
INTRUDER = "10.0.0.66"
GARBAGE_WRITE = 4242
BLOCKS = 30
PLACE = Place(TENANT, key(1))


def garbage(number: int, write: int = GARBAGE_WRITE) -> list[bytes]:
    return [
        wire.encode(
            wire.Message(
                wire.OP_PUT, key(number), at, FRAGMENTS, wire.FLAG_DURABLE | wire.FLAG_RETRY, tenant=TENANT,
                content=write, tag=bytes(16), value=b"G" * 512,
            )
        )
        for at in range(FRAGMENTS)
    ]  # fmt: skip


def attack(world: World, homes: Iterable[str], number: int, write: int = GARBAGE_WRITE) -> None:
    """All of it at once, as a burst."""
    for home in homes:
        world.network.deliver_burst(INTRUDER, home, garbage(number, write))


async def put_all(world: World) -> None:
    await asyncio.gather(
        *(world.client.put(ref(n), content(n), durable=True, replicas=2) for n in range(BLOCKS))
    )


def write_at(world: World, home: str, number: int) -> int | None:
    found = world.stores[home].find(Place(TENANT, key(number)))
    return None if found is None else found[1]


async def settled(world: World) -> None:
    await asyncio.sleep(3 * SETTLED_S)


@in_virtual_time
async def test_who_is_no_home_takes_nothing_and_says_so_of_each_fragment() -> None:
    world = World(homes=4, replicas=2)
    world.network.port(INTRUDER)
    for number in range(BLOCKS):
        strangers = [home for home in world.nodes if home not in world.homes(number)]
        attack(world, strangers, number)
    await asyncio.sleep(0.1)
    assert all(not world.holders(number) for number in range(BLOCKS))
    refused = [reply for home in world.nodes for _, reply in world.sent(home, wire.OP_REFUSED)]
    assert {reply.generation for reply in refused} == {wire.REFUSED_NOT_HOME}
    assert len(refused) == 2 * BLOCKS * FRAGMENTS
    assert sum(node.stats.refused for node in world.nodes.values()) == len(refused)


@in_virtual_time
async def test_blocks_outlive_their_homes_one_after_the_other_whatever_was_put_elsewhere() -> None:
    world = World(homes=4, replicas=2)
    await put_all(world)
    for number in range(BLOCKS):
        attack(world, [home for home in world.nodes if home not in world.homes(number)], number)
    await asyncio.sleep(0.1)
    states = [UP] * 4
    for dead in range(2):
        world.kill(world.members.nodes[dead].address)
        states[dead] = DOWN
        world.announce(*states)
        await settled(world)
    for number in range(BLOCKS):
        assert (await world.client.get(ref(number))).content == content(number)


@pytest.mark.parametrize("same_write", [False, True])
@in_virtual_time
async def test_what_is_put_to_a_stand_in_gives_way_to_what_the_other_home_had(
    same_write: bool,
) -> None:
    """Also under the content id of what is there."""
    world = World(homes=3, replicas=2)
    await put_all(world)
    gone = world.members.nodes[0].address
    mine = [number for number in range(BLOCKS) if gone in world.homes(number)]
    genuine = {number: write_at(world, gone, number) for number in mine}
    world.kill(gone)
    world.announce(DOWN, UP, UP)
    await asyncio.sleep(0.01)
    for number in mine:
        write = genuine[number]
        assert write is not None
        attack(world, world.homes(number), number, write if same_write else GARBAGE_WRITE)
    await settled(world)
    replaced = [node.joining.catch_up.stats.replaced for node in world.nodes.values()]
    assert sum(replaced) == len(mine)
    for number in mine:
        assert [write_at(world, home, number) for home in world.homes(number)] == [genuine[number]] * 2
    world.kill(world.members.nodes[1].address)
    world.announce(DOWN, DOWN, UP)
    for number in range(BLOCKS):
        assert (await world.client.get(ref(number))).content == content(number)


@in_virtual_time
async def test_what_is_put_to_an_empty_home_that_returns_gives_way_to_what_the_other_home_has() -> None:
    """On its disk, too."""
    world = World(homes=3, replicas=2)
    await put_all(world)
    gone = world.members.nodes[0].address
    world.kill(gone)
    world.announce(DOWN, UP, UP)
    await settled(world)
    world.disks[gone] = type(world.disks[gone])(seed=5)
    node = world.restart(gone)
    node.start()
    mine = [number for number in range(BLOCKS) if gone in world.homes(number, 3)[:2]]
    for number in range(BLOCKS):
        attack(world, [gone], number)
    world.announce(JOINING, UP, UP)
    await until(lambda: node.joining.caught_up)
    world.announce(UP, UP, UP)
    await settled(world)
    world.kill(gone)
    world.restart(gone)  # what its disk has
    mine = [number for number in range(BLOCKS) if gone in world.homes(number)]
    world.network.dead |= {member.address for member in world.members.nodes[1:]}
    for number in mine:
        if world.homes(number)[0] == gone:
            assert (await world.client.get(ref(number))).content == content(number)
        assert write_at(world, gone, number) != GARBAGE_WRITE


@in_virtual_time
async def test_a_list_that_was_replaced_counts_for_a_moment() -> None:
    world = World(homes=3, replicas=1)
    world.network.port(INTRUDER)
    number = next(n for n in range(BLOCKS) if world.homes(n)[0] == world.members.nodes[0].address)
    home = world.homes(number)[0]
    world.announce(DOWN, UP, UP)
    stand_in = world.homes(number)[0]
    world.announce(JOINING, UP, UP)
    assert home == world.homes(number)[0]
    node = world.nodes[stand_in]
    assert node.joining.is_home(key(number))
    for _ in range(20):  # however many lists come
        world.announce(UP, UP, UP)
        world.announce(UP, UP, JOINING)
    await asyncio.sleep(SETTLED_S + 0.1)
    assert not node.joining.is_home(key(number))


@in_virtual_time
async def test_nobody_adds_to_what_another_host_puts() -> None:
    """The intruder knows the content id: of a home that has the block already."""
    world = World(homes=2, replicas=2)
    first, second = world.homes(1)
    world.network.dead.add(second)
    put = asyncio.create_task(world.client.put(ref(1), content(1), durable=True, replicas=2))
    while (write := write_at(world, first, 1)) is None:
        await asyncio.sleep(0.0005)
    world.network.dead.discard(second)
    world.network.deliver_burst(INTRUDER, second, garbage(1, write)[1:])
    await put
    world.network.dead.add(first)
    assert (await world.client.get(ref(1))).content == content(1)


@in_virtual_time
async def test_of_a_tenants_hosts_the_one_that_leaves_most_incomplete_gives_way() -> None:
    world = World(homes=1, store_options=StoreOptions(max_partial=16))
    (home,) = world.nodes
    parts = fragments(wire.OP_PUT, key(0), content(0))
    world.network.deliver(NODE, home, wire.encode(parts[0]))
    for number in range(1, 200):
        world.network.deliver(INTRUDER, home, garbage(number)[0])
    for part in parts[1:]:
        world.network.deliver(NODE, home, wire.encode(part))
    assert world.holders(0) == [home]
    assert world.stores[home].stats.partial_dropped > 100


@pytest.mark.parametrize("replicas", [1, 2])
@in_virtual_time
async def test_garbage_that_was_there_first_is_not_acknowledged_as_a_durable_write(replicas: int) -> None:
    world = World(homes=3, replicas=2)
    attack(world, world.homes(1)[:1], 1)
    await asyncio.sleep(0.1)
    with pytest.raises(PutRefusedError, match="did not write"):
        await world.client.put(ref(1), content(1), durable=True, replicas=replicas)


@in_virtual_time
async def test_another_write_of_the_tenant_is_as_good() -> None:
    world = World(homes=3, replicas=2)
    other = world.another_client("10.0.0.2")
    await other.put(ref(1), content(1), durable=True, replicas=2)
    both = (world.client, other)
    await asyncio.gather(*(one.put(ref(1), content(1), durable=True, replicas=2) for one in both))
    assert world.client.stats.blocks_fetched == 2  # from each home


@in_virtual_time
async def test_a_store_that_asks_in_anothers_name_hears_of_its_own_blocks() -> None:
    world = World(homes=3, replicas=2)
    for number in range(10):
        await world.client.put(ref(number), content(number), replicas=2)
    asked, asker, other = (member for member in world.members.nodes)
    list_ = wire.Message(wire.OP_LIST, bytes(16), 0, 0, homes=(other.number, 0, 0))
    world.network.deliver(asker.address, asked.address, wire.encode(list_))
    await asyncio.sleep(1)
    ((_, page),) = world.sent(asked.address, wire.OP_KEYS)
    told = {entry.place.key for entry in read_page(page.value)[1]}
    both = [n for n in range(10) if {asked.address, asker.address} == set(world.homes(n))]
    assert told == {key(number) for number in both}


def made_up_deletions(number: int, count: int) -> list[bytes]:
    """DELETEs of writes of one block that do not exist, with proofs that match nothing, behind all others in
    lists."""
    place, last = Place(TENANT, key(number)), (1 << 64) - 1
    stones = (Tombstone(place, last - at, bytes([at]) * 16) for at in range(count))
    return [delete_message(stone, FRAGMENTS, 0) for stone in stones]


@in_virtual_time
async def test_made_up_deletions_cost_no_block_whose_homes_were_away_together() -> None:
    """The node that stays forgets tombstones, and so can't say what was deleted. But no deletion of a block
    is acknowledged while all its homes are away."""
    world = World(homes=3, replicas=2, controller="10.255.255.254")
    world.network.port(INTRUDER)
    for node in world.nodes.values():
        node.start()
    await asyncio.sleep(1)
    await put_all(world)
    away, there = [home.address for home in world.members.nodes[:2]], world.members.nodes[2].address
    for home in away:
        world.kill(home)
    world.announce(DOWN, DOWN, UP)
    world.clock_s += 60
    world.network.deliver_burst(INTRUDER, there, made_up_deletions(0, MAX_OF_BLOCK + 1))
    await asyncio.sleep(0.1)
    world.clock_s += 60
    world.announce(JOINING, JOINING, UP)
    back = [world.restart(home) for home in away]
    for node in back:
        node.start()
    await asyncio.sleep(0.1)
    world.announce(JOINING, JOINING, UP)
    await asyncio.sleep(120)
    assert all(node.joining.caught_up and not node.joining.missed.in_doubt for node in back)
    world.announce(UP, UP, UP)
    for number in range(BLOCKS):
        assert (await world.client.get(ref(number))).content == content(number)


@in_virtual_time
async def test_made_up_deletions_cost_no_block_whose_homes_are_away_one_after_the_other() -> None:
    """Each, when it returned, gave up what the other had, and that one was gone before it was copied."""
    world = World(homes=3, replicas=2, controller="10.255.255.254")
    world.network.port(INTRUDER)
    for node in world.nodes.values():
        node.start()
    await asyncio.sleep(1)
    await put_all(world)
    one, other, third = (home.address for home in world.members.nodes)

    async def is_away(home: str, *others: str) -> None:
        """It falls, the intruder makes up deletions, and it returns."""
        world.kill(home)
        world.announce(*(DOWN if node.address == home else UP for node in world.members.nodes))
        world.clock_s += 60
        for there in others:
            world.network.deliver_burst(INTRUDER, there, made_up_deletions(0, MAX_OF_BLOCK + 1))
        await asyncio.sleep(0.1)
        world.clock_s += 60
        world.announce(*(JOINING if node.address == home else UP for node in world.members.nodes))
        world.restart(home).start()
        await until(lambda: not world.nodes[home].joining.missed.in_doubt)

    world.network.faults = Faults(min_delay_s=0.05, max_delay_s=0.05)  # copies take longer than a list
    await is_away(one, other, third)
    world.kill(other)
    world.announce(JOINING, DOWN, UP)
    await until(lambda: world.nodes[one].joining.caught_up)
    world.restart(other)
    await is_away(other, one, third)
    await until(lambda: world.nodes[other].joining.caught_up)
    world.announce(UP, UP, UP)
    for number in range(BLOCKS):
        assert (await world.client.get(ref(number))).content == content(number)


@in_virtual_time
async def test_made_up_deletions_bring_nothing_back_that_was_deleted() -> None:
    """A host had a tombstone forgotten by eight more of the block, and put a copy back that it had read."""
    world = World(homes=3, replicas=2)
    world.network.port(INTRUDER)
    await world.client.put(ref(1), content(1), durable=True, replicas=2)
    copy = [data for source, _, data in world.network.log if source == NODE and data[1] == wire.OP_PUT]
    await world.client.delete(ref(1))
    for home in world.nodes:
        world.network.deliver_burst(INTRUDER, home, made_up_deletions(1, 2 * MAX_OF_BLOCK))
    await asyncio.sleep(0.1)
    for home in world.homes(1):
        world.network.deliver_burst(INTRUDER, home, copy)
    await asyncio.sleep(0.5)
    assert not world.holders(1)
    with pytest.raises(BlockNotFoundError):
        await world.client.get(ref(1))


async def is_brought_back(world: World, homes: Iterable[str]) -> bool:
    """Make up more deletions of the first block, and put the copy of it that its writer sent."""
    copy = [data for source, _, data in world.network.log if source == NODE and data[1] == wire.OP_PUT]
    for home in homes:
        world.network.deliver_burst(INTRUDER, home, made_up_deletions(1, 2 * MAX_OF_BLOCK))
    await asyncio.sleep(0.1)
    for home in homes:
        world.network.deliver_burst(INTRUDER, home, copy)
    await asyncio.sleep(0.5)
    return bool(world.holders(1))


@in_virtual_time
async def test_made_up_deletions_bring_nothing_back_after_a_restart() -> None:
    """The disk knew of each tombstone but not who sent it: so those of all hosts were one host's."""
    world = World(homes=3, replicas=2)
    world.network.port(INTRUDER)
    await world.client.put(ref(1), content(1), durable=True, replicas=2)
    await world.client.delete(ref(1))
    for home in world.nodes:
        world.network.deliver_burst(INTRUDER, home, made_up_deletions(1, MAX_OF_BLOCK - 1))
    await asyncio.sleep(0.1)
    for home in world.nodes:
        world.kill(home)
        world.restart(home)
    assert not await is_brought_back(world, world.homes(1))


@in_virtual_time
async def test_made_up_deletions_bring_nothing_back_at_a_home_that_heard_of_them_from_others() -> None:
    world = World(homes=3, replicas=2)
    world.network.port(INTRUDER)
    await world.client.put(ref(1), content(1), durable=True, replicas=2)
    await world.client.delete(ref(1))
    home = world.homes(1)[0]
    for other in world.nodes:
        world.network.deliver_burst(INTRUDER, other, made_up_deletions(1, MAX_OF_BLOCK - 1))
    await asyncio.sleep(0.1)
    world.kill(home)
    world.disks[home] = type(world.disks[home])(seed=5)
    world.restart(home).start()
    await until(lambda: world.nodes[home].joining.caught_up)
    assert len(world.stores[home].graveyard.stones) == MAX_OF_BLOCK
    assert not await is_brought_back(world, [home])


@in_virtual_time
async def test_lifetimes_of_the_intruders_own_garbage_bring_nothing_back() -> None:
    """Homes end lifetimes themselves, and tell the others: whose they were goes with it."""
    world = World(homes=3, replicas=2, controller="10.255.255.254")
    intruder = Client(world.network.port(INTRUDER), world.members, Seal(TENANT, b"the intruder's own secret"))
    clients = (world.client, *(intruder for _ in range(MAX_OF_BLOCK)))
    for client in clients:
        await client.put(ref(1), content(1), durable=True, replicas=2)
        assert await client.hint(ref(1), Hint.EXPIRE, 1) is HintOutcome.DONE
        world.clock_s += 2
        await until(lambda: not world.holders(1))
    await asyncio.sleep(1)
    for store in world.stores.values():
        assert len(store.graveyard.stones) == MAX_OF_BLOCK
        assert {store.graveyard.stones.source_of(stone) for stone in store.graveyard.stones.of(PLACE)} == {
            NODE,
            INTRUDER,
        }
    assert not await is_brought_back(world, world.nodes)
