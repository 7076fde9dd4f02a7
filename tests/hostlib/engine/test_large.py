"""Objects in parts against real storage nodes on a network in memory, with parts of a few kilobytes."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostlib.client.client import Client
from hostlib.client.client_options import ClientOptions
from hostlib.client.health import HealthOptions
from hostlib.engine import Item, ObjectPool, PoolConfig, large, objects
from hostlib.engine.large import MANIFEST_BYTES, MAX_OBJECT_BYTES, SLOTS, Manifest
from hostlib.protocol import wire
from hostlib.protocol.block import Block, Place
from hostlib.protocol.content import derivation
from hostlib.protocol.hints import Hint, HintOutcome
from hostlib.protocol.members import Members
from hostlib.protocol.seal import Seal
from hostlib.protocol.transfer import BlockRef
from hostlib.storage.storage_node import StorageNode
from hostlib.storage.store import BlockStore
from tests.asynchronous import in_real_time, until
from tests.hostlib.network import MemoryNetwork

HOMES = ("10.0.0.101", "10.0.0.102", "10.0.0.103")
PART, LONGEST_BLOCK = 4096, 10_000
SEAL = Seal(0, bytes(range(32)))
KEY = BlockRef(bytes(range(1, 17)))


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large, "PART_BYTES", PART)
    monkeypatch.setattr(objects, "MAX_BLOCK_BYTES", LONGEST_BLOCK)


class World:
    """Three storage nodes, and nodes that use them."""

    def __init__(self) -> None:
        self.network = MemoryNetwork()
        self.members = self.network.members = Members.of(HOMES)
        self.stores = {home: BlockStore(1 << 26, None, derivation(SEAL)) for home in HOMES}
        self.nodes = [StorageNode(self.network.port(home), store) for home, store in self.stores.items()]
        self._hosts = 0

    def pool(self) -> ObjectPool:
        self._hosts += 1
        address = f"10.0.0.{self._hosts}"
        given = {"address": address, "homes": HOMES, "secret": bytes(range(32)).hex()}
        patient = {"lookup_timeout_s": 60.0, "transfer_timeout_s": 60.0}
        options = ClientOptions(health=HealthOptions(silence_s=30.0))
        client = Client(self.network.port(address), self.members, SEAL, options)
        return ObjectPool(client, PoolConfig.from_mapping(given | patient))

    def held(self) -> dict[bytes, str]:
        """Home of each block."""
        return {place.key: home for home, store in self.stores.items() for place in store._dram}

    def length(self, key: bytes) -> int:
        block = self.stores[self.held()[key]].get(Place(SEAL.tenant, key))
        assert isinstance(block, Block)
        return len(block.content)

    def drop(self, key: bytes) -> None:
        self.stores[self.held()[key]].drop(Place(SEAL.tenant, key))


def content(length: int, seed: int = 0) -> bytes:
    return random.Random(seed).randbytes(length)


async def store(pool: ObjectPool, stored: bytes, block: BlockRef = KEY) -> bool:
    return await pool.store([Item(block, stored)]) == [True]


async def fetch(pool: ObjectPool) -> bytes | None:
    fetched = await pool.fetch(KEY)
    return None if fetched is None else bytes(fetched)


async def load(pool: ObjectPool, length: int, block: BlockRef = KEY) -> bytes | None:
    room = bytearray(length)
    return bytes(room) if await pool.load([Item(block, room)]) == [True] else None


@pytest.mark.parametrize("length", [LONGEST_BLOCK + 1, 5 * PART, 5 * PART + 1, 200_000])
@in_real_time
async def test_what_one_node_stores_in_parts_another_finds_and_loads(length: int) -> None:
    world = World()
    one, other = world.pool(), world.pool()
    stored = content(length)
    assert await store(one, stored)
    assert len(world.held()) == -(-length // PART) + 1
    assert len(set(world.held().values())) == len(HOMES)  # spread
    assert await other.present([KEY]) == [True]
    assert other.stats.questions == 1
    assert await load(other, length) == stored
    assert await fetch(other) == stored
    assert other.stats.loaded_bytes == other.stats.store_bytes == 2 * length
    assert one.stats.stored_objects == 1


@in_real_time
async def test_what_fits_a_block_is_one_block_as_before() -> None:
    world = World()
    pool = world.pool()
    for length in (1, MANIFEST_BYTES, LONGEST_BLOCK):
        block = BlockRef(bytes([length % 251]) * 16)
        assert await store(pool, content(length), block)
        assert await load(pool, length, block) == content(length)
        puts = [data for *_, data in world.network.log if data[1] == wire.OP_PUT]
        messages = [wire.decode(data) for data in puts]
        assert {one.key for one in messages} == {block.key}
        assert b"".join(bytes(one.value) for one in messages) == content(length)
        world.network.log.clear()


@in_real_time
async def test_nothing_is_seen_of_an_object_before_all_its_parts_are_held() -> None:
    world = World()
    pool = world.pool()
    assert await store(pool, content(50_000))
    puts = [wire.decode(data).key for *_, data in world.network.log if data[1] == wire.OP_PUT]
    assert puts[-1] == KEY.key
    assert KEY.key not in puts[:-1]


@in_real_time
async def test_a_writer_that_is_stopped_leaves_nothing_that_can_be_seen() -> None:
    world = World()
    one, other = world.pool(), world.pool()
    writing = asyncio.ensure_future(store(one, content(400_000)))
    await until(lambda: len(world.held()) >= 20)
    writing.cancel()
    await asyncio.wait([writing])
    assert await other.present([KEY]) == [False]
    assert await load(other, 400_000) is None
    assert await store(other, content(400_000, seed=1))  # of other bytes: they never mix
    assert await load(one, 400_000) == content(400_000, seed=1)


@in_real_time
async def test_a_missing_part_is_a_miss_until_it_is_stored_again() -> None:
    world = World()
    one, other = world.pool(), world.pool()
    stored = content(50_000)
    assert await store(one, stored)
    world.drop(next(key for key in world.held() if key != KEY.key))
    assert await load(other, 50_000) is None
    assert other.stats.failed == {"BlockNotFoundError": 1}
    assert await store(one, stored)
    assert await load(other, 50_000) == stored


@in_real_time
async def test_other_bytes_take_the_place_of_an_object_that_lacks_a_part() -> None:
    """Engines compute KV that differs in the last bits: without this the object would be gone for good."""
    world = World()
    one, other = world.pool(), world.pool()
    for seed in range(SLOTS):
        before = world.held()
        assert await store(one, content(50_000, seed))
        assert await load(other, 50_000) == content(50_000, seed)
        held = world.held()
        assert await store(one, content(50_000, seed + 100))  # what is there whole, stays
        assert world.held() == held
        parts = [key for key in held if key not in before and world.length(key) == PART]
        world.drop(parts[0])
    assert not await store(one, content(50_000, SLOTS))
    assert await load(other, 50_000) is None


@in_real_time
async def test_a_part_that_a_home_holds_for_another_tenants_secret_is_no_part() -> None:
    world = World()
    assert await store(world.pool(), content(50_000))
    given = {"address": "10.0.0.99", "homes": HOMES}
    client = Client(world.network.port("10.0.0.99"), world.members, Seal(0, bytes(32)))
    assert await load(ObjectPool(client, PoolConfig.from_mapping(given)), 50_000) is None


@in_real_time
async def test_no_content_is_taken_for_a_manifest_and_no_manifest_for_content() -> None:
    world = World()
    pool = world.pool()
    forged = Manifest(50_000, PART, bytes(32)).encode(Seal(0, bytes(32)), KEY.key)
    assert await store(pool, forged)
    assert await fetch(pool) == forged
    assert await load(pool, MANIFEST_BYTES) == forged
    assert await load(pool, 50_000) is None
    other = KEY._replace(key=bytes(16))
    assert await store(pool, content(50_000), other)
    assert await load(pool, MANIFEST_BYTES, other) is None
    assert pool.stats.failed["length"] == 1


@in_real_time
async def test_an_object_of_another_length_does_not_arrive() -> None:
    world = World()
    pool = world.pool()
    assert await store(pool, content(50_000))
    assert [await load(pool, length) for length in (49_999, 50_001, 100)] == [None] * 3


def test_what_is_too_long_is_refused_and_that_is_said_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(objects, "MAX_OBJECT_BYTES", 60_000)

    async def story() -> None:
        pool = World().pool()
        assert not await store(pool, content(60_001))
        assert not await store(pool, b"")
        assert pool.stats.failed == {"length": 2}
        assert await store(pool, content(60_000))

    asyncio.run(story())
    assert caplog.text.count("An object of 60001 bytes is not stored: 1 to 60000 are possible") == 1
    assert MAX_OBJECT_BYTES == 1 << 30


@given(st.binary(max_size=100), st.integers(0, MANIFEST_BYTES - 1), st.integers(1, 255))
def test_anything_may_lie_where_a_manifest_should(stored: bytes, at: int, by: int) -> None:
    assert Manifest.decode(SEAL, KEY.key, stored) is None
    manifest = Manifest(3 * PART + 1, PART, bytes(range(32)))
    encoded = bytearray(manifest.encode(SEAL, KEY.key))
    assert Manifest.decode(SEAL, KEY.key, encoded) == manifest
    assert Manifest.decode(SEAL, bytes(16), encoded) is None
    encoded[at] ^= by
    assert Manifest.decode(SEAL, KEY.key, encoded) is None


@pytest.mark.parametrize("size", [100, LONGEST_BLOCK, 5 * PART + 7])
@in_real_time
async def test_a_deleted_object_leaves_nothing_and_can_be_stored_again(size: int) -> None:
    world = World()
    pool = world.pool()
    content = random.Random(size).randbytes(size)
    kept = BlockRef(bytes(range(2, 18)))
    for _ in range(2):
        assert await pool.store([Item(KEY, content), Item(kept, b"kept")]) == [True, True]
        assert await pool.delete([KEY]) == [True]
        assert list(world.held()) == [kept.key]
        assert await pool.fetch(KEY) is None
    assert pool.stats.deleted_objects == 2
    assert await pool.delete([KEY]) == [True]
    assert pool.stats.deleted_objects == 2


@in_real_time
async def test_a_deleted_object_is_not_read_in_place_of_one_that_lacks_a_part() -> None:
    """Also where the manifest before its own was gone when it was deleted."""
    world = World()
    pool = world.pool()
    assert await store(pool, content(50_000, 1))
    world.drop(next(key for key in world.held() if world.length(key) == PART))
    first = set(world.held())
    assert await store(pool, content(50_000, 2))
    for key in first:
        world.drop(key)
    assert await pool.delete([KEY]) == [True]
    assert await store(pool, content(50_000, 3))
    world.drop(next(key for key in world.held() if world.length(key) == PART))
    assert await load(pool, 50_000) is None


@in_real_time
async def test_a_hint_at_an_object_has_the_worst_outcome_of_all_its_writes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World()
    pool = world.pool()
    assert await store(pool, content(50_000, 1))
    world.drop(next(key for key in world.held() if world.length(key) == PART))
    assert await store(pool, content(50_000, 2))
    hint = pool._client.hint

    async def nobody_answers_of_the_first(block: BlockRef, *asked: Any) -> HintOutcome:
        return HintOutcome.NO_ANSWER if block == KEY else await hint(block, *asked)

    assert await pool._large.hint(KEY, Hint.RETAIN, 1) is HintOutcome.DONE
    monkeypatch.setattr(pool._client, "hint", nobody_answers_of_the_first)
    assert await pool._large.hint(KEY, Hint.RETAIN, 1) is HintOutcome.NO_ANSWER
