"""The client against real storage nodes, over an in-memory network in virtual time."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Sequence

import pytest

from hostlib import native
from hostlib.client.client import Client
from hostlib.client.client_options import ClientOptions
from hostlib.client.node_window import NodeWindowOptions
from hostlib.protocol import wire
from hostlib.protocol.content import block_content, derived_write
from hostlib.protocol.errors import (
    BlockNotFoundError,
    OverloadedError,
    TransferTimeoutError,
)
from hostlib.protocol.transfer import BlockRef
from tests.asynchronous import in_virtual_time
from tests.hostlib.client_world import (
    BLOCK_BYTES,
    FRAGMENTS,
    HOMES,
    NODE,
    World,
    keys,
    refs,
    value_of,
)
from tests.hostlib.network import NO_FAULTS, Faults
from tests.hostlib.sealed import TENANT

pytestmark = pytest.mark.usefixtures("either_core")


@in_virtual_time
async def test_a_block_arrives_whole_in_two_round_trips() -> None:
    world = World(held=1)
    block = await world.client.get(refs(1)[0])
    assert block.content == block_content(keys(1)[0], BLOCK_BYTES)
    assert block.elapsed_s == pytest.approx(0.004)
    assert (block.pool_fragments, block.from_pool) == (0, False)
    gets = world.sent_by_client(wire.OP_GET)
    assert sorted(message.fragment for message in gets) == list(range(FRAGMENTS))
    assert {(g.depth, g.chain_blocks, g.parent, g.recompute_ms) for g in gets} == {(0, 1, 7, 30)}
    write = derived_write(keys(1)[0])
    assert [(g.fragments, g.content) for g in gets] == [(0, 0), *[(FRAGMENTS, write)] * 3]


@in_virtual_time
async def test_what_a_transfer_took_is_free_without_the_garbage_collector() -> None:
    world = World(held=3)
    gc.collect()
    gc.disable()
    try:
        await world.client.get_chain(refs(3))
        await world.client.put(refs(4)[3], bytes(BLOCK_BYTES))
        await asyncio.sleep(1)
        assert not [thing for thing in gc.get_objects() if isinstance(thing, native.core().Request)]
    finally:
        gc.enable()


@in_virtual_time
async def test_a_block_that_is_not_there_is_said_to_be_missing() -> None:
    world = World()
    with pytest.raises(BlockNotFoundError, match=keys(1)[0].hex()):
        await world.client.get(refs(1)[0])
    assert world.client.stats.not_found == 1


@in_virtual_time
async def test_a_chain_ends_at_the_first_missing_block_before_the_rest_is_moved() -> None:
    world = World(held=6)
    chain = refs(12)
    fetched = await world.client.get_chain(chain)
    assert [block.key for block in fetched.blocks] == keys(6)
    assert isinstance(fetched.ended_by, BlockNotFoundError)
    beyond = [m for m in world.sent_by_client(wire.OP_GET) if m.key in set(keys(12)[6:])]
    assert {message.fragment for message in beyond} == {0}


@in_virtual_time
async def test_a_whole_chain_arrives() -> None:
    world = World(held=40)
    fetched = await world.client.get_chain(refs(40))
    assert [block.key for block in fetched.blocks] == keys(40)
    assert fetched.ended_by is None
    stats = world.client.stats
    assert (stats.from_home, stats.from_pool, stats.merged) == (40 * FRAGMENTS, 0, 0)
    assert (stats.blocks_fetched, len(world.client.get_latencies_s)) == (40, 40)


@in_virtual_time
async def test_the_nodes_window_grows_where_it_keeps_requests_back() -> None:
    def world() -> World:
        return World(held=40, options=ClientOptions(node=NodeWindowOptions(initial=8, least=8)))

    busy, idle = world(), world()
    assert len((await busy.client.get_chain(refs(40))).blocks) == 40
    assert busy.client._exchange._node.size > 8
    for ref in refs(10):
        await idle.client.get(ref)
    assert idle.client._exchange._node.size == 8


@in_virtual_time
async def test_a_block_that_many_tasks_want_is_fetched_once() -> None:
    world = World(held=3)
    chains = await asyncio.gather(*(world.client.get_chain(refs(3)) for _ in range(5)))
    assert all(len(chain.blocks) == 3 for chain in chains)
    assert len(world.sent_by_client(wire.OP_GET)) == 3 * FRAGMENTS
    assert world.client.stats.blocks_joined == 4 * 3


async def is_there(client: Client, ref: BlockRef, how: str) -> bool:
    match how:
        case "get":
            return bool(await client.get(ref))
        case "get_chain":
            return bool((await client.get_chain([ref])).blocks)
        case "exists":
            return bool(await client.exists([ref]))
        case _:
            return await client.present([ref], 1.0) == [True]


@pytest.mark.parametrize("how", ["exists", "present"])
@in_virtual_time
async def test_what_a_pool_holds_is_there(how: str) -> None:
    world = World()
    (ref,) = refs(1)
    world.network.pooled[ref.key] = wire.Message(
        wire.OP_FOUND, ref.key, 0, FRAGMENTS, wire.FLAG_FROM_POOL, sequence=1 << 30, tenant=TENANT, content=5
    )
    assert await is_there(world.client, ref, how)


@pytest.mark.parametrize("how", ["get", "get_chain", "exists", "present"])
@in_virtual_time
async def test_a_read_that_began_after_a_put_is_not_told_what_was_missing_before(how: str) -> None:
    world = World()
    (ref,), slow = refs(1), Faults(min_delay_s=0.1, max_delay_s=0.1)
    early = asyncio.create_task(is_there(world.client, ref, how))
    await asyncio.sleep(0.0005)
    world.network.faults = slow  # "not found" takes long
    await asyncio.sleep(0.0015)
    world.network.faults = NO_FAULTS
    await world.client.put(ref, b"here it is")
    assert await is_there(world.client, ref, how)
    await early


@in_virtual_time
async def test_a_read_is_not_told_what_another_node_was_answered_before() -> None:
    """The switch merges its question with one that was asked before the block was put."""
    world = World(held=1, replicas=2)
    (ref,) = refs(1)
    read = asyncio.create_task(world.client.get(ref))
    await asyncio.sleep(0)
    missing = wire.Message(wire.OP_NOT_FOUND, ref.key, 0, 0, wire.FLAG_MERGED, tenant=TENANT)
    for home in world.homes(ref.key):
        world.network.deliver(home, NODE, wire.encode(missing))
    assert (await read).content == block_content(ref.key, BLOCK_BYTES)
    assert world.sent_by_client(wire.OP_GET)[-1].flags & wire.FLAG_BYPASS


@in_virtual_time
async def test_a_read_is_not_told_what_its_node_was_answered_before() -> None:
    """It gave that question up."""
    world = World()
    (ref,) = refs(1)
    world.network.faults = Faults(min_delay_s=0.1, max_delay_s=0.1)
    early = asyncio.create_task(world.client.get(ref))
    await asyncio.sleep(0.15)
    early.cancel()
    world.network.faults = NO_FAULTS
    await world.another_client("10.0.0.9").put(ref, b"here it is")
    world.network.faults = Faults(min_delay_s=0.2, max_delay_s=0.2)
    assert (await world.client.get(ref)).content == b"here it is"
    assert world.client.stats.not_found == 0


@in_virtual_time
async def test_what_every_node_is_told_to_be_missing_is_asked_for_once_more_by_who_needs_to_know() -> None:
    world = World()
    (ref,) = refs(1)
    missing = wire.Message(wire.OP_NOT_FOUND, ref.key, 0, 0, wire.FLAG_MERGED, tenant=TENANT)
    for certain in (True, False):
        read = asyncio.create_task(world.client.get(ref) if certain else world.client.get_chain([ref]))
        await asyncio.sleep(0.0005)
        world.network.deliver(world.homes(ref.key)[0], NODE, wire.encode(missing))
        await asyncio.wait([read])
        assert len(world.sent_by_client(wire.OP_GET)) == (2 if certain else 3)


@in_virtual_time
async def test_who_gives_up_does_not_take_the_block_from_others() -> None:
    world = World(held=1)
    first = asyncio.create_task(world.client.get(refs(1)[0]))
    second = asyncio.create_task(world.client.get(refs(1)[0]))
    await asyncio.sleep(0)
    first.cancel()
    assert (await second).key == keys(1)[0]


@in_virtual_time
async def test_nothing_is_asked_for_any_more_when_all_gave_up() -> None:
    world = World(held=1, faults=Faults(lost=1.0))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(world.client.get(refs(1)[0]), 0.1)
    sent = len(world.network.log)
    await asyncio.sleep(5)
    assert len(world.network.log) == sent


@in_virtual_time
async def test_put_blocks_can_be_fetched() -> None:
    world = World()
    for ref in refs(4):
        await world.client.put(ref, block_content(ref.key, BLOCK_BYTES))
    fetched = await world.client.get_chain(refs(4))
    assert len(fetched.blocks) == 4
    assert world.client.stats.blocks_put == 4


@in_virtual_time
async def test_the_queue_is_bounded_and_says_so() -> None:
    world = World(held=10, options=ClientOptions(max_transfers=4))
    fetched = await world.client.get_chain(refs(10))
    assert len(fetched.blocks) == 4
    assert isinstance(fetched.ended_by, OverloadedError)
    assert world.client.stats.overloaded == 1


@in_virtual_time
async def test_no_more_than_the_nodes_window_is_in_flight_however_many_homes_there_are() -> None:
    homes = tuple(f"10.0.1.{n}" for n in range(1, 33))
    world = World(held=300, homes=homes)
    asked: list[int] = []
    task = asyncio.create_task(world.client.get_chain(refs(300)))
    await asyncio.sleep(0.0005)  # nothing has been answered yet
    asked.append(len(world.sent_by_client(wire.OP_GET)))
    assert asked == [ClientOptions().node.initial]
    assert len((await task).blocks) == 300


@in_virtual_time
async def test_the_nodes_window_counts_what_other_homes_were_asked_for_and_no_puts() -> None:
    options = ClientOptions(node=NodeWindowOptions(initial=4, least=4, most=4))
    world = World(held=40, options=options)
    world.network.faults = Faults(min_delay_s=0.001, max_delay_s=0.003)
    puts = [asyncio.create_task(world.client.put(one, bytes(40_000))) for one in refs(44)[40:]]
    assert len((await world.client.get_chain(refs(40))).blocks) == 40
    await asyncio.gather(*puts)
    in_flight = [0]
    for source, _, datagram in world.network.log:
        is_get = source == NODE and datagram[1] == wire.OP_GET
        in_flight.append(in_flight[-1] + is_get - (datagram[1] == wire.OP_VALUE))
    assert max(in_flight) == 4
    first_put = next(at for at, one in enumerate(world.network.log) if one[2][1] == wire.OP_PUT)
    assert max(in_flight[first_put : first_put + 50]) == 4


@pytest.mark.parametrize("how", ["get", "present"])
@in_virtual_time
async def test_a_home_that_fell_silent_while_another_was_asked_is_not_asked(how: str) -> None:
    world = World(replicas=2)
    (block,) = refs(1)
    _, silent = world.homes(block.key)
    asking = asyncio.create_task(is_there(world.client, block, how))
    await asyncio.sleep(0.001)
    for owner in list(world.client._exchange.request_owners):
        owner.silent(silent)
    if how == "get":
        with pytest.raises(TransferTimeoutError):
            await asking
    else:
        assert not await asking
    assert silent not in [to for source, to, _ in world.network.log if source == NODE]


@in_virtual_time
async def test_what_has_arrived_in_a_callers_buffer_is_there_for_who_joins_the_read() -> None:
    world = World(options=ClientOptions(node=NodeWindowOptions(initial=2, least=2, most=2)))
    (block,) = refs(1)
    content = bytes(at % 251 for at in range(20 * 512))
    await world.client.put(block, content)
    first = asyncio.create_task(world.client.get_into(block, memoryview(bytearray(len(content)))))
    await asyncio.sleep(0.011)  # half of it is there
    assert (await world.client.get(block)).content == content
    assert bytes((await first).content) == content


@in_virtual_time
async def test_who_takes_nothing_that_is_pushed_leaves_it() -> None:
    world = World()
    (block,) = refs(1)
    world.network.deliver(HOMES[0], NODE, wire.encode(value_of(block.key, 0, wire.FLAG_PUSHED)))
    assert world.client.stats.late == 1


@in_virtual_time
async def test_what_a_switch_swallows_is_asked_for_past_its_pool() -> None:
    world = World(held=1)
    (block,) = refs(1)
    (home,) = world.homes(block.key)
    port = world.network.ports[home]
    hears = port.receiver
    assert hears is not None

    def behind_the_switch(source: str, datagrams: Sequence[wire.Buffer]) -> None:
        hears(source, [one for one in datagrams if wire.decode(one).flags & wire.FLAG_BYPASS])

    port.set_receiver(behind_the_switch)
    assert (await world.client.get(block)).content == block_content(block.key, BLOCK_BYTES)


@in_virtual_time
async def test_how_long_a_block_took_is_said() -> None:
    world = World(held=1)
    await asyncio.sleep(1)
    block = await world.client.get(refs(1)[0])
    assert world.client.get_latencies_s[0] == pytest.approx(0.004)
    assert block.elapsed_s == pytest.approx(0.004)


@in_virtual_time
async def test_how_long_the_rest_of_a_block_waited_for_the_window_is_said() -> None:
    world = World(options=ClientOptions(node=NodeWindowOptions(initial=1, least=1, most=1)))
    both = refs(2)
    for one in both:
        await world.client.put(one, bytes(600))
    blocks = (await world.client.get_chain(both)).blocks
    waited = [block.times.body_sent_s - block.times.probed_s for block in blocks]
    assert max(waited) == pytest.approx(0.002)


@in_virtual_time
async def test_closing_cancels_who_waits() -> None:
    world = World(held=1, faults=Faults(lost=1.0))
    task = asyncio.create_task(world.client.get_chain(refs(1)))
    await asyncio.sleep(0.1)
    world.client.close()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("replicas", [1, 2])
@in_virtual_time
async def test_how_much_of_a_chain_exists_is_known_without_moving_it(replicas: int) -> None:
    world = World(held=6, replicas=replicas)
    chain = refs(12)
    assert await world.client.exists(chain) == 6
    assert await world.client.exists(chain[:3]) == 3
    assert await world.client.exists(chain[7:]) == 0
    assert await world.client.exists([]) == 0
    assert world.sent_by_client(wire.OP_GET) == []


@in_virtual_time
async def test_of_each_block_is_said_whether_it_is_there_and_of_a_silent_home_nothing() -> None:
    world = World(held=6)
    chain = refs(12)
    assert await world.client.present(chain, 5.0) == [True] * 6 + [False] * 6
    assert await world.client.present([], 5.0) == []
    assert world.client.is_answering
    world.network.dead.add(HOMES[0])
    there = [world.homes(block.key)[0] != HOMES[0] or None for block in chain]
    expected = [known and held for known, held in zip(there, [True] * 6 + [False] * 6, strict=True)]
    assert await world.client.present(chain, 0.05) == expected
    assert world.client.suspects == []
    await asyncio.sleep(1.0)  # the questions are open still, and so the home's silence is noticed
    assert world.client.suspects == [HOMES[0]]
    assert await world.client.present(chain, 5.0) == expected
    assert world.client._lookup.active == {}
    world.network.dead.add(HOMES[1])
    assert await world.client.present(chain, 5.0) == [None] * 12
    assert not world.client.is_answering


@in_virtual_time
async def test_what_nobody_wants_to_know_any_more_is_not_asked_on() -> None:
    world = World(held=1)

    def asked() -> int:
        return sum(any(stat.key) for stat in world.sent_by_client(wire.OP_STAT))

    assert await world.client.exists(refs(400)) == 1  # nobody has the second
    assert asked() < 100
    first, second = (asyncio.create_task(world.client.ask(refs(1))) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    assert len(await second) == 1
    world.network.dead |= set(HOMES)
    cancelled = asyncio.create_task(world.client.ask(refs(400)))
    await asyncio.sleep(0.01)
    cancelled.cancel()
    before = asked()
    await asyncio.sleep(5)
    assert asked() == before


@in_virtual_time
async def test_that_a_home_has_not_one_write_of_a_block_does_not_say_that_it_has_none() -> None:
    world = World(held=1)
    (key,) = keys(1)
    (home,) = world.homes(key)
    asking = asyncio.create_task(world.client.exists(refs(1)))
    await asyncio.sleep(0)
    other = wire.Message(wire.OP_NOT_FOUND, key, 1, FRAGMENTS, tenant=TENANT, content=7)
    world.network.deliver(home, NODE, wire.encode(other))
    assert await asking == 1
