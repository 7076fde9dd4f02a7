"""The engine's view of the pool against a real client and real storage nodes, in virtual time."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace

import pytest

from experiments.simulate_faults.virtual_time import run_virtual
from hostlib.client.client import Client
from hostlib.engine import Item, KvPool, KvSpace, PoolConfig
from hostlib.engine.pool import BlockReader
from hostlib.engine.prefix_search import FIRST_WAVE, WAVE
from hostlib.engine.store_queue import STORES_AT_ONCE
from hostlib.protocol import wire
from hostlib.protocol.content import derivation
from hostlib.protocol.errors import KeySpaceError
from hostlib.protocol.members import Members
from hostlib.storage.storage_node import StorageNode
from hostlib.storage.store import BlockStore
from tests.asynchronous import in_virtual_time
from tests.hostlib.engine.pool_world import PoolWorld, blocks_of, keys
from tests.hostlib.network import NO_FAULTS, Faults, MemoryNetwork
from tests.hostlib.sealed import SEAL, place

HOME, NODE, OTHER_NODE = "10.0.0.101", "10.0.0.1", "10.0.0.2"
CONFIG = PoolConfig.from_mapping(
    {"address": NODE, "homes": [HOME], "lookup_timeout_s": 30.0, "transfer_timeout_s": 60}
)
SPACE = KvSpace(
    name="chat", model="weights:1", layout="rows", dtype="float32", block_tokens=4, object_bytes=(1500, 700)
)
TOKENS = list(range(22))


class World:
    """One storage node, and engines by address."""

    def __init__(self) -> None:
        self.network = MemoryNetwork()
        self.members = self.network.members = Members.of([HOME])
        self.store = BlockStore(1 << 26, None, derivation(SEAL))
        self.home = StorageNode(self.network.port(HOME), self.store)

    def pool(self, address: str = NODE, space: KvSpace = SPACE, config: PoolConfig = CONFIG) -> KvPool:
        return KvPool(Client(self.network.port(address), self.members, SEAL), config, SEAL, space)


KEYS = list(SPACE.block_keys(SEAL, TOKENS))


def content(key: bytes, index: int) -> bytes:
    return (key + bytes([index])) * 100


def objects(pool: KvPool, blocks: int) -> list[list[Item]]:
    found: list[list[Item]] = [[] for _ in range(blocks)]
    for index, length in enumerate(SPACE.object_bytes):
        for items, key, block in zip(found, KEYS, pool.references(KEYS, index), strict=False):
            items.append(Item(block, content(key, index)[:length]))
    return found


@in_virtual_time
async def test_what_one_engine_stores_another_finds_and_loads() -> None:
    world = World()
    one, other = world.pool(), world.pool(OTHER_NODE)
    assert await one.store_blocks(objects(one, 4)) == 4
    assert await other.exists(KEYS) == 4
    assert await other.exists(KEYS, 3) == 1
    expected = [item for block in objects(other, 4) for item in block]
    buffers = [bytearray(len(item.buffer)) for item in expected]
    arrived: list[int] = []
    loads = [Item(item.block, buffer) for item, buffer in zip(expected, buffers, strict=True)]
    assert all(await other.load(loads, lambda index, ok: arrived.append(index if ok else -1)))
    assert [bytes(buffer) for buffer in buffers] == [bytes(item.buffer) for item in expected]
    assert sorted(arrived) == list(range(8))
    assert other.stats.store_bytes == other.stats.loaded_bytes == 4 * SPACE.block_bytes


@in_virtual_time
async def test_blocks_are_retained_all_their_objects_and_what_became_of_it_is_counted() -> None:
    world = World()
    pool = world.pool()
    await pool.store_blocks(objects(pool, 2))
    assert await pool.retain(KEYS[:3], 60) == 4
    assert (pool.stats.retained_objects, pool.stats.not_retained) == (4, 2)  # the third is not there
    assert world.store.stats.retained == 4


@in_virtual_time
async def test_a_block_is_found_only_when_all_its_objects_are_there() -> None:
    world = World()
    pool = world.pool()
    (first, _), second = objects(pool, 2)
    await pool.store([first, *second])
    assert await pool.exists(KEYS[:1]) == 0
    assert await pool.exists(KEYS, 1) == 1


@pytest.mark.slow
def test_a_look_up_for_131072_tokens_over_eight_ranks_asks_few_questions() -> None:
    """All of them, 65,536, take longer than the time for a look-up."""
    blocks, ranks = 8192, 8
    space = replace(SPACE, tensor_parallel=ranks)
    keys = [number.to_bytes(16, "big") for number in range(1, blocks + 1)]

    def asked(world: World) -> int:
        stats = [data for *_, data in world.network.log if data[1] == wire.OP_STAT]
        return sum(any(wire.decode(data).key) for data in stats)

    async def play(held: int) -> None:
        world = World()
        pool = world.pool(space=space)
        assert await pool.join()
        last = len(space.object_bytes) - 1
        for rank in range(ranks):
            names = pool.references(keys[:held], last, rank=rank)
            world.store.preload([place(block.key) for block in names], 700)
        before = asked(world)
        assert await pool.exists(keys) == held
        assert asked(world) - before <= 3 * WAVE + FIRST_WAVE
        assert pool.stats.questions == asked(world) - before
        assert await pool.exists(keys, held - 1) == 1

    for held in (4097, blocks):
        run_virtual(play(held))


@in_virtual_time
async def test_references_of_a_run_are_those_of_the_whole_prompt() -> None:
    pool = World().pool()
    whole = pool.references(KEYS, 1)
    for first in range(len(KEYS)):
        parent = KEYS[first - 1] if first else None
        assert pool.run_references(KEYS[first:], 1, first=first, parent=parent) == whole[first:]
    (far,) = pool.run_references(KEYS[:1], 1, first=1 << 20, parent=KEYS[1])
    wire.encode(wire.Message(wire.OP_GET, far.key, 0, 0, depth=far.depth, chain_blocks=far.chain_blocks))


def test_other_parameters_under_the_same_name_are_refused_then_and_ever_after(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def play() -> None:
        world = World()
        assert await world.pool().join()
        other = world.pool(OTHER_NODE, replace(SPACE, dtype="bfloat16"))
        for _ in range(2):
            with pytest.raises(KeySpaceError, match="dtype is 'bfloat16' here and 'float32' there"):
                await other.join()
        assert await other.exists(KEYS) == 0
        assert not any(await other.store(objects(other, 1)[0]))
        assert world.store.sizes()["dram"] == 1  # the parameters of the first

    run_virtual(play())
    assert caplog.text.count("The pool is not used: key space") == 1


@in_virtual_time
async def test_two_who_come_at_the_same_time_agree_on_the_parameters_of_one() -> None:
    world = World()
    one, other = world.pool(), world.pool(OTHER_NODE, replace(SPACE, dtype="bfloat16"))
    outcomes = await asyncio.gather(one.join(), other.join(), return_exceptions=True)
    assert sum(outcome is True for outcome in outcomes) == 1
    assert sum(isinstance(outcome, KeySpaceError) for outcome in outcomes) == 1


def test_a_silent_pool_costs_time_once_and_is_named_once(caplog: pytest.LogCaptureFixture) -> None:
    async def play() -> None:
        world = World()
        pool = world.pool(config=replace(CONFIG, lookup_timeout_s=0.5, retry_s=0.001))
        await pool.store_blocks(objects(pool, 2))
        world.network.faults = Faults(lost=1.0)
        for _ in range(3):
            assert await pool.exists(KEYS) == 0
        buffers = [bytearray(1500), bytearray(1500)]
        loads = [
            Item(block, buffer) for block, buffer in zip(pool.references(KEYS, 0), buffers, strict=False)
        ]
        assert await pool.load(loads) == [False, False]
        world.network.faults = NO_FAULTS
        async with asyncio.timeout(1000):
            while not await pool.exists(KEYS):
                await asyncio.sleep(1.0)
        assert all(await pool.load(loads))

    with caplog.at_level(logging.WARNING, "weir"):
        run_virtual(play())
    said = [record.message for record in caplog.records]
    assert len(said) == 2
    assert said[0].startswith("The pool does not answer")
    assert said[1] == "The pool answers again."


@in_virtual_time
async def test_an_object_of_another_length_does_not_arrive() -> None:
    pool = World().pool()
    await pool.store_blocks(objects(pool, 1))
    block = pool.references(KEYS, 0)[0]
    arrived = [await pool.load([Item(block, bytearray(length))]) for length in (1499, 1500, 1501)]
    assert arrived == [[False], [True], [False]]
    assert pool.is_answering


@in_virtual_time
async def test_a_cancelled_load_writes_nothing_any_more() -> None:
    world = World()
    pool = world.pool()
    await pool.store_blocks(objects(pool, 4))
    world.network.faults = Faults(min_delay_s=1.0, max_delay_s=1.0)
    buffer, failed = bytearray(1500), []
    load = asyncio.ensure_future(
        pool.load([Item(pool.references(KEYS, 0)[0], buffer)], lambda index, ok: failed.append((index, ok)))
    )
    await asyncio.sleep(1.5)
    load.cancel()
    await asyncio.wait([load])
    assert failed == [(0, False)]
    await asyncio.sleep(10)
    assert buffer == bytearray(1500)


@in_virtual_time
async def test_a_block_that_lost_an_object_is_offered_once_and_again_when_it_is_whole() -> None:
    """A look-up asks for the last object: without memory it would find such a block for ever."""
    world = PoolWorld()
    pool, other = world.pool(), world.pool()
    prompt = keys(6)
    assert await other.store_blocks(blocks_of(other, prompt)) == 6
    assert await pool.exists(prompt) == 6
    (lost,) = pool.run_references(prompt[2:3], 0, first=2, parent=prompt[1])
    world.stores[world.home(lost.key)].drop(place(lost.key))
    assert await pool.exists(prompt) == 6
    pool.failed_to_load(prompt[2:3])
    assert await pool.exists(prompt) == 2
    assert await pool.exists(prompt, first=3) == 3
    assert await pool.exists(keys(2) + keys(9, first=50)) == 2  # of other prompts, nothing changes
    assert await other.store_blocks(blocks_of(other, prompt)) == 6
    assert await pool.exists(prompt) == 6


@in_virtual_time
async def test_a_block_that_is_whole_and_fails_again_is_left_alone_for_a_while() -> None:
    world = PoolWorld()
    pool = world.pool()
    prompt = keys(6)
    assert await pool.store_blocks(blocks_of(pool, prompt)) == 6
    for expected in (6, 2, 2):
        pool.failed_to_load(prompt[2:3])
        assert await pool.exists(prompt) == expected
    assert world.asked() < 100


@in_virtual_time
async def test_blocks_behind_one_that_is_not_held_are_not_offered() -> None:
    """Nobody could use them before that one is computed again."""
    world = PoolWorld()
    pool = world.pool(transfer_timeout_s=60.0)
    prompt = keys(400)
    assert await pool.store_blocks(blocks_of(pool, prompt[:1])) == 1
    dead = world.homes[2]
    world.network.dead.add(dead)
    last = [block.key for block in pool.references(prompt, 1)]
    first = [block.key for block in pool.references(prompt, 0)]
    on_dead = [dead in (world.home(a), world.home(b)) for a, b in zip(first, last, strict=True)]
    whole = on_dead.index(True)
    read = 0

    def reader(block: list[Item]) -> BlockReader:
        def copied() -> list[Item]:
            nonlocal read
            read += 1
            return block

        return copied

    for _ in range(2):
        read = 0
        held = await pool.store_blocks([reader(block) for block in blocks_of(pool, prompt)])
        assert held in (whole, whole + 1)  # of the one that fails, only the first object may be missing
        assert await pool.exists(prompt) == held - (held > whole)
    assert read <= 2 * STORES_AT_ONCE + whole


@in_virtual_time
async def test_an_engine_that_starts_while_the_home_of_the_handshake_is_dead_uses_the_others() -> None:
    world = PoolWorld()
    pool = world.pool()
    prompt = keys(12)
    assert await pool.store_blocks(blocks_of(pool, prompt)) == 12
    home = world.home(SPACE.descriptor_key(SEAL))
    world.network.dead.add(home)
    late = world.pool()
    assert not await late.join()
    last = [world.home(block.key) for block in late.references(prompt, 1)]
    assert await late.exists(prompt) == (last.index(home) if home in last else 12)
    world.network.dead.clear()
    async with asyncio.timeout(20):
        while not await late.join():
            await asyncio.sleep(0.5)
    assert await late.exists(prompt) == 12


@in_virtual_time
async def test_parameters_that_differ_are_noticed_when_the_home_of_the_handshake_is_back() -> None:
    world = PoolWorld()
    assert await world.pool().join()
    world.network.dead.add(world.home(SPACE.descriptor_key(SEAL)))
    late = world.pool(replace(SPACE, dtype="bfloat16"), retry_s=0.5)
    assert await late.exists(keys(3)) == 0
    world.network.dead.clear()
    async with asyncio.timeout(20):
        while await late.store(blocks_of(late, keys(1))[0]) != [False, False]:
            await asyncio.sleep(0.5)
    with pytest.raises(KeySpaceError, match="dtype is 'bfloat16' here"):
        await late.join()
