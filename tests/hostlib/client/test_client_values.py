"""What a client takes, and what it does about values that are wrong, of another write, or hostile."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostlib.client.client import Client
from hostlib.client.client_options import ClientOptions
from hostlib.native.lane_options import LaneOptions
from hostlib.protocol import wire
from hostlib.protocol.block import Place
from hostlib.protocol.content import block_content, derived_write, sealed_block
from hostlib.protocol.errors import (
    BlockNotFoundError,
    CorruptBlockError,
)
from hostlib.protocol.homes import home_of
from hostlib.protocol.seal import Seal
from hostlib.protocol.transfer import FetchedBlock
from hostlib.transport.transport import Receiver
from tests.asynchronous import in_virtual_time
from tests.hostlib.client_world import (
    BLOCK_BYTES,
    FRAGMENTS,
    HOMES,
    NODE,
    PATIENT,
    World,
    keys,
    refs,
    value_of,
)
from tests.hostlib.network import Faults
from tests.hostlib.sealed import SEAL, TENANT

A, B = bytes([1]) * BLOCK_BYTES, bytes([2]) * BLOCK_BYTES

pytestmark = pytest.mark.usefixtures("either_core")


async def begin_read(held: int = 0) -> tuple[World, bytes, str, asyncio.Task[FetchedBlock]]:
    """A world whose client has asked for the first block, its key, its home, and the read."""
    world = World(held=held)
    key = keys(1)[0]
    task = asyncio.create_task(world.client.get(refs(1)[0]))
    await asyncio.sleep(0)
    return world, key, home_of(key, HOMES), task


@in_virtual_time
async def test_merged_replies_with_another_nodes_sequence_are_taken() -> None:
    world, key, home, task = await begin_read()
    for fragment in range(FRAGMENTS):
        flags = wire.FLAG_MERGED if fragment else wire.FLAG_FROM_POOL
        world.network.deliver(home, NODE, wire.encode(value_of(key, fragment, flags)))
    block = await task
    assert (block.pool_fragments, block.merged_fragments, block.from_pool) == (1, 3, False)
    stats = world.client.stats
    assert (stats.from_pool, stats.from_home, stats.merged) == (1, 3, 3)


@in_virtual_time
async def test_what_comes_together_is_counted_by_where_it_came_from() -> None:
    world, key, home, task = await begin_read()
    flags = [0, wire.FLAG_FROM_POOL, wire.FLAG_FROM_POOL, wire.FLAG_MERGED]
    burst = [wire.encode(value_of(key, fragment, flags[fragment])) for fragment in range(FRAGMENTS)]
    world.network.deliver_burst(home, NODE, burst[:1])
    world.network.deliver_burst(home, NODE, burst[1:])
    await task
    stats = world.client.stats
    assert (stats.from_pool, stats.from_home, stats.merged) == (2, 2, 1)


@pytest.mark.parametrize("other_first", [True, False])
@in_virtual_time
async def test_fragments_of_another_write_are_not_mixed_in(other_first: bool) -> None:
    """Each is right by itself, and all of them come at once."""
    world, key, home, task = await begin_read()
    world.network.deliver(home, NODE, wire.encode(value_of(key, 0, 0, 99, A)))
    both = ((98, B), (99, A)) if other_first else ((99, A), (98, B))
    burst = [
        wire.encode(value_of(key, fragment, 0, write, content))
        for fragment in range(1, FRAGMENTS)
        for write, content in both
    ]
    world.network.deliver_burst(home, NODE, burst)
    assert (await task).content == A
    assert world.client.stats.late == FRAGMENTS - 1
    assert world.client.stats.corrupt == 0


@in_virtual_time
async def test_two_writers_at_the_same_time_and_a_reader_gets_one_of_them_whole() -> None:
    faults, options = Faults(lost=0.2, max_delay_s=0.05), ClientOptions(health=PATIENT)
    world = World(faults=faults, replicas=2, options=options)
    ref = refs(1)[0]
    contents = [bytes([number]) * BLOCK_BYTES for number in range(3)]
    writers = [world.another_client(f"10.0.0.{10 + number}") for number in range(3)]
    await asyncio.gather(
        *(writer.put(ref, content, replicas=2) for writer, content in zip(writers, contents, strict=True))
    )
    read = {bytes((await world.client.get(ref)).content) for _ in range(5)}
    assert len(read) == 1
    assert read <= set(contents)


@in_virtual_time
async def test_another_stores_honest_not_found_changes_nothing() -> None:
    world = World(held=1)
    key = keys(1)[0]
    (other,) = set(HOMES) - {home_of(key, HOMES)}
    task = asyncio.create_task(world.client.get(refs(1)[0]))
    await asyncio.sleep(0)
    missing = wire.Message(wire.OP_NOT_FOUND, key, 0, 0, wire.FLAG_MERGED, tenant=TENANT)
    world.network.deliver(other, NODE, wire.encode(missing))
    assert (await task).content == block_content(key, BLOCK_BYTES)


@in_virtual_time
async def test_what_another_store_than_the_one_asked_says_of_a_block_changes_nothing() -> None:
    world = World(replicas=2)
    key = keys(1)[0]
    other = world.homes(key)[1]
    asked = asyncio.create_task(world.client.exists(refs(1)))
    await asyncio.sleep(0)
    lie = wire.Message(wire.OP_FOUND, key, 0, FRAGMENTS, tenant=TENANT, content=9)
    world.network.deliver(other, NODE, wire.encode(lie))
    assert await asked == 0


@in_virtual_time
async def test_garbage_of_another_store_than_the_one_asked_changes_nothing() -> None:
    world = World(held=1, replicas=2)
    key = keys(1)[0]
    (other,) = set(HOMES) - {world.homes(key)[0]}
    task = asyncio.create_task(world.client.get(refs(1)[0]))
    await asyncio.sleep(0)
    for flags in (0, wire.FLAG_BYPASS, wire.FLAG_FROM_POOL) * 2:
        for fragment in range(FRAGMENTS):
            garbage = value_of(key, fragment, flags)._replace(value=bytes(512), tag=bytes(16))
            world.network.deliver(other, NODE, wire.encode(garbage))
    assert (await task).content == block_content(key, BLOCK_BYTES)
    assert world.client.stats.corrupt == 0
    assert not world.sent_by_client(wire.OP_GET)[-1].flags & (wire.FLAG_BYPASS | wire.FLAG_REPAIR)


@in_virtual_time
async def test_a_home_with_another_write_than_the_pool_is_read_from_its_probe_on() -> None:
    """The pool has fragment 0 of an older write; its home has never seen that."""
    world, key, home, task = await begin_read(held=1)
    world.network.deliver(home, NODE, wire.encode(value_of(key, 0, wire.FLAG_FROM_POOL)))
    assert (await task).content == block_content(key, BLOCK_BYTES)
    restarted = [get for get in world.sent_by_client(wire.OP_GET) if get.flags & wire.FLAG_REPAIR]
    assert restarted[0].fragment == 0


class PoisonedPool:
    """Answers every GET that does not go past it, with the right checksum over the wrong value."""

    def __init__(self, world: World, break_checksum: bool) -> None:
        self._node = world.network.ports[HOMES[0]]
        self._network = world.network
        self._break_checksum = break_checksum
        for home in HOMES:
            port = world.network.ports[home]
            assert port.receiver is not None
            honest = port.receiver

            def receive(
                source: str, datagrams: Sequence[wire.Buffer], home: str = home, honest: Receiver = honest
            ) -> None:
                for datagram in datagrams:
                    message = wire.decode(datagram)
                    if message.op == wire.OP_GET and not message.flags & wire.FLAG_BYPASS:
                        self._answer(home, source, message)
                    else:
                        honest(source, [datagram])

            port.set_receiver(receive)

    def _answer(self, home: str, source: str, message: wire.Message) -> None:
        value = bytes(512 if message.fragment < FRAGMENTS - 1 else 100)
        write = derived_write(message.key)
        reply = message._replace(
            op=wire.OP_VALUE, flags=wire.FLAG_FROM_POOL, value=value, fragments=FRAGMENTS, content=write
        )
        datagram = bytearray(wire.encode(reply))
        datagram[-1] ^= self._break_checksum
        self._network.carry(home, source, bytes(datagram))


@pytest.mark.parametrize("break_checksum", [False, True])
@in_virtual_time
async def test_wrong_values_are_fetched_again_past_the_pool(break_checksum: bool) -> None:
    options = ClientOptions(corrupt_limit=FRAGMENTS)
    world = World(held=1, options=options)
    PoisonedPool(world, break_checksum)
    block = await world.client.get(refs(1)[0])
    assert block.content == block_content(keys(1)[0], BLOCK_BYTES)
    assert world.client.stats.corrupt == FRAGMENTS
    again = [get for get in world.sent_by_client(wire.OP_GET) if get.flags & wire.FLAG_BYPASS]
    assert sorted(get.fragment for get in again) == list(range(FRAGMENTS))
    assert all(get.flags & wire.FLAG_REPAIR for get in again)
    assert world.client.stats.repairs == FRAGMENTS


@in_virtual_time
async def test_reports_that_the_pool_is_wrong_are_bounded() -> None:
    world = World(held=100, options=ClientOptions(corrupt_limit=FRAGMENTS, repairs_per_s=5))
    PoisonedPool(world, break_checksum=False)
    assert len((await world.client.get_chain(refs(100))).blocks) == 100
    reports = [get for get in world.sent_by_client(wire.OP_GET) if get.flags & wire.FLAG_REPAIR]
    assert 10 <= len(reports) <= 20


@in_virtual_time
async def test_a_block_that_is_wrong_at_its_home_is_an_error() -> None:
    world = World()
    forger = Client(world.network.port("10.0.0.66"), world.members, Seal(TENANT, b"another secret!!"))
    await forger.put(refs(1)[0], bytes(BLOCK_BYTES))
    with pytest.raises(CorruptBlockError):
        await world.client.get(refs(1)[0])
    assert world.client.stats.corrupt_blocks == 1


@in_virtual_time
async def test_a_block_that_is_wrong_at_one_home_comes_from_the_other() -> None:
    world = World(replicas=2)
    first, second = world.homes(keys(1)[0])
    place = Place(TENANT, keys(1)[0])
    content = block_content(keys(1)[0], BLOCK_BYTES)
    wrong = sealed_block(Seal(TENANT, b"another secret!!"), keys(1)[0], 5, bytes(BLOCK_BYTES))
    world.stores[first].put(place, wrong, durable=False)
    world.stores[second].put(place, sealed_block(SEAL, keys(1)[0], 6, content), durable=False)
    assert (await world.client.get(refs(1)[0])).content == content


@in_virtual_time
async def test_values_of_the_wrong_length_are_not_stored() -> None:
    world = World(held=1)
    task = asyncio.create_task(world.client.get(refs(1)[0]))
    await asyncio.sleep(0)
    tag = SEAL.tag(keys(1)[0], 0, FRAGMENTS, 99, b"short")
    message = value_of(keys(1)[0], 0)._replace(tag=tag, value=b"short")
    world.network.deliver(world.homes(keys(1)[0])[0], NODE, wire.encode(message))
    assert (await task).content == block_content(keys(1)[0], BLOCK_BYTES)
    assert world.client.stats.corrupt == 1


@given(st.lists(st.binary(max_size=700), max_size=20))
@in_virtual_time
async def test_hostile_datagrams_are_counted_and_change_nothing(datagrams: list[bytes]) -> None:
    world = World(held=1)
    task = asyncio.create_task(world.client.get(refs(1)[0]))
    await asyncio.sleep(0)
    for datagram in datagrams:
        world.network.deliver(HOMES[0], NODE, datagram)
        world.network.deliver(NODE, HOMES[0], datagram)
    assert (await task).content == block_content(keys(1)[0], BLOCK_BYTES)
    assert sum(world.client.stats.malformed.values()) == len(datagrams)
    assert sum(world.nodes[HOMES[0]].stats.malformed.values()) == len(datagrams)


@given(
    seed=st.integers(0, 2**32),
    lost=st.floats(0, 0.3),
    duplicated=st.floats(0, 0.3),
    corrupted=st.floats(0, 0.02),
    max_delay_s=st.floats(0.001, 0.4),
    held=st.integers(0, 12),
)
@in_virtual_time
async def test_the_client_survives_loss_reordering_duplication_and_damage(
    seed: int, lost: float, duplicated: float, corrupted: float, max_delay_s: float, held: int
) -> None:
    """Whatever the network does: what arrives is right, everything ends, and nothing is left behind."""
    faults = Faults(lost, duplicated, corrupted, 0.001, max_delay_s)
    lane = LaneOptions(deadline_s=60)
    world = World(held, faults, seed, ClientOptions(lane, health=PATIENT, corrupt_limit=20))
    put = refs(20)[12:]
    chains = asyncio.gather(*(world.client.get_chain(refs(12)) for _ in range(2)))
    puts = asyncio.gather(*(world.client.put(ref, block_content(ref.key, BLOCK_BYTES)) for ref in put))
    await asyncio.wait_for(puts, 300)
    for chain in await asyncio.wait_for(chains, 300):
        assert [block.key for block in chain.blocks] == keys(held)
        assert all(block.content == block_content(block.key, BLOCK_BYTES) for block in chain.blocks)
        assert isinstance(chain.ended_by, BlockNotFoundError) == (held < 12)
    world.network.faults = Faults()
    for ref in put:
        assert (await world.client.get(ref)).content == block_content(ref.key, BLOCK_BYTES)
    await asyncio.sleep(5)
    sent = len(world.network.log)
    await asyncio.sleep(60)
    assert len(world.network.log) == sent


@in_virtual_time
async def test_past_a_pool_that_was_wrong_the_same_home_is_asked_and_what_else_comes_is_late() -> None:
    """The replica is asked nothing, and copies of what the pool sent are not taken for the home's answer."""
    world = World(held=1, replicas=2)
    key = keys(1)[0]
    home, replica = world.homes(key)
    task = asyncio.create_task(world.client.get(refs(1)[0]))
    await asyncio.sleep(0)
    older = [value_of(key, fragment, wire.FLAG_FROM_POOL, 98, A) for fragment in range(FRAGMENTS)]
    world.network.deliver(home, NODE, wire.encode(older[0]._replace(tag=bytes(16))))
    for value in older:  # right by themselves, of a write that no home has
        world.network.deliver(home, NODE, wire.encode(value))
    assert (await task).content == block_content(key, BLOCK_BYTES)
    assert (world.client.stats.corrupt, world.client.stats.from_pool) == (1, 0)
    again = [message for message in world.sent_by_client(wire.OP_GET) if message.flags & wire.FLAG_BYPASS]
    assert again[0].flags & wire.FLAG_REPAIR
    assert replica not in {to for source, to, _ in world.network.log if source == NODE}
