"""What a client makes of "not found" where it and the storage nodes go by different lists of members."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from hostlib.client.client_options import ClientOptions
from hostlib.protocol import wire
from hostlib.protocol.block import Place
from hostlib.protocol.content import block_content, sealed_block
from hostlib.protocol.errors import BlockNotFoundError, TransferTimeoutError
from hostlib.protocol.members import Members, State
from hostlib.protocol.transfer import BlockRef
from tests.asynchronous import in_virtual_time
from tests.hostlib.client_world import BLOCK_BYTES, NODE, World, keys, refs, value_of
from tests.hostlib.network import NO_FAULTS, Faults
from tests.hostlib.sealed import SEAL, TENANT

NODES = ("10.0.0.101", "10.0.0.102", "10.0.0.103")
CONTENT = block_content(keys(1)[0], BLOCK_BYTES)

pytestmark = pytest.mark.usefixtures("either_core")
both = pytest.mark.parametrize("asks", [False, True])
"""A block is read, or asked about."""


def order(world: World) -> list[str]:
    """The storage nodes in the order in which they are homes of the first block."""
    return [member.address for member in world.members.order(keys(1)[0])]


def store(world: World, address: str, number: int = 0) -> None:
    """A storage node holds a block."""
    key = keys(number + 1)[number]
    block = sealed_block(SEAL, key, 6, block_content(key, BLOCK_BYTES))
    world.stores[address].put(Place(TENANT, key), block, durable=False)


def tell(world: World, hosts: list[str], epoch: int, states: dict[str, State] | None = None) -> None:
    """A controller's list reaches these hosts; who is not named is up."""
    nodes = tuple(
        replace(node, state=(states or {}).get(node.address, State.UP)) for node in world.members.nodes
    )
    value = Members(epoch, world.members.replicas, nodes).encode()
    message = wire.Message(wire.OP_MEMBERS, bytes(16), 0, 0, value=value, epoch=epoch & 0xFF)
    for host in hosts:
        world.network.deliver("10.255.255.254", host, wire.encode(message))


async def had(world: World, asks: bool) -> bool:
    """Whether the first block can be had, by asking for it or by reading it."""
    if asks:
        return await world.client.exists(refs(1)) == 1
    try:
        return (await world.client.get(refs(1)[0])).content == CONTENT
    except BlockNotFoundError:
        return False


def asked(world: World) -> set[str]:
    """Whom the client asked for the first block."""
    sent = [(to, wire.decode(data)) for source, to, data in world.network.log if source == NODE]
    ops = (wire.OP_GET, wire.OP_STAT)
    return {to for to, message in sent if message.op in ops and message.key == keys(1)[0]}


@both
@pytest.mark.parametrize("epochs", [(0, 7), (5, 7), (5, 0), (7, 5)])
@in_virtual_time
async def test_who_goes_by_another_list_than_a_home_that_lacks_a_block_asks_all(
    asks: bool, epochs: tuple[int, int]
) -> None:
    """The node began anew or hears no lists, or the home began anew. Meanwhile the block was put where the
    first home was said to be down."""
    world = World(homes=NODES)
    own, theirs = epochs
    store(world, order(world)[2])
    tell(world, [NODE], own)
    tell(world, [*NODES], theirs)
    assert await had(world, asks)


@both
@in_virtual_time
async def test_who_knows_that_there_is_another_list_asks_all(asks: bool) -> None:
    """The first home does not hear the newest list, either; other answers show that there is one."""
    world = World(homes=NODES)
    first, holder, _ = order(world)
    other = next(n for n in range(1, 50) if world.homes(keys(n + 1)[n]) == [holder])
    store(world, holder)
    store(world, holder, other)
    tell(world, [NODE, *NODES], 5)
    tell(world, [holder], 7, {first: State.DOWN})
    await world.client.get(BlockRef(keys(other + 1)[other]))
    assert await had(world, asks)


@both
@in_virtual_time
async def test_where_one_does_not_answer_a_block_is_not_said_to_be_missing(asks: bool) -> None:
    world = World(homes=NODES)
    _, holder, _ = order(world)
    store(world, holder)
    tell(world, [NODE], 5)
    tell(world, [*NODES], 7)
    world.network.dead.add(holder)
    with pytest.raises(TransferTimeoutError):
        await had(world, asks)


@both
@in_virtual_time
async def test_who_waits_for_one_that_is_down_by_a_newer_list_goes_by_that_when_it_comes(asks: bool) -> None:
    world = World(homes=NODES)
    last = order(world)[2]
    tell(world, [NODE], 5)
    tell(world, [*NODES], 7, {last: State.DOWN})
    world.network.dead.add(last)
    read = asyncio.create_task(had(world, asks))
    await asyncio.sleep(0.1)
    assert asked(world) == set(NODES)
    tell(world, [NODE], 7, {last: State.DOWN})
    assert not await read


@both
@in_virtual_time
async def test_what_all_lack_is_missing_and_where_lists_agree_only_its_homes_are_asked(asks: bool) -> None:
    world = World(homes=NODES)
    tell(world, [NODE], 5)
    tell(world, [*NODES], 7)
    assert not await had(world, asks)
    assert asked(world) == set(NODES)
    tell(world, [NODE], 7)
    world.network.log.clear()
    assert not await had(world, asks)
    assert asked(world) == {order(world)[0]}


@both
@in_virtual_time
async def test_a_list_that_comes_while_a_home_answers_counts(asks: bool) -> None:
    """The home that is asked was down when the block was put, and the node was not told so."""
    world = World(homes=NODES)
    back, stand_in, _ = order(world)
    store(world, stand_in)
    tell(world, [NODE, *NODES], 5)
    world.network.faults = Faults(min_delay_s=0.05, max_delay_s=0.05)
    read = asyncio.create_task(had(world, asks))
    await asyncio.sleep(0.07)
    assert asked(world) == {back}
    tell(world, [NODE, *NODES], 7, {back: State.JOINING})
    world.network.faults = NO_FAULTS
    assert await read


@in_virtual_time
async def test_an_answer_that_comes_twice_does_not_count_for_what_is_asked_past_it() -> None:
    """It is of before the block was put, and merged; the network repeats it."""
    world = World(held=1, homes=NODES)
    read = asyncio.create_task(had(world, asks=False))
    await asyncio.sleep(0)
    missing = wire.Message(wire.OP_NOT_FOUND, keys(1)[0], 0, 0, wire.FLAG_MERGED, tenant=TENANT)
    home = order(world)[0]
    world.network.deliver_burst(home, NODE, [wire.encode(missing)] * 2)
    assert await read


@in_virtual_time
async def test_who_hears_of_another_list_asks_the_controller_for_the_newest() -> None:
    controller = "10.255.255.254"
    world = World(homes=NODES, options=ClientOptions(controller=controller))
    world.network.port(controller)

    def hellos() -> int:
        sent = [(to, wire.decode(data)) for source, to, data in world.network.log if source == NODE]
        return sum(to == controller and message.op == wire.OP_HELLO for to, message in sent)

    store(world, order(world)[0])
    tell(world, [NODE, *NODES], 5)
    await asyncio.sleep(2)
    before = hellos()
    assert await had(world, asks=False)
    assert hellos() == before
    tell(world, list(NODES), 6)
    assert await had(world, asks=False)
    assert hellos() == before + 1


@both
@in_virtual_time
async def test_who_was_busy_when_it_was_asked_before_may_not_be_so_when_all_are_asked(asks: bool) -> None:
    """A home that is busy now is not waited for: the other one is asked at once."""
    world = World(homes=NODES[:2], replicas=2)
    for home in NODES[:2]:
        world.network.ports[home].set_receiver(lambda address, datagrams: None)
    first, second = order(world)
    read = asyncio.create_task(had(world, asks))

    async def says(home: str, op: int, reason: int = 0) -> list[str]:
        """Whom the client asks next."""
        await asyncio.sleep(0.005)
        world.network.log.clear()
        reply = wire.Message(
            op,
            keys(1)[0],
            0,
            0,
            wire.FLAG_BYPASS,
            generation=reason,
            sequence=1 << 20,
            tenant=TENANT,
            epoch=7,
        )
        world.network.deliver(home, NODE, wire.encode(reply))
        await asyncio.sleep(0.005)
        return list(asked(world))

    assert await says(first, wire.OP_REFUSED, wire.REFUSED_BUSY) == [second]
    assert await says(second, wire.OP_REFUSED, wire.REFUSED_BUSY) == []
    assert await says(second, wire.OP_NOT_FOUND) == [first]
    assert await says(first, wire.OP_NOT_FOUND) == [first]  # as one of all
    assert await says(first, wire.OP_REFUSED, wire.REFUSED_BUSY) == [second]
    assert await says(second, wire.OP_NOT_FOUND) == [first]
    await says(first, wire.OP_NOT_FOUND)
    assert not await read


@pytest.mark.parametrize("behind_the_pool", [False, True])
@in_virtual_time
async def test_what_a_home_gives_that_may_not_know_that_it_was_away_is_not_taken_behind_a_pools_value(
    behind_the_pool: bool,
) -> None:
    """By a newer list it is not up: what it holds may have been deleted."""
    world = World(homes=NODES, replicas=2)
    home = NODES[0]
    tell(world, [NODE], 7, {home: State.JOINING})
    world.network.dead.add(home)
    gets = [asyncio.create_task(world.client.get(ref._replace(homes=(home,)))) for ref in refs(2)]
    await asyncio.sleep(0.01)
    pooled, homes = (value_of(key, 0) for key in keys(2))
    burst = [pooled._replace(flags=wire.FLAG_FROM_POOL, epoch=7)] * behind_the_pool + [
        homes._replace(epoch=5)
    ]
    world.network.dead.discard(home)
    world.network.deliver_burst(home, NODE, [wire.encode(value) for value in burst])
    fetches = [world.client._fetches.active[key] for key in keys(2)]
    assert [bool(fetch.content) for fetch in fetches] == [behind_the_pool, False]
    for get in gets:
        get.cancel()
