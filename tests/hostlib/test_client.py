"""The client against real storage nodes, over an in-memory network in virtual time."""

from __future__ import annotations

import asyncio
from hashlib import blake2b

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hostlib import wire
from hostlib.client import Client
from hostlib.content import block_content, is_intact
from hostlib.errors import (
    BlockNotFoundError,
    CorruptBlockError,
    OverloadedError,
    TransferTimeoutError,
)
from hostlib.exchange import ClientOptions
from hostlib.homes import home_of
from hostlib.lane import LaneOptions
from hostlib.storage import StorageNode
from hostlib.store import BlockStore
from hostlib.transfer import BlockRef
from tests.hostlib.network import NO_FAULTS, Faults, MemoryNetwork, run_virtual

HOMES = ("10.0.0.101", "10.0.0.102")
NODE = "10.0.0.1"
BLOCK_BYTES = 3 * 512 + 100
FRAGMENTS = 4


def keys(count: int) -> list[bytes]:
    return [blake2b(n.to_bytes(4, "big"), digest_size=16).digest() for n in range(count)]


def refs(count: int) -> list[BlockRef]:
    return [BlockRef(key, depth, count, 7, 30) for depth, key in enumerate(keys(count))]


class World:
    """One client, two storage nodes, and the network between them."""

    def __init__(
        self, held: int = 0, faults: Faults = NO_FAULTS, seed: int = 0, options: ClientOptions | None = None
    ) -> None:
        self.network = MemoryNetwork(faults, seed)
        self.stores = {home: BlockStore(BLOCK_BYTES, 1 << 20, None) for home in HOMES}
        self.nodes = {home: StorageNode(self.network.port(home), self.stores[home]) for home in HOMES}
        for home, store in self.stores.items():
            store.preload([key for key in keys(held) if home_of(key, HOMES) == home])
        self.client = Client(self.network.port(NODE), HOMES, BLOCK_BYTES, is_intact, options)

    def sent_by_client(self, op: int) -> list[wire.Message]:
        messages = [wire.decode(datagram) for source, _, datagram in self.network.log if source == NODE]
        return [message for message in messages if message.op == op]


def test_a_block_arrives_whole_and_in_one_round_trip() -> None:
    async def main() -> None:
        world = World(held=1)
        block = await world.client.get(refs(1)[0])
        assert block.content == block_content(keys(1)[0], BLOCK_BYTES)
        assert block.elapsed_s == pytest.approx(0.002)
        assert (block.pool_fragments, block.from_pool) == (0, False)
        gets = world.sent_by_client(wire.OP_GET)
        assert sorted(message.fragment for message in gets) == list(range(FRAGMENTS))
        assert {(g.fragments, g.depth, g.chain_blocks, g.parent, g.hint_ms) for g in gets} == {
            (FRAGMENTS, 0, 1, 7, 30)
        }

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


def test_a_dead_home_is_an_error_after_the_deadline_with_backoff_before() -> None:
    async def main() -> None:
        world = World(held=1, faults=Faults(lost=1.0))
        loop = asyncio.get_running_loop()
        started_s = loop.time()
        with pytest.raises(TransferTimeoutError):
            await world.client.get(refs(1)[0])
        assert 10 <= loop.time() - started_s < 13
        retries = [m for m in world.sent_by_client(wire.OP_GET) if m.flags & wire.FLAG_RETRY]
        assert 3 * FRAGMENTS <= len(retries) <= 8 * FRAGMENTS
        with pytest.raises(TransferTimeoutError):
            await world.client.put(refs(1)[0], block_content(keys(1)[0], BLOCK_BYTES))
        assert world.client.stats.timeouts == 2

    run_virtual(main())


def test_the_queue_is_bounded_and_says_so() -> None:
    async def main() -> None:
        world = World(held=10, options=ClientOptions(max_transfers=4))
        fetched = await world.client.get_chain(refs(10))
        assert len(fetched.blocks) == 4
        assert isinstance(fetched.ended_by, OverloadedError)
        assert world.client.stats.overloaded == 1

    run_virtual(main())


def test_no_more_than_the_window_is_in_flight() -> None:
    async def main() -> None:
        lane = LaneOptions(initial_window=5, max_window=5)
        world = World(held=30, faults=Faults(lost=1.0), options=ClientOptions(lane=lane))
        task = asyncio.create_task(world.client.get_chain(refs(30)))
        await asyncio.sleep(0.5)
        assert len(world.network.log) == 5 * len(HOMES)
        task.cancel()

    run_virtual(main())


def test_merged_replies_with_another_nodes_sequence_are_taken() -> None:
    async def main() -> None:
        world = World()
        key = keys(1)[0]
        content = block_content(key, BLOCK_BYTES)
        home = home_of(key, HOMES)
        task = asyncio.create_task(world.client.get(refs(1)[0]))
        await asyncio.sleep(0)
        for fragment in range(FRAGMENTS):
            value = content[fragment * 512 : fragment * 512 + 512]
            flags = wire.FLAG_MERGED if fragment else wire.FLAG_FROM_POOL
            message = wire.Message(
                wire.OP_VALUE, key, fragment, FRAGMENTS, flags=flags, sequence=0xABCDEF, value=value
            )
            world.network.deliver(home, NODE, wire.encode(message))
        block = await task
        assert (block.pool_fragments, block.merged_fragments, block.from_pool) == (1, 3, False)
        stats = world.client.stats
        assert (stats.from_pool, stats.from_home, stats.merged) == (1, 3, 3)

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
        reply = message._replace(op=wire.OP_VALUE, flags=wire.FLAG_FROM_POOL, value=value)
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
        assert world.client.stats.corrupt == (FRAGMENTS if break_checksum else 1)

    run_virtual(main())


def test_a_block_that_is_wrong_at_its_home_is_an_error() -> None:
    async def main() -> None:
        world = World()
        await world.client.put(refs(1)[0], bytes(BLOCK_BYTES))
        with pytest.raises(CorruptBlockError):
            await world.client.get(refs(1)[0])
        assert world.client.stats.corrupt_blocks == 1

    run_virtual(main())


def test_values_of_the_wrong_length_are_not_stored() -> None:
    async def main() -> None:
        world = World(held=1)
        task = asyncio.create_task(world.client.get(refs(1)[0]))
        await asyncio.sleep(0)
        message = wire.Message(wire.OP_VALUE, keys(1)[0], 0, FRAGMENTS, value=b"short")
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
        world = World(held, faults, seed, ClientOptions(lane=lane, corrupt_limit=20))
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
