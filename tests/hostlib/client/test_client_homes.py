"""What a client makes of homes that are dead, silent or busy."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace

import pytest

from hostlib import native
from hostlib.client.client import Client
from hostlib.client.client_options import ClientOptions
from hostlib.native.lane_options import LaneOptions
from hostlib.protocol import wire
from hostlib.protocol.block import Place
from hostlib.protocol.content import block_content, sealed_block
from hostlib.protocol.errors import TransferError, TransferTimeoutError
from hostlib.protocol.members import Members, State
from hostlib.storage.storage_node import StorageNode
from hostlib.transport.transport import Receiver
from tests.asynchronous import in_real_time, in_virtual_time
from tests.hostlib.client_world import (
    BLOCK_BYTES,
    HOMES,
    NODE,
    World,
    keys,
    refs,
    value_of,
)
from tests.hostlib.sealed import SEAL, TENANT

MEMBERS = Members.of(HOMES)
LONG = 1000
"""Fragments."""

pytestmark = pytest.mark.usefixtures("either_core")


@in_virtual_time
async def test_where_values_have_another_size_every_transfer_is_refused_and_says_so() -> None:
    world = World(held=1)
    value = replace(world.members, epoch=5).encode()
    said = wire.Message(wire.OP_MEMBERS, bytes(16), 0, 0, chain_blocks=8192, epoch=5, value=value)
    world.network.port("10.255.0.1").send(NODE, [wire.encode(said)])
    await asyncio.sleep(0.1)
    with pytest.raises(TransferError, match="values have 8192 bytes there and 512 here"):
        await world.client.get(refs(1)[0])
    with pytest.raises(TransferError, match="values have 8192 bytes there and 512 here"):
        await world.client.put(refs(1)[0], block_content(keys(1)[0], BLOCK_BYTES))
    world.network.port("10.255.0.1").send(NODE, [wire.encode(said._replace(chain_blocks=0))])
    await asyncio.sleep(0.1)
    assert (await world.client.get(refs(1)[0])).content == block_content(keys(1)[0], BLOCK_BYTES)


@in_virtual_time
async def test_a_dead_home_costs_one_short_timeout_and_is_remembered() -> None:
    world = World(held=1)
    world.network.dead.update(HOMES)
    loop = asyncio.get_running_loop()
    started_s = loop.time()
    with pytest.raises(TransferTimeoutError):
        await world.client.get(refs(1)[0])
    assert loop.time() - started_s <= 0.3
    started_s = loop.time()
    with pytest.raises(TransferTimeoutError):
        await world.client.get(refs(1)[0])
    with pytest.raises(TransferTimeoutError):
        await world.client.put(refs(1)[0], block_content(keys(1)[0], BLOCK_BYTES))
    assert loop.time() == started_s
    world.network.dead.clear()
    await asyncio.sleep(3)  # probing in the background finds it again
    assert (await world.client.get(refs(1)[0])).content == block_content(keys(1)[0], BLOCK_BYTES)


@in_real_time
async def test_a_process_that_is_always_late_notices_a_dead_home() -> None:
    """It never looked in time, and so never suspected one: each read took 10 s."""
    world = World(held=1, replicas=2)
    await world.client.get(refs(1)[0])
    world.network.dead.add(world.homes(keys(1)[0])[0])

    async def work() -> None:
        while True:
            time.sleep(0.1)
            await asyncio.sleep(0)

    busy = asyncio.create_task(work())
    async with asyncio.timeout(5):
        await world.client.get(refs(1)[0])
    busy.cancel()


@in_virtual_time
async def test_a_read_outlives_a_switch_that_is_restarted() -> None:
    world = World(held=2, replicas=2)
    world.network.dead.update(HOMES)
    first = asyncio.create_task(world.client.get(refs(2)[0]))
    await asyncio.sleep(1.0)
    second = asyncio.create_task(world.client.get(refs(2)[1]))
    await asyncio.sleep(1.0)
    assert not first.done()
    assert not second.done()
    world.network.dead.clear()
    loop = asyncio.get_running_loop()
    back_s = loop.time()
    for task, key in zip((first, second), keys(2), strict=True):
        assert (await task).content == block_content(key, BLOCK_BYTES)
    assert loop.time() - back_s < 0.2


@in_virtual_time
async def test_a_read_whose_homes_all_stay_silent_ends() -> None:
    world = World(held=1, replicas=2)
    world.network.dead.update(HOMES)
    started_s = asyncio.get_running_loop().time()
    with pytest.raises(TransferTimeoutError):
        await world.client.get(refs(1)[0])
    assert asyncio.get_running_loop().time() - started_s < 6  # and 300 ms for each home before


@in_virtual_time
async def test_one_of_two_homes_dead_delays_chains_once() -> None:
    world = World(held=40, replicas=2)
    world.network.dead.add(HOMES[0])
    loop = asyncio.get_running_loop()
    took_s = []
    for _ in range(3):
        started_s = loop.time()
        fetched = await world.client.get_chain(refs(40))
        took_s.append(loop.time() - started_s)
        assert [block.key for block in fetched.blocks] == keys(40)
    assert took_s[0] < 0.4
    assert max(took_s[1:]) < 0.05


@in_virtual_time
async def test_a_home_that_dies_in_the_middle_of_a_block_is_left_for_the_next() -> None:
    world = World(held=1, replicas=2)
    task = asyncio.create_task(world.client.get(refs(1)[0]))
    await asyncio.sleep(0.0025)  # the probe has arrived
    world.network.dead.add(world.homes(keys(1)[0])[0])
    assert (await task).content == block_content(keys(1)[0], BLOCK_BYTES)
    assert world.client.stats.failovers == 1


@pytest.mark.parametrize("pooled", [False, True])
@in_virtual_time
async def test_a_home_that_is_busy_with_other_things_is_not_suspected(pooled: bool) -> None:
    """It does not answer what it was asked for, but it gives signs of life, which a pool can not give in its
    place: not even if somebody had it keep a block under the key that signs are asked for with."""
    world = World(held=1)
    if pooled:
        nobody = bytes(wire.KEY_BYTES)
        found = wire.Message(wire.OP_FOUND, nobody, 0, 1, wire.FLAG_FROM_POOL, tenant=TENANT, content=7)
        world.network.pooled[nobody] = found
    home = world.homes(keys(1)[0])[0]
    port = world.network.ports[home]
    honest = port.receiver
    assert honest is not None

    def only_signs(source: str, datagrams: Sequence[wire.Buffer]) -> None:
        for datagram in datagrams:
            if wire.decode(datagram).op == wire.OP_STAT:
                honest(source, [datagram])

    port.set_receiver(only_signs)
    task = asyncio.create_task(world.client.get(refs(1)[0]))
    await asyncio.sleep(2)
    assert not task.done()
    assert world.client.suspects == []
    port.set_receiver(honest)
    assert (await task).key == keys(1)[0]


@in_virtual_time
async def test_what_the_first_home_lacks_comes_from_the_second() -> None:
    world = World(replicas=2)
    (key,), content = keys(1), b"only here"
    second = world.homes(key)[1]
    world.stores[second].put(Place(TENANT, key), sealed_block(SEAL, key, 6, content), durable=False)
    assert (await world.client.get(refs(1)[0])).content == content
    assert await world.client.exists(refs(1)) == 1


@in_virtual_time
async def test_a_block_of_which_a_home_gives_only_the_first_fragment_comes_from_the_next() -> None:
    """It says each time that it lacks the rest."""
    world = World(held=1, replicas=2)
    key = keys(1)[0]
    first = world.network.ports[world.homes(key)[0]]
    honest = first.receiver
    assert honest is not None

    def lacks_the_rest(source: str, datagrams: Sequence[wire.Buffer]) -> None:
        for datagram in datagrams:
            asked = wire.decode(datagram)
            if asked.op == wire.OP_GET and asked.fragment:
                first.send(source, [wire.encode(asked._replace(op=wire.OP_NOT_FOUND))])
            else:
                honest(source, [datagram])

    first.set_receiver(lacks_the_rest)
    assert (await world.client.get(refs(1)[0])).content == block_content(key, BLOCK_BYTES)


@in_virtual_time
async def test_an_older_list_of_members_changes_nothing() -> None:
    world = World()
    for epoch in (7, 6, 1, 0):
        nodes = tuple(replace(node, state=State.UP if epoch == 7 else State.DOWN) for node in MEMBERS.nodes)
        members = wire.Message(
            wire.OP_MEMBERS, bytes(16), 0, 0, value=Members(epoch, 1, nodes).encode(), epoch=epoch
        )
        for host in (NODE, *HOMES):
            world.network.deliver("10.255.255.254", host, wire.encode(members))
        for known in (world.client.members, *(node.members for node in world.nodes.values())):
            assert (known.epoch, known.nodes) == (7, MEMBERS.nodes)


@in_virtual_time
async def test_whose_list_is_later_than_all_that_are_heard_takes_one_after_a_while() -> None:
    """Its list is of a controller that is gone, whose clock was ahead."""
    world = World()
    hosts: list[Client | StorageNode] = [world.client, *world.nodes.values()]

    def hear(epoch: int) -> set[int]:
        members = Members(epoch, 1, MEMBERS.nodes)
        message = wire.Message(wire.OP_MEMBERS, bytes(16), 0, 0, value=members.encode(), epoch=epoch & 0xFF)
        for host in (NODE, *HOMES):
            world.network.deliver("10.255.255.254", host, wire.encode(message))
        return {host.members.epoch for host in hosts}

    assert hear(1 << 30) == {1 << 30}
    for _ in range(4):
        assert hear(7) == {1 << 30}
        await asyncio.sleep(1)
    assert hear(1 << 30) == {1 << 30}  # it is not gone after all
    for _ in range(6):
        assert hear(7) == {1 << 30}
        await asyncio.sleep(0.9)
    assert hear(9) == {9}
    assert hear(8) == {9}


@in_virtual_time
async def test_what_a_dead_home_may_hold_is_not_said_to_be_missing() -> None:
    world = World(held=1)
    world.network.dead.add(world.homes(keys(1)[0])[0])
    with pytest.raises(TransferTimeoutError):
        await world.client.exists(refs(1))
    world = World(held=1, replicas=2)
    world.network.dead.add(world.homes(keys(1)[0])[0])
    assert await world.client.exists(refs(1)) == 1


class QuickPool:
    """Answers all GETs at once and as it should; homes get what they are asked only `home_s` later."""

    def __init__(self, world: World, pooled: set[bytes], home_s: float) -> None:
        for home in HOMES:
            port = world.network.ports[home]
            honest = port.receiver
            assert honest is not None

            def receive(
                source: str, datagrams: Sequence[wire.Buffer], home: str = home, honest: Receiver = honest
            ) -> None:
                for datagram in datagrams:
                    message = wire.decode(bytes(datagram))
                    if message.op == wire.OP_GET and message.key in pooled:
                        value = value_of(message.key, message.fragment, wire.FLAG_FROM_POOL)
                        world.network.carry(home, source, wire.encode(value))
                    else:
                        loop = asyncio.get_running_loop()
                        loop.call_later(home_s, honest, source, [bytes(datagram)])

            port.set_receiver(receive)


@in_virtual_time
async def test_a_node_whose_every_answer_comes_from_the_pool_never_times_out() -> None:
    world = World(options=ClientOptions(LaneOptions(deadline_s=0.5)))
    QuickPool(world, set(keys(40)), home_s=0.0)
    loop = asyncio.get_running_loop()
    while loop.time() < 0.7:
        chains = (world.client.get_chain(refs(40)), world.client.get_chain(refs(20)))
        assert [len(chain.blocks) for chain in await asyncio.gather(*chains)] == [40, 20]
    stats = world.client.stats
    assert (stats.from_home, stats.timeouts, stats.homes_suspected, stats.retransmits) == (0, 0, 0, 0)


@in_virtual_time
async def test_a_busy_home_does_not_hold_up_what_the_pool_has() -> None:
    held = 400
    world = World(held=held)
    pooled = set(keys(held)[300:])
    QuickPool(world, pooled, home_s=0.15)
    for node in world.nodes.values():
        node.backlog_ms = lambda tenant=None: 150  # type: ignore[method-assign]
    slow = [asyncio.create_task(world.client.get(ref)) for ref in refs(held)[:8]]
    await asyncio.sleep(1.0)  # the homes' windows are small by now
    slow += [asyncio.create_task(world.client.get(ref)) for ref in refs(held)[8:20]]
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    for ref in refs(held)[300:340]:
        assert (await world.client.get(ref)).from_pool
    assert loop.time() - began_s < 0.5
    await asyncio.gather(*slow)


class SlowHome:
    """In place of a home: answers each GET rightly, `wait_s` later, and questions at once."""

    def __init__(self, world: World, home: str, wait_s: float) -> None:
        port = world.network.ports[home]
        honest = port.receiver
        assert honest is not None

        def receive(source: str, datagrams: Sequence[wire.Buffer]) -> None:
            for datagram in datagrams:
                asks = wire.decode(datagram).op in (wire.OP_GET, wire.OP_PUT)
                later = bytes(datagram)
                asyncio.get_running_loop().call_later(wait_s if asks else 0, honest, source, [later])

        port.set_receiver(receive)


@pytest.mark.parametrize("op", ["get", "put"])
@in_virtual_time
async def test_a_home_that_gives_a_little_now_and_then_costs_no_more_than_a_transfer_may_take(
    op: str,
) -> None:
    world = World()
    block, content = refs(1)[0], bytes(LONG * 512)
    if op == "get":
        await world.client.put(block, content)
    SlowHome(world, world.homes(block.key)[0], wait_s=4)
    loop, most_s = asyncio.get_running_loop(), ClientOptions().longest_s(LONG)
    started_s = loop.time()
    with pytest.raises(TransferTimeoutError, match="in time"):
        await (world.client.get(block) if op == "get" else world.client.put(block, content))
    assert most_s <= loop.time() - started_s < most_s + 1.1
    assert world.client.stats.timeouts == 1


@in_virtual_time
async def test_a_put_behind_another_of_the_same_block_takes_no_longer_than_one_by_itself() -> None:
    world = World()
    block, content = refs(1)[0], bytes(LONG * 512)
    SlowHome(world, world.homes(block.key)[0], wait_s=4)
    loop, most_s = asyncio.get_running_loop(), ClientOptions().longest_s(LONG)

    async def put(durable: bool) -> float:
        began_s = loop.time()
        with pytest.raises(TransferTimeoutError):
            await world.client.put(block, content, durable=durable)
        return loop.time() - began_s

    first = asyncio.create_task(put(False))
    await asyncio.sleep(1)
    second = asyncio.create_task(put(True))
    assert max(await asyncio.gather(first, second)) < most_s + 1.1
    assert not world.client.outstanding()


@in_virtual_time
async def test_what_waits_for_its_turn_does_not_wait_for_ever() -> None:
    """Only long packets are lost: signs of life come, and what is in flight is given up after ten seconds."""
    world = World(held=200)
    for home in HOMES:
        SlowHome(world, home, wait_s=1e6)
    reads = [asyncio.create_task(world.client.get(ref)) for ref in refs(200)]
    await asyncio.wait(reads)
    assert asyncio.get_running_loop().time() < ClientOptions().longest_s(0) + 1.2
    assert all(isinstance(read.exception(), TransferTimeoutError) for read in reads)
    assert world.client.outstanding() == {}


@in_virtual_time
async def test_a_home_that_lives_and_does_not_answer_is_left_for_the_replica() -> None:
    world = World(held=1, replicas=2)
    SlowHome(world, world.homes(keys(1)[0])[0], wait_s=1e6)
    assert (await world.client.get(refs(1)[0])).content == block_content(keys(1)[0], BLOCK_BYTES)
    limit_s = LaneOptions().deadline_s + LaneOptions().max_timeout_s
    assert asyncio.get_running_loop().time() < limit_s
    assert world.client.stats.failovers == 1


def announce(world: World, epoch: int, states: dict[str, State]) -> None:
    """A controller's list reaches the client; who is not named is up."""
    nodes = tuple(
        replace(node, state=states.get(node.address, State.UP)) for node in world.client.members.nodes
    )
    value = Members(epoch, world.client.members.replicas, nodes).encode()
    message = wire.Message(wire.OP_MEMBERS, bytes(16), 0, 0, value=value, epoch=epoch)
    world.network.deliver("10.255.255.254", NODE, wire.encode(message))


async def had(world: World, asks: bool) -> bool:
    """Whether the first block can be had, by asking for it or by reading it."""
    if asks:
        return await world.client.exists(refs(1)) == 1
    return (await world.client.get(refs(1)[0])).content == block_content(keys(1)[0], BLOCK_BYTES)


@pytest.mark.parametrize("asks", [False, True])
@in_virtual_time
async def test_a_home_that_falls_from_the_list_while_it_is_asked_is_left_at_once(asks: bool) -> None:
    """Nothing comes of what it is asked, and it is not suspected yet."""
    world = World(held=1, replicas=2)
    first = world.homes(keys(1)[0])[0]
    world.network.dead.add(first)
    read = asyncio.create_task(had(world, asks))
    await asyncio.sleep(0.1)
    assert not read.done()
    announce(world, 7, {first: State.DOWN})
    assert await asyncio.wait_for(read, 0.1)
    assert not world.client.suspects


@pytest.mark.parametrize("asks", [False, True])
@in_virtual_time
async def test_what_only_a_home_holds_that_falls_from_the_list_is_not_said_to_be_missing(asks: bool) -> None:
    """The other one was away when the block was put, and does not have it yet."""
    world = World(replicas=1)
    key = keys(1)[0]
    away, holder = (node.address for node in world.members.order(key))
    block = sealed_block(SEAL, key, 6, block_content(key, BLOCK_BYTES))
    world.stores[holder].put(Place(TENANT, key), block, durable=False)
    announce(world, 7, {away: State.JOINING})
    world.network.dead.add(holder)
    read = asyncio.create_task(had(world, asks))
    await asyncio.sleep(0.1)
    announce(world, 8, {away: State.JOINING, holder: State.DOWN})
    world.network.dead.discard(holder)
    assert await read


@in_virtual_time
async def test_a_request_of_before_a_read_began_anew_that_is_given_up_ends_nothing() -> None:
    world = World(held=1)
    read = asyncio.create_task(world.client.get(refs(1)[0]))
    await asyncio.sleep(0)
    (fetch,) = world.client._fetches.active.values()
    assert len(fetch.requests) == 1
    for fragment in range(3):
        fetch.gave_up(native.core().Request(fetch, fragment))
    assert (await read).key == refs(1)[0].key
