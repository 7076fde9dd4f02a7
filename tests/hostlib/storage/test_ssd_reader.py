"""A storage node whose SSD takes time, in virtual time: who waits for what."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable
from hashlib import blake2b

import pytest

from hostlib.client.client import Client
from hostlib.client.client_options import ClientOptions
from hostlib.native.lane_options import LaneOptions
from hostlib.protocol import wire
from hostlib.protocol.block import Block, Place
from hostlib.protocol.content import block_content, derivation
from hostlib.protocol.errors import BlockNotFoundError
from hostlib.protocol.members import Members
from hostlib.protocol.transfer import BlockRef
from hostlib.storage.disk import T
from hostlib.storage.simulated_disk import SimulatedDisk
from hostlib.storage.ssd import SsdTier
from hostlib.storage.ssd_reader import SsdReader
from hostlib.storage.storage_node import StorageNode
from hostlib.storage.storage_options import StorageOptions
from hostlib.storage.store import BlockStore
from tests.asynchronous import in_real_time, in_virtual_time, until
from tests.hostlib.network import MemoryNetwork, commit_in_virtual_time
from tests.hostlib.sealed import SEAL, TENANT, place

HOME = "10.0.0.101"
BLOCK_BYTES = 1024
READ_S = 0.05
TRIP_S = 0.002
"""There and back."""
BODY_S = 0.002
"""The same once more: for what is behind a block's first fragment."""


def key(number: int) -> bytes:
    return blake2b(bytes([number]), digest_size=16).digest()


REFS = [BlockRef(key(n), n, 8, int.from_bytes(key(n - 1)[:4], "big") if n else 0) for n in range(8)]


class Setup:
    """Eight blocks of one chain on SSD, as preloaded; DRAM holds four others."""

    def __init__(self, read_ahead_blocks: int, dram_blocks: int = 8) -> None:
        network = MemoryNetwork()
        self.disk = SimulatedDisk()
        self.ssd = SsdTier(self.disk, 100 * BLOCK_BYTES, run=commit_in_virtual_time)
        self.store = BlockStore(dram_blocks * BLOCK_BYTES, self.ssd, derivation(SEAL))
        keys = [ref.key for ref in REFS] + [key(100 + n) for n in range(dram_blocks)]
        self.store.preload([place(one) for one in keys], BLOCK_BYTES)
        options = StorageOptions(ssd_bytes_per_s=BLOCK_BYTES / READ_S, read_ahead_blocks=read_ahead_blocks)
        self.node = StorageNode(network.port(HOME), self.store, options)
        self.node.learn(keys)
        at_once = ClientOptions(LaneOptions(initial_window=len(REFS)))
        self.client = Client(network.port("10.0.0.1"), Members.of([HOME]), SEAL, at_once)

    async def one_by_one(self) -> float:
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        for ref in REFS:
            assert (await self.client.get(ref)).content == block_content(ref.key, BLOCK_BYTES)
            await asyncio.sleep(0.1)  # computing, say
        return loop.time() - began_s


@in_virtual_time
async def test_without_reading_ahead_every_block_waits_for_the_ssd() -> None:
    setup = Setup(read_ahead_blocks=0)
    assert await setup.one_by_one() == pytest.approx(8 * (READ_S + TRIP_S + BODY_S + 0.1), abs=0.01)
    assert (setup.store.stats.ssd_hits, setup.store.stats.read_ahead) == (8, 0)


@in_virtual_time
async def test_the_rest_of_a_chain_is_there_when_it_is_asked_for() -> None:
    setup = Setup(read_ahead_blocks=32)
    assert await setup.one_by_one() == pytest.approx(READ_S + 8 * (TRIP_S + BODY_S + 0.1), abs=0.01)
    stats = setup.store.stats
    assert (stats.ssd_hits, stats.read_ahead, stats.read_ahead_hits) == (1, 7, 7)


@in_virtual_time
async def test_how_far_is_bounded() -> None:
    setup = Setup(read_ahead_blocks=3)
    await setup.one_by_one()
    assert (setup.store.stats.ssd_hits, setup.store.stats.read_ahead) == (2, 6)


@in_virtual_time
async def test_who_asks_comes_before_what_is_read_ahead() -> None:
    setup = Setup(read_ahead_blocks=32)
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    first = asyncio.create_task(setup.client.get(REFS[0]))
    await asyncio.sleep(READ_S / 2)
    await setup.client.get(REFS[7])
    assert loop.time() - began_s == pytest.approx(2 * READ_S + TRIP_S + BODY_S, abs=0.01)
    assert first.done()
    assert setup.node.backlog_ms() == 0


@in_virtual_time
async def test_a_chain_asked_for_at_once_reads_one_after_the_other_and_reports_the_wait() -> None:
    setup = Setup(read_ahead_blocks=32)
    fetch = asyncio.create_task(setup.client.get_chain(REFS))
    await asyncio.sleep(READ_S / 2)
    assert setup.node.backlog_ms() == 8 * 1000 * READ_S
    assert len((await fetch).blocks) == 8
    assert setup.store.stats.ssd_hits == 8


@in_virtual_time
async def test_what_was_read_ahead_for_nothing_is_counted() -> None:
    setup = Setup(read_ahead_blocks=32, dram_blocks=4)
    await setup.client.get(REFS[0])
    await asyncio.sleep(10 * READ_S)
    stats = setup.store.stats
    assert (stats.read_ahead, stats.read_ahead_unused) == (7, 3)


@in_virtual_time
async def test_a_block_that_left_the_ssd_before_it_was_read_is_not_found() -> None:
    setup = Setup(read_ahead_blocks=0)
    asked = asyncio.create_task(setup.client.get(REFS[0]))
    await asyncio.sleep(READ_S / 2)
    setup.ssd.drop(place(REFS[0].key))
    with pytest.raises(BlockNotFoundError):
        await asked


class OnSsd:
    """A store with all blocks on SSD; tenant 2's are four times as long."""

    def __init__(self) -> None:
        self.read: list[Place] = []

    def ssd_length(self, where: Place) -> int:
        return 4000 if where.tenant == 2 else 1000

    def on_ssd_only(self, where: Place) -> bool:
        return where not in self.read

    async def load(self, where: Place, ahead: bool) -> None:
        self.read.append(where)


def asked_by(tenant: int, blocks: int) -> list[Place]:
    return [Place(tenant, key(number)) for number in range(blocks)]


@in_virtual_time
async def test_tenants_that_wait_share_the_disk_evenly_in_bytes() -> None:
    """However much one asks for, and however long its blocks are."""
    store = OnSsd()
    reader = SsdReader(store, 1e6, lambda where, error: None)  # type: ignore[arg-type]
    for where in (*asked_by(1, 200), *asked_by(2, 50)):
        reader.ask(where)
    await asyncio.sleep(0.1)
    read = Counter[int]()
    for where in store.read:
        read[where.tenant] += store.ssd_length(where)
    assert abs(read[1] - read[2]) <= 4000
    assert sum(read.values()) == pytest.approx(100_000, abs=4000)


@in_virtual_time
async def test_a_tenant_s_flood_holds_another_s_block_up_by_one_read_each() -> None:
    store = OnSsd()
    reader = SsdReader(store, 1e6, lambda where, error: None)  # type: ignore[arg-type]
    for where in asked_by(2, 250):
        reader.ask(where)
    await asyncio.sleep(0.1)
    (mine,) = asked_by(1, 1)
    reader.ask(mine)
    assert reader.wait_s(1) == pytest.approx(0.002)
    assert reader.wait_s(2) > 0.8
    await asyncio.sleep(0.011)  # at most two of the others' reads, and its own
    assert mine in store.read
    assert reader.waiting(1) == 0


class HeldUp(SimulatedDisk):
    """A disk whose reads wait until they are let go."""

    def __init__(self) -> None:
        super().__init__()
        self.go_on = threading.Event()

    def read(self, name: bytes, take: Callable[[memoryview], T]) -> T | None:
        """See Disk."""
        assert self.go_on.wait(60)
        return super().read(name, take)


def held_up_node() -> tuple[HeldUp, SsdTier, BlockStore, StorageNode, list[wire.Message]]:
    """Eight blocks on a disk that is slow by itself, none in DRAM but the last."""
    disk = HeldUp()
    ssd = SsdTier(disk, 100 * BLOCK_BYTES)
    store = BlockStore(BLOCK_BYTES, ssd, derivation(SEAL))
    store.preload([place(ref.key) for ref in REFS], BLOCK_BYTES)
    network = MemoryNetwork()
    answers: list[wire.Message] = []
    asks = network.port("10.0.0.1")
    asks.set_receiver(lambda address, datagrams: answers.extend(map(wire.decode, datagrams)))
    node = StorageNode(network.port(HOME), store, StorageOptions())
    return disk, ssd, store, node, answers


def get(number: int) -> bytes:
    return wire.encode(wire.Message(wire.OP_GET, REFS[number].key, 0, 0, tenant=TENANT))


@in_real_time
async def test_others_are_answered_while_a_block_comes_from_the_disk() -> None:
    disk, ssd, _, node, answers = held_up_node()
    node._on_datagrams("10.0.0.1", [get(0)])
    await asyncio.sleep(0.05)
    node._on_datagrams("10.0.0.1", [get(7)])
    await until(lambda: answers)
    assert [answer.key for answer in answers] == [REFS[7].key]
    disk.go_on.set()
    await until(lambda: len(answers) == 2)
    assert answers[1].key == REFS[0].key
    node.close()
    ssd.close()


@pytest.mark.parametrize("by", ["nothing", "another write"])
@in_real_time
async def test_a_block_that_left_or_was_replaced_while_it_was_read_does_not_come_back(by: str) -> None:
    disk, ssd, store, node, answers = held_up_node()
    where = place(REFS[0].key)
    node._on_datagrams("10.0.0.1", [get(0)])
    await asyncio.sleep(0.05)
    if by == "nothing":
        store.drop(where)
    else:
        store.replace(where, Block(77, bytes(512), bytes(16)), durable=True)
    disk.go_on.set()
    await until(lambda: answers)
    (answer,) = answers
    assert (answer.op, answer.content) == ((wire.OP_NOT_FOUND, 0) if by == "nothing" else (wire.OP_VALUE, 77))
    assert (where in store) == (by != "nothing")
    node.close()
    ssd.close()
