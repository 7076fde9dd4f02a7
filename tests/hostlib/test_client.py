"""The client against real storage nodes, over an in-memory network in virtual time."""

from __future__ import annotations

import asyncio
from functools import lru_cache
from hashlib import blake2b

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.simulate_faults.virtual_time import run_virtual
from hostlib import wire
from hostlib.block import Place
from hostlib.client import Client
from hostlib.client_options import ClientOptions
from hostlib.content import block_content, derivation, derived_write, sealed_block
from hostlib.errors import (
    BlockNotFoundError,
    BlockTooLongError,
    CorruptBlockError,
    OverloadedError,
    TransferTimeoutError,
)
from hostlib.health import HealthOptions
from hostlib.homes import home_of
from hostlib.lane import LaneOptions
from hostlib.members import Members
from hostlib.seal import Seal
from hostlib.storage_node import StorageNode
from hostlib.store import BlockStore, StoreOptions
from hostlib.transfer import BlockRef
from tests.hostlib.network import NO_FAULTS, Faults, MemoryNetwork
from tests.hostlib.sealed import SEAL, TENANT

HOMES = ("10.0.0.101", "10.0.0.102")
NODE = "10.0.0.1"
BLOCK_BYTES = 3 * 512 + 100
FRAGMENTS = 4


def keys(count: int) -> list[bytes]:
    return [blake2b(n.to_bytes(4, "big"), digest_size=16).digest() for n in range(count)]


def refs(count: int) -> list[BlockRef]:
    return [BlockRef(key, depth, count, 7, 30) for depth, key in enumerate(keys(count))]


PATIENT = HealthOptions(silence_s=30.0)
"""For networks that lose much more than real ones."""


class World:
    """One client, some storage nodes, and the network between them."""

    def __init__(
        self,
        held: int = 0,
        faults: Faults = NO_FAULTS,
        seed: int = 0,
        options: ClientOptions | None = None,
        homes: tuple[str, ...] = HOMES,
        replicas: int = 1,
        store_options: StoreOptions | None = None,
    ) -> None:
        self.options = options
        self.network = MemoryNetwork(faults, seed)
        self.members = self.network.members = Members.of(homes, replicas)
        derive = derivation(SEAL)
        self.stores = {home: BlockStore(1 << 24, None, derive, store_options) for home in homes}
        self.nodes = {home: StorageNode(self.network.port(home), self.stores[home]) for home in homes}
        for home, store in self.stores.items():
            own = [key for key in keys(held) if home in self.homes(key)]
            store.preload([Place(TENANT, key) for key in own], BLOCK_BYTES)
        self.client = Client(self.network.port(NODE), self.members, SEAL, options)

    def homes(self, key: bytes) -> list[str]:
        return [home.address for home in self.members.homes(key)]

    def another_client(self, address: str) -> Client:
        return Client(self.network.port(address), self.members, SEAL, self.options)

    def sent_by_client(self, op: int) -> list[wire.Message]:
        messages = [wire.decode(datagram) for source, _, datagram in self.network.log if source == NODE]
        return [message for message in messages if message.op == op]


def test_a_block_arrives_whole_in_two_round_trips() -> None:
    async def main() -> None:
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

    run_virtual(main())


def test_a_block_that_is_not_there_is_said_to_be_missing() -> None:
    async def main() -> None:
        world = World()
        with pytest.raises(BlockNotFoundError, match=keys(1)[0].hex()):
            await world.client.get(refs(1)[0])
        assert world.client.stats.not_found == 1

    run_virtual(main())


def test_a_chain_ends_at_the_first_missing_block_before_the_rest_is_moved() -> None:
    async def main() -> None:
        world = World(held=6)
        chain = refs(12)
        fetched = await world.client.get_chain(chain)
        assert [block.key for block in fetched.blocks] == keys(6)
        assert isinstance(fetched.ended_by, BlockNotFoundError)
        beyond = [m for m in world.sent_by_client(wire.OP_GET) if m.key in set(keys(12)[6:])]
        assert {message.fragment for message in beyond} == {0}

    run_virtual(main())


def test_a_whole_chain_arrives() -> None:
    async def main() -> None:
        world = World(held=40)
        fetched = await world.client.get_chain(refs(40))
        assert [block.key for block in fetched.blocks] == keys(40)
        assert fetched.ended_by is None
        assert world.client.stats.from_home == 40 * FRAGMENTS

    run_virtual(main())


def test_a_block_that_many_tasks_want_is_fetched_once() -> None:
    async def main() -> None:
        world = World(held=3)
        chains = await asyncio.gather(*(world.client.get_chain(refs(3)) for _ in range(5)))
        assert all(len(chain.blocks) == 3 for chain in chains)
        assert len(world.sent_by_client(wire.OP_GET)) == 3 * FRAGMENTS
        assert world.client.stats.blocks_joined == 4 * 3

    run_virtual(main())


def test_a_read_that_began_after_a_put_is_not_told_what_was_missing_before() -> None:
    async def main() -> None:
        world = World()
        (ref,), slow = refs(1), Faults(min_delay_s=0.1, max_delay_s=0.1)
        early = asyncio.create_task(world.client.get(ref))
        await asyncio.sleep(0.0005)
        world.network.faults = slow  # "not found" takes long
        await asyncio.sleep(0.0015)
        world.network.faults = NO_FAULTS
        await world.client.put(ref, b"here it is")
        late = asyncio.create_task(world.client.get(ref))
        with pytest.raises(BlockNotFoundError):
            await early
        assert (await late).content == b"here it is"

    run_virtual(main())


def test_who_gives_up_does_not_take_the_block_from_others() -> None:
    async def main() -> None:
        world = World(held=1)
        first = asyncio.create_task(world.client.get(refs(1)[0]))
        second = asyncio.create_task(world.client.get(refs(1)[0]))
        await asyncio.sleep(0)
        first.cancel()
        assert (await second).key == keys(1)[0]

    run_virtual(main())


def test_nothing_is_asked_for_any_more_when_all_gave_up() -> None:
    async def main() -> None:
        world = World(held=1, faults=Faults(lost=1.0))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(world.client.get(refs(1)[0]), 0.1)
        sent = len(world.network.log)
        await asyncio.sleep(5)
        assert len(world.network.log) == sent

    run_virtual(main())


def test_put_blocks_can_be_fetched() -> None:
    async def main() -> None:
        world = World()
        for ref in refs(4):
            await world.client.put(ref, block_content(ref.key, BLOCK_BYTES))
        fetched = await world.client.get_chain(refs(4))
        assert len(fetched.blocks) == 4
        assert world.client.stats.blocks_put == 4

    run_virtual(main())


def test_a_dead_home_costs_one_short_timeout_and_is_remembered() -> None:
    async def main() -> None:
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

    run_virtual(main())


def test_a_read_outlives_a_switch_that_is_restarted() -> None:
    async def main() -> None:
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

    run_virtual(main())


def test_a_read_whose_homes_all_stay_silent_ends() -> None:
    async def main() -> None:
        world = World(held=1, replicas=2)
        world.network.dead.update(HOMES)
        started_s = asyncio.get_running_loop().time()
        with pytest.raises(TransferTimeoutError):
            await world.client.get(refs(1)[0])
        assert asyncio.get_running_loop().time() - started_s < 6  # and 300 ms for each home before

    run_virtual(main())


def test_one_of_two_homes_dead_delays_chains_once() -> None:
    async def main() -> None:
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

    run_virtual(main())


def test_a_home_that_dies_in_the_middle_of_a_block_is_left_for_the_next() -> None:
    async def main() -> None:
        world = World(held=1, replicas=2)
        task = asyncio.create_task(world.client.get(refs(1)[0]))
        await asyncio.sleep(0.0025)  # the probe has arrived
        world.network.dead.add(world.homes(keys(1)[0])[0])
        assert (await task).content == block_content(keys(1)[0], BLOCK_BYTES)
        assert world.client.stats.failovers == 1

    run_virtual(main())


def test_a_home_that_is_busy_with_other_things_is_not_suspected() -> None:
    """It does not answer what it was asked for, but it gives signs of life."""

    async def main() -> None:
        world = World(held=1)
        home = world.homes(keys(1)[0])[0]
        port = world.network.ports[home]
        honest = port.receiver
        assert honest is not None

        def only_signs(source: str, datagrams: object) -> None:
            for datagram in datagrams:  # type: ignore[attr-defined]  # one signature for all transports
                if wire.decode(datagram).op == wire.OP_STAT:
                    honest(source, [datagram])

        port.set_receiver(only_signs)
        task = asyncio.create_task(world.client.get(refs(1)[0]))
        await asyncio.sleep(2)
        assert not task.done()
        assert world.client.suspects == []
        port.set_receiver(honest)
        assert (await task).key == keys(1)[0]

    run_virtual(main())


def test_the_queue_is_bounded_and_says_so() -> None:
    async def main() -> None:
        world = World(held=10, options=ClientOptions(max_transfers=4))
        fetched = await world.client.get_chain(refs(10))
        assert len(fetched.blocks) == 4
        assert isinstance(fetched.ended_by, OverloadedError)
        assert world.client.stats.overloaded == 1

    run_virtual(main())


def test_no_more_than_the_nodes_window_is_in_flight_however_many_homes_there_are() -> None:
    async def main() -> None:
        homes = tuple(f"10.0.1.{n}" for n in range(1, 33))
        world = World(held=300, homes=homes)
        asked: list[int] = []
        task = asyncio.create_task(world.client.get_chain(refs(300)))
        await asyncio.sleep(0.0005)  # nothing has been answered yet
        asked.append(len(world.sent_by_client(wire.OP_GET)))
        assert asked == [ClientOptions().node.initial]
        assert len((await task).blocks) == 300

    run_virtual(main())


@lru_cache
def value_of(key: bytes, fragment: int, flags: int = 0, write: int = 99) -> wire.Message:
    block = sealed_block(SEAL, key, write, block_content(key, BLOCK_BYTES))
    return wire.Message(
        wire.OP_VALUE, key, fragment, FRAGMENTS, flags, sequence=0xABCDEF, tenant=TENANT, content=write,
        tag=block.tag(fragment), value=block.value(fragment),
    )  # fmt: skip


def test_merged_replies_with_another_nodes_sequence_are_taken() -> None:
    async def main() -> None:
        world = World()
        key = keys(1)[0]
        home = home_of(key, HOMES)
        task = asyncio.create_task(world.client.get(refs(1)[0]))
        await asyncio.sleep(0)
        for fragment in range(FRAGMENTS):
            flags = wire.FLAG_MERGED if fragment else wire.FLAG_FROM_POOL
            world.network.deliver(home, NODE, wire.encode(value_of(key, fragment, flags)))
        block = await task
        assert (block.pool_fragments, block.merged_fragments, block.from_pool) == (1, 3, False)
        stats = world.client.stats
        assert (stats.from_pool, stats.from_home, stats.merged) == (1, 3, 3)

    run_virtual(main())


def test_fragments_of_another_write_are_not_mixed_in() -> None:
    async def main() -> None:
        world = World()
        key = keys(1)[0]
        home = home_of(key, HOMES)
        task = asyncio.create_task(world.client.get(refs(1)[0]))
        await asyncio.sleep(0)
        for fragment in range(FRAGMENTS):
            for write in (99, 98):
                world.network.deliver(home, NODE, wire.encode(value_of(key, fragment, 0, write)))
        await task
        assert world.client.stats.late == FRAGMENTS
        assert world.client.stats.corrupt == 0

    run_virtual(main())


def test_two_writers_at_the_same_time_and_a_reader_gets_one_of_them_whole() -> None:
    async def main() -> None:
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

    run_virtual(main())


def test_another_stores_honest_not_found_changes_nothing() -> None:
    async def main() -> None:
        world = World(held=1)
        key = keys(1)[0]
        (other,) = set(HOMES) - {home_of(key, HOMES)}
        task = asyncio.create_task(world.client.get(refs(1)[0]))
        await asyncio.sleep(0)
        missing = wire.Message(wire.OP_NOT_FOUND, key, 0, 0, wire.FLAG_MERGED, tenant=TENANT)
        world.network.deliver(other, NODE, wire.encode(missing))
        assert (await task).content == block_content(key, BLOCK_BYTES)

    run_virtual(main())


def test_a_home_with_another_write_than_the_pool_is_read_from_its_probe_on() -> None:
    """The pool has fragment 0 of an older write; its home has never seen that."""

    async def main() -> None:
        world = World(held=1)
        key = keys(1)[0]
        home = home_of(key, HOMES)
        task = asyncio.create_task(world.client.get(refs(1)[0]))
        await asyncio.sleep(0)
        world.network.deliver(home, NODE, wire.encode(value_of(key, 0, wire.FLAG_FROM_POOL)))
        assert (await task).content == block_content(key, BLOCK_BYTES)
        restarted = [get for get in world.sent_by_client(wire.OP_GET) if get.flags & wire.FLAG_REPAIR]
        assert restarted[0].fragment == 0

    run_virtual(main())


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

            def receive(source: str, datagrams: object, home: str = home, honest: object = honest) -> None:
                for datagram in datagrams:  # type: ignore[attr-defined]  # one signature for all transports
                    message = wire.decode(datagram)
                    if message.op == wire.OP_GET and not message.flags & wire.FLAG_BYPASS:
                        self._answer(home, source, message)
                    else:
                        honest(source, [datagram])  # type: ignore[operator]

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
def test_wrong_values_are_fetched_again_past_the_pool(break_checksum: bool) -> None:
    async def main() -> None:
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

    run_virtual(main())


def test_reports_that_the_pool_is_wrong_are_bounded() -> None:
    async def main() -> None:
        world = World(held=100, options=ClientOptions(corrupt_limit=FRAGMENTS, repairs_per_s=5))
        PoisonedPool(world, break_checksum=False)
        assert len((await world.client.get_chain(refs(100))).blocks) == 100
        reports = [get for get in world.sent_by_client(wire.OP_GET) if get.flags & wire.FLAG_REPAIR]
        assert 10 <= len(reports) <= 20

    run_virtual(main())


def test_a_block_that_is_wrong_at_its_home_is_an_error() -> None:
    async def main() -> None:
        world = World()
        forger = Client(world.network.port("10.0.0.66"), world.members, Seal(TENANT, b"another secret!!"))
        await forger.put(refs(1)[0], bytes(BLOCK_BYTES))
        with pytest.raises(CorruptBlockError):
            await world.client.get(refs(1)[0])
        assert world.client.stats.corrupt_blocks == 1

    run_virtual(main())


def test_a_block_that_is_wrong_at_one_home_comes_from_the_other() -> None:
    async def main() -> None:
        world = World(replicas=2)
        first, second = world.homes(keys(1)[0])
        place = Place(TENANT, keys(1)[0])
        content = block_content(keys(1)[0], BLOCK_BYTES)
        wrong = sealed_block(Seal(TENANT, b"another secret!!"), keys(1)[0], 5, bytes(BLOCK_BYTES))
        world.stores[first].put(place, wrong, durable=False)
        world.stores[second].put(place, sealed_block(SEAL, keys(1)[0], 6, content), durable=False)
        assert (await world.client.get(refs(1)[0])).content == content

    run_virtual(main())


def test_values_of_the_wrong_length_are_not_stored() -> None:
    async def main() -> None:
        world = World(held=1)
        task = asyncio.create_task(world.client.get(refs(1)[0]))
        await asyncio.sleep(0)
        tag = SEAL.tag(keys(1)[0], 0, FRAGMENTS, 99, b"short")
        message = wire.Message(
            wire.OP_VALUE, keys(1)[0], 0, FRAGMENTS, tenant=TENANT, content=99, tag=tag, value=b"short"
        )
        world.network.deliver(HOMES[0], NODE, wire.encode(message))
        assert (await task).content == block_content(keys(1)[0], BLOCK_BYTES)
        assert world.client.stats.corrupt == 1

    run_virtual(main())


def test_closing_cancels_who_waits() -> None:
    async def main() -> None:
        world = World(held=1, faults=Faults(lost=1.0))
        task = asyncio.create_task(world.client.get_chain(refs(1)))
        await asyncio.sleep(0.1)
        world.client.close()
        with pytest.raises(asyncio.CancelledError):
            await task

    run_virtual(main())


@given(st.lists(st.binary(max_size=700), max_size=20))
def test_hostile_datagrams_are_counted_and_change_nothing(datagrams: list[bytes]) -> None:
    async def main() -> None:
        world = World(held=1)
        task = asyncio.create_task(world.client.get(refs(1)[0]))
        await asyncio.sleep(0)
        for datagram in datagrams:
            world.network.deliver(HOMES[0], NODE, datagram)
            world.network.deliver(NODE, HOMES[0], datagram)
        assert (await task).content == block_content(keys(1)[0], BLOCK_BYTES)
        assert sum(world.client.stats.malformed.values()) == len(datagrams)
        assert sum(world.nodes[HOMES[0]].stats.malformed.values()) == len(datagrams)

    run_virtual(main())


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    lost=st.floats(0, 0.3),
    duplicated=st.floats(0, 0.3),
    corrupted=st.floats(0, 0.02),
    max_delay_s=st.floats(0.001, 0.4),
    held=st.integers(0, 12),
)
def test_the_client_survives_loss_reordering_duplication_and_damage(
    seed: int, lost: float, duplicated: float, corrupted: float, max_delay_s: float, held: int
) -> None:
    """Whatever the network does: what arrives is right, everything ends, and nothing is left behind."""

    async def main() -> None:
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

    run_virtual(main())


@pytest.mark.parametrize("length", [1, 511, 512, 513, 100_000])
def test_blocks_of_any_length_come_back_as_they_were_put(length: int) -> None:
    async def main() -> None:
        world = World()
        content = bytes(at % 251 for at in range(length))
        await world.client.put(refs(1)[0], content)
        block = await world.client.get(refs(1)[0])
        assert (block.content, block.fragments) == (content, wire.fragment_count(length))

    run_virtual(main())


def test_the_longest_block_there_is_comes_back_as_it_was_put() -> None:
    async def main() -> None:
        world = World()
        content = b"end" + bytes(wire.MAX_BLOCK_BYTES - 6) + b"end"
        place, block = Place(TENANT, keys(1)[0]), sealed_block(SEAL, keys(1)[0], 5, content)
        world.stores[world.homes(keys(1)[0])[0]].put(place, block, durable=False)
        world.network.log = Forgotten()  # a log of it would be long
        fetched = await world.client.get(refs(1)[0])
        assert fetched.fragments == wire.MAX_FRAGMENTS
        assert fetched.content == content

    run_virtual(main())


class Forgotten(list[tuple[str, str, bytes]]):
    """A log that keeps nothing."""

    def append(self, entry: tuple[str, str, bytes]) -> None:
        """Not even this."""


def test_a_block_is_read_into_the_callers_buffer() -> None:
    async def main() -> None:
        world = World(held=1)
        expected = block_content(keys(1)[0], BLOCK_BYTES)
        buffer = bytearray(b"\xff" * (BLOCK_BYTES + 50))
        block = await world.client.get_into(refs(1)[0], memoryview(buffer))
        assert isinstance(block.content, memoryview)
        assert block.content.obj is buffer
        assert bytes(block.content) == expected
        assert buffer[BLOCK_BYTES:] == b"\xff" * 50

    run_virtual(main())


def test_a_block_that_somebody_fetches_already_is_copied_into_the_buffer() -> None:
    async def main() -> None:
        world = World(held=1)
        buffers = [memoryview(bytearray(BLOCK_BYTES)) for _ in range(3)]
        await asyncio.gather(
            world.client.get(refs(1)[0]), *(world.client.get_into(refs(1)[0], b) for b in buffers)
        )
        assert all(bytes(buffer) == block_content(keys(1)[0], BLOCK_BYTES) for buffer in buffers)
        assert len(world.sent_by_client(wire.OP_GET)) == FRAGMENTS

    run_virtual(main())


@pytest.mark.parametrize("room", [0, 512, BLOCK_BYTES - 1])
def test_a_block_that_does_not_fit_is_an_error(room: int) -> None:
    async def main() -> None:
        world = World(held=1)
        with pytest.raises(BlockTooLongError, match=f"buffer of {room}"):
            await world.client.get_into(refs(1)[0], memoryview(bytearray(room)))
        with pytest.raises(ValueError, match="writable"):
            await world.client.get_into(refs(1)[0], memoryview(b"read-only"))

    run_virtual(main())


@pytest.mark.parametrize("replicas", [1, 2])
def test_how_much_of_a_chain_exists_is_known_without_moving_it(replicas: int) -> None:
    async def main() -> None:
        world = World(held=6, replicas=replicas)
        chain = refs(12)
        assert await world.client.exists(chain) == 6
        assert await world.client.exists(chain[:3]) == 3
        assert await world.client.exists(chain[7:]) == 0
        assert await world.client.exists([]) == 0
        assert world.sent_by_client(wire.OP_GET) == []

    run_virtual(main())


def test_what_a_dead_home_may_hold_is_not_said_to_be_missing() -> None:
    async def main() -> None:
        world = World(held=1)
        world.network.dead.add(world.homes(keys(1)[0])[0])
        with pytest.raises(TransferTimeoutError):
            await world.client.exists(refs(1))
        world = World(held=1, replicas=2)
        world.network.dead.add(world.homes(keys(1)[0])[0])
        assert await world.client.exists(refs(1)) == 1

    run_virtual(main())


class QuickPool:
    """Answers all GETs at once and as it should; homes get what they are asked only `home_s` later."""

    def __init__(self, world: World, pooled: set[bytes], home_s: float) -> None:
        for home in HOMES:
            port = world.network.ports[home]
            honest = port.receiver
            assert honest is not None

            def receive(source: str, datagrams: object, home: str = home, honest: object = honest) -> None:
                for datagram in datagrams:  # type: ignore[attr-defined]  # one signature for all transports
                    message = wire.decode(bytes(datagram))
                    if message.op == wire.OP_GET and message.key in pooled:
                        value = value_of(message.key, message.fragment, wire.FLAG_FROM_POOL)
                        world.network.carry(home, source, wire.encode(value))
                    else:
                        loop = asyncio.get_running_loop()
                        loop.call_later(home_s, honest, source, [bytes(datagram)])

            port.set_receiver(receive)


def test_a_node_whose_every_answer_comes_from_the_pool_never_times_out() -> None:
    async def main() -> None:
        world = World(options=ClientOptions(LaneOptions(deadline_s=0.5)))
        QuickPool(world, set(keys(40)), home_s=0.0)
        loop = asyncio.get_running_loop()
        while loop.time() < 2:
            chains = (world.client.get_chain(refs(40)), world.client.get_chain(refs(20)))
            assert [len(chain.blocks) for chain in await asyncio.gather(*chains)] == [40, 20]
        stats = world.client.stats
        assert (stats.from_home, stats.timeouts, stats.homes_suspected, stats.retransmits) == (0, 0, 0, 0)

    run_virtual(main())


def test_a_busy_home_does_not_hold_up_what_the_pool_has() -> None:
    async def main() -> None:
        held = 400
        world = World(held=held)
        pooled = set(keys(held)[300:])
        QuickPool(world, pooled, home_s=0.15)
        for node in world.nodes.values():
            node.backlog_ms = lambda: 150  # type: ignore[method-assign]
        slow = [asyncio.create_task(world.client.get(ref)) for ref in refs(held)[:8]]
        await asyncio.sleep(1.0)  # the homes' windows are small by now
        slow += [asyncio.create_task(world.client.get(ref)) for ref in refs(held)[8:20]]
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        for ref in refs(held)[300:340]:
            assert (await world.client.get(ref)).from_pool
        assert loop.time() - began_s < 0.5
        await asyncio.gather(*slow)

    run_virtual(main())
