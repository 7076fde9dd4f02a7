from __future__ import annotations

import asyncio
from collections.abc import Callable
from hashlib import blake2b
from random import Random
from time import thread_time

import pytest

from experiments.simulate_faults.virtual_time import run_virtual
from hostlib.protocol import wire
from hostlib.protocol.block import LEAST_BYTES, Block, Derived, Place
from hostlib.protocol.content import block_content, derivation, derived_write, sealed_block
from hostlib.protocol.errors import DiskError, UnreadableError
from hostlib.protocol.tombstones import MAX_OF_BLOCK, Tombstone
from hostlib.storage.lifetimes import Lifetime
from hostlib.storage.simulated_disk import SimulatedDisk
from hostlib.storage.ssd import LEAVE_AT_ONCE, SsdTier
from hostlib.storage.store import BlockStore
from hostlib.storage.store_options import Kept, StoreOptions
from tests.asynchronous import in_virtual_time
from tests.hostlib.network import commit_in_virtual_time
from tests.hostlib.sealed import SEAL, TENANT, WRITE, fragments, place

BLOCK_BYTES = 1024 + 10
FRAGMENTS = 3


def key(number: int) -> bytes:
    return blake2b(number.to_bytes(4, "big"), digest_size=16).digest()


def content(number: int) -> bytes:
    return block_content(key(number), BLOCK_BYTES)


def puts(
    number: int, data: bytes | None = None, write: int = WRITE, durable: bool = False
) -> list[wire.Message]:
    flags = wire.FLAG_DURABLE if durable else 0
    return fragments(wire.OP_PUT, key(number), content(number) if data is None else data, write, flags)


def put(store: BlockStore, number: int, data: bytes | None = None, write: int = WRITE) -> list[Kept]:
    """Put a whole block; what became of each fragment."""
    return [store.put_fragment(message).kept for message in puts(number, data, write)]


def read(store: BlockStore, number: int) -> bytes | None:
    block = store.get(place(key(number)))
    return block.content if block is not None else None


def make_store(
    disk: SimulatedDisk | None = None, dram: int = 4, ssd: int = 4, options: StoreOptions | None = None
) -> BlockStore:
    tier = SsdTier(disk, ssd * BLOCK_BYTES, run=commit_in_virtual_time) if disk is not None else None
    return BlockStore(dram * BLOCK_BYTES, tier, derivation(SEAL), options)


def in_a_loop(test: Callable[[], None]) -> None:
    async def main() -> None:
        test()

    run_virtual(main())


def test_a_block_is_visible_when_its_last_fragment_is_there() -> None:
    store = make_store()
    for message in reversed(puts(1)):
        assert read(store, 1) is None
        store.put_fragment(message)
    assert read(store, 1) == content(1)


def test_the_first_complete_write_wins_and_is_what_later_ones_are_told() -> None:
    store = make_store()
    first, second = puts(1, write=1), puts(1, bytes(BLOCK_BYTES), write=2)
    for one, other in zip(first[:-1], second[:-1], strict=True):
        assert store.put_fragment(one).kept is Kept.RECEIVED
        assert store.put_fragment(other).kept is Kept.RECEIVED
    assert store.put_fragment(second[-1]) == (Kept.HELD, 2, 0)
    assert store.put_fragment(first[-1]) == (Kept.HELD, 2, 0)
    assert read(store, 1) == bytes(BLOCK_BYTES)


def test_blocks_of_any_length_are_kept_side_by_side() -> None:
    store = make_store(dram=100)
    lengths = [1, 511, 512, 513, 40_000]
    for number, length in enumerate(lengths):
        assert put(store, number, b"x" * length)[-1] is Kept.HELD
    assert [len(read(store, number) or b"") for number in range(5)] == lengths


@pytest.mark.parametrize("change", [{"value": b"short"}, {"content": 0}])
def test_what_is_no_fragment_of_a_write_is_refused(change: dict[str, object]) -> None:
    strange = puts(1)[0]._replace(**change)  # type: ignore[arg-type]
    assert make_store().put_fragment(strange) == (Kept.REFUSED, 0, wire.REFUSED_LENGTH)


def test_incomplete_puts_are_bounded_and_the_oldest_goes() -> None:
    store = make_store(options=StoreOptions(max_partial=2))
    for number in (1, 2, 3):
        store.put_fragment(puts(number)[0])
    assert store.sizes()["partial"] == 2
    assert store.stats.partial_dropped == 1
    for message in puts(2)[1:]:
        store.put_fragment(message)
    assert read(store, 2) == content(2)


def test_a_tenant_holds_no_more_than_its_share_and_others_are_not_touched() -> None:
    store = make_store(dram=100, options=StoreOptions(tenant_bytes=5 * 3 * 512))
    kept = [put(store, number)[-1] for number in range(10)]
    assert kept.count(Kept.REFUSED) > 0
    assert kept[:5] == [Kept.HELD] * 5
    other = puts(50)[0]._replace(tenant=TENANT + 1)
    assert store.put_fragment(other).kept is Kept.RECEIVED
    assert store.put_fragment(puts(60)[0]) == (Kept.REFUSED, 0, wire.REFUSED_QUOTA)


def test_what_is_there_from_the_start_is_of_a_tenants_share() -> None:
    store = make_store(dram=100, options=StoreOptions(tenant_bytes=5 * BLOCK_BYTES))
    store.preload([place(key(number)) for number in range(5)], BLOCK_BYTES)
    assert store.put_fragment(puts(60)[0]) == (Kept.REFUSED, 0, wire.REFUSED_QUOTA)


def test_what_leaves_gives_a_tenant_its_share_back() -> None:
    store = make_store(dram=2, options=StoreOptions(tenant_bytes=3 * 3 * 512))
    assert all(put(store, number)[-1] is Kept.HELD for number in range(20))


@in_virtual_time
async def test_what_leaves_the_ssd_gives_a_tenant_its_share_back() -> None:
    options = StoreOptions(tenant_bytes=6 * 3 * 512)
    store = make_store(SimulatedDisk(), dram=2, ssd=2, options=options)
    for number in range(20):
        assert put(store, number)[-1] is Kept.HELD
        await asyncio.sleep(0.01)  # the disk has it


def test_dram_is_bounded_and_without_ssd_the_least_recently_used_goes() -> None:
    store = make_store(dram=2)
    put(store, 1)
    put(store, 2)
    read(store, 1)
    put(store, 3)
    assert [read(store, n) is not None for n in (1, 2, 3)] == [True, False, True]


def test_a_put_of_a_block_that_is_here_is_a_use_of_it() -> None:
    store = make_store(dram=2)
    put(store, 1)
    put(store, 2)
    put(store, 1)
    put(store, 3)
    assert [read(store, n) is not None for n in (1, 2, 3)] == [True, False, True]


def test_what_dram_has_no_room_for_moves_to_ssd_and_comes_back() -> None:
    def test() -> None:
        store = make_store(SimulatedDisk(), dram=2, ssd=10)
        for number in range(1, 6):
            put(store, number)
        assert store.sizes() == {"dram": 2, "ssd": 3, "partial": 0}
        assert read(store, 1) == content(1)  # while it is being written
        assert store.stats.ssd_hits == 1
        assert read(store, 1) == content(1)
        assert store.stats.dram_hits == 1

    in_a_loop(test)


def test_preloaded_blocks_are_there_and_take_room() -> None:
    def test() -> None:
        store = make_store(SimulatedDisk(), dram=2, ssd=3)
        store.preload([place(key(n)) for n in range(7)], BLOCK_BYTES)
        assert store.sizes() == {"dram": 2, "ssd": 3, "partial": 0}
        here = [read(store, n) == content(n) for n in range(7)]
        assert here == [False, False, True, True, True, True, True]

    in_a_loop(test)


@pytest.mark.parametrize(("left", "kept"), [(0, Kept.RECEIVED), (-1, Kept.REFUSED)])
def test_preloaded_blocks_that_have_no_room_count_for_no_tenant(left: int, kept: Kept) -> None:
    """They were taken off what the tenant held, which fell below 0."""

    def test() -> None:
        share = 5 * BLOCK_BYTES + FRAGMENTS * wire.VALUE_BYTES + left
        store = make_store(SimulatedDisk(), dram=2, ssd=3, options=StoreOptions(tenant_bytes=share))
        store.preload([place(key(n)) for n in range(7)], BLOCK_BYTES)
        assert store.put_fragment(puts(50)[0]).kept is kept

    in_a_loop(test)


def test_preloaded_blocks_have_the_write_that_follows_from_their_key_wherever_they_are() -> None:
    def test() -> None:
        store = make_store(SimulatedDisk(), dram=1, ssd=3)
        store.preload([place(key(n)) for n in range(4)], BLOCK_BYTES)
        found = [store.find(place(key(n))) for n in range(4)]
        assert found == [(BLOCK_BYTES, derived_write(key(n))) for n in range(4)]

    in_a_loop(test)


def test_preloaded_blocks_may_differ_in_length() -> None:
    def test() -> None:
        store = make_store(SimulatedDisk(), dram=2, ssd=3)
        half = {place(key(n)): BLOCK_BYTES // 2 for n in range(3, 7)}
        store.preload([place(key(n)) for n in range(7)], BLOCK_BYTES, half)
        assert store.sizes() == {"dram": 4, "ssd": 3, "partial": 0}
        lengths = [len(block.content) if (block := store.get(place(key(n)))) else 0 for n in range(3, 7)]
        assert lengths == [BLOCK_BYTES // 2] * 4

    in_a_loop(test)


def test_preloading_without_ssd_keeps_the_youngest() -> None:
    store = make_store(dram=2)
    store.preload([place(key(n)) for n in range(5)], BLOCK_BYTES)
    assert [n for n in range(5) if read(store, n) is not None] == [3, 4]


@in_virtual_time
async def test_a_durable_put_waits_for_the_disk_and_one_without_a_disk_is_refused() -> None:
    disk = SimulatedDisk()
    store = make_store(disk)
    outcomes = [store.put_fragment(message).kept for message in puts(1, durable=True)]
    assert outcomes == [Kept.RECEIVED, Kept.RECEIVED, Kept.COMMITTING]
    safe: list[object] = []
    store.when_safe(place(key(1)), safe.append)
    assert safe == []
    await asyncio.sleep(0.1)
    assert safe == [None]
    disk.power_cut(keep=False)
    assert list(disk.scan()) != []
    refused = make_store().put_fragment(puts(1, durable=True)[0])
    assert refused == (Kept.REFUSED, 0, wire.REFUSED_FULL)


@in_virtual_time
async def test_a_block_in_memory_can_be_made_durable_later() -> None:
    disk = SimulatedDisk()
    store = make_store(disk)
    put(store, 1)
    assert store.put_fragment(puts(1, durable=True)[0]).kept is Kept.COMMITTING
    safe: list[object] = []
    store.when_safe(place(key(1)), safe.append)
    await asyncio.sleep(0.1)
    assert safe == [None]
    assert len(list(disk.scan())) == 1


@in_virtual_time
async def test_a_block_that_only_the_disk_has_is_safe_and_one_that_left_is_not() -> None:
    store = make_store(SimulatedDisk(), dram=1)
    put(store, 1)
    put(store, 2)  # the first leaves memory
    await asyncio.sleep(0.1)
    safe: list[object] = []
    store.when_safe(place(key(1)), safe.append)
    assert safe == [None]
    store.drop(place(key(1)))
    store.when_safe(place(key(1)), safe.append)
    assert isinstance(safe[1], DiskError)


@in_virtual_time
async def test_a_record_that_nothing_else_has_is_looked_at_and_dropped_if_it_is_damaged() -> None:
    disk = SimulatedDisk()
    store = make_store(disk, dram=2)
    for number in (1, 2, 3):
        for message in puts(number, durable=True):
            store.put_fragment(message)
        await asyncio.sleep(0.1)
    on_disk_only, in_both = (place(key(number)) for number in (1, 3))
    assert store.on_ssd_only(on_disk_only)
    assert not await store.drop_if_damaged(on_disk_only)
    for one in (on_disk_only, in_both):
        disk.damage(one.name())
    assert await store.drop_if_damaged(on_disk_only)
    assert on_disk_only not in store
    assert not await store.drop_if_damaged(in_both)
    assert in_both in store
    assert not await make_store().drop_if_damaged(on_disk_only)


@in_virtual_time
async def test_a_copy_takes_the_place_of_another_write_and_makes_what_is_here_durable() -> None:
    disk = SimulatedDisk()
    store = make_store(disk)
    put(store, 1)
    same, other = (sealed_block(SEAL, key(1), write, content(1)) for write in (WRITE, 9))
    assert not store.replace(place(key(1)), same, durable=False)
    assert not len(list(disk.scan()))
    for block, durable, is_another in ((same, True, True), (same, True, False), (other, True, True)):
        assert store.replace(place(key(1)), block, durable) is is_another
        await asyncio.sleep(0.1)
        assert store.get(place(key(1))) == block
        assert disk.synced(place(key(1)).name())
        assert store.sizes() == {"dram": 1, "ssd": 1, "partial": 0}


@in_virtual_time
async def test_a_copy_that_the_disk_does_not_take_leaves_what_was_there() -> None:
    disk = SimulatedDisk()
    store = make_store(disk, options=StoreOptions(tenant_bytes=BLOCK_BYTES + FRAGMENTS * wire.VALUE_BYTES))
    old, shorter, other = (
        sealed_block(SEAL, key(1), write, content(1)[:length])
        for write, length in ((WRITE, BLOCK_BYTES), (8, 100), (9, BLOCK_BYTES))
    )
    store.put(place(key(1)), old, durable=True)
    await asyncio.sleep(0.1)
    disk.failing = True
    for block in (shorter, other):
        assert store.replace(place(key(1)), block, durable=True)
        assert store.get(place(key(1))) == block
    refused: list[DiskError | None] = []
    store.when_safe(place(key(1)), refused.append)
    await asyncio.sleep(2.0)
    disk.failing = False
    assert [type(error) for error in refused] == [DiskError]
    assert store.get(place(key(1))) == old
    await asyncio.sleep(2.0)
    disk.power_cut(keep=False)
    restarted = make_store(disk)
    assert restarted.get(place(key(1))) == old
    for number, kept in ((2, Kept.HELD), (3, Kept.REFUSED)):  # the tenant holds as much as before
        assert put(store, number)[-1] is kept


async def holds_one_of_two_writes(disk: SimulatedDisk) -> tuple[BlockStore, Block, Block]:
    """A store whose disk has one write of a block, that write, and another one."""
    store = make_store(disk)
    old, other = (sealed_block(SEAL, key(1), write, content(1)) for write in (WRITE, 9))
    store.put(place(key(1)), old, durable=True)
    await asyncio.sleep(0.1)
    return store, old, other


@pytest.mark.parametrize("wait_s", [0.0, 0.004])
@in_virtual_time
async def test_what_was_deleted_while_a_copy_was_to_replace_it_is_not_back_when_the_disk_takes_no_copy(
    wait_s: float,
) -> None:
    disk = SimulatedDisk()
    store, old, other = await holds_one_of_two_writes(disk)
    disk.full = True
    assert store.replace(place(key(1)), other, durable=True)
    await asyncio.sleep(wait_s)  # 0.004: the disk is at it
    stone = Tombstone(place(key(1)), WRITE, SEAL.proof(key(1), FRAGMENTS, WRITE, old.value(0)))
    assert store.delete(stone)
    said: list[DiskError | None] = []
    store.graveyard.when_safe(stone, said.append)
    await asyncio.sleep(0.002)
    disk.full = not wait_s
    await asyncio.sleep(2.0)
    assert (said == [None]) == bool(wait_s)
    assert place(key(1)) not in store
    if wait_s:
        disk.power_cut(keep=False)
        assert place(key(1)) not in make_store(disk)


@in_virtual_time
async def test_what_was_written_and_not_synced_is_not_taken_for_the_block_that_it_was_to_replace(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    disk = SimulatedDisk()
    store, _, other = await holds_one_of_two_writes(disk)

    def sync() -> None:
        raise DiskError("simulated error")

    monkeypatch.setattr(disk, "sync", sync)
    assert store.replace(place(key(1)), other, durable=True)
    await asyncio.sleep(0.1)
    assert store.find(place(key(1))) == (BLOCK_BYTES, WRITE)
    with pytest.raises(UnreadableError, match="another write"):
        store.get(place(key(1)))


@in_virtual_time
async def test_a_copy_that_fits_no_disk_leaves_what_was_there() -> None:
    store = make_store(SimulatedDisk(), ssd=1)
    old = sealed_block(SEAL, key(1), WRITE, content(1))
    store.put(place(key(1)), old, durable=True)
    assert not store.replace(
        place(key(1)), sealed_block(SEAL, key(1), 9, bytes(2 * BLOCK_BYTES)), durable=True
    )
    assert store.get(place(key(1))) == old


@in_virtual_time
async def test_a_deletion_reads_no_disk_and_takes_no_other_proof_where_that_can_not_be_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    disk = SimulatedDisk()
    store = make_store(disk, dram=1, ssd=2)
    for number in (1, 2):
        for message in puts(number, durable=True):
            store.put_fragment(message)
        await asyncio.sleep(0.1)
    assert store.on_ssd_only(place(key(1)))
    disk.unreadable.add(place(key(1)).name())
    reads = []
    monkeypatch.setattr(disk, "read", lambda name, take: reads.append(name))
    proof = SEAL.proof(key(1), FRAGMENTS, WRITE, content(1)[: wire.VALUE_BYTES])
    forged = Tombstone(place(key(1)), WRITE, bytes(16))
    assert not store.is_proven(forged)
    assert not store.delete(forged)
    assert place(key(1)) in store
    assert store.is_proven(forged._replace(proof=proof))
    assert store.delete(forged._replace(proof=proof))
    assert place(key(1)) not in store
    assert not reads


@in_virtual_time
async def test_a_clean_stop_puts_dram_on_disk() -> None:
    disk = SimulatedDisk()
    store = make_store(disk)
    for number in range(3):
        put(store, number)
    store.flush()
    disk.power_cut(keep=False)
    again = make_store(disk)
    assert [read(again, number) for number in range(3)] == [content(number) for number in range(3)]


@in_virtual_time
async def test_a_clean_stop_leaves_no_more_on_the_disk_than_its_tier_has() -> None:
    """DRAM of large blocks came on top of a full SSD of short ones, and the disk took nothing."""
    tier_bytes = 20_000 * LEAST_BYTES
    disk = SimulatedDisk(2 * tier_bytes)
    tier = SsdTier(disk, tier_bytes, run=commit_in_virtual_time)
    store = BlockStore(4 * tier_bytes, tier, derivation(SEAL))
    tier.preload((Place(1, key(number)), Derived(LEAST_BYTES)) for number in range(20_000))
    large = [Place(2, key(number)) for number in range(6)]
    for where in large:
        store.put(where, Block(WRITE, bytes(tier_bytes // 2), bytes(wire.TAG_BYTES)), durable=False)
    store.flush()
    disk.power_cut(keep=False)
    assert [name for name, _ in disk.scan()] == sorted(where.name() for where in large[-2:])


@in_virtual_time
async def test_what_is_read_ahead_is_counted_once_as_used_or_as_unused() -> None:
    store = make_store(SimulatedDisk(), dram=4, ssd=4)
    one = place(key(1))

    async def read_ahead() -> None:
        assert store.demote(one)
        await store.load(one, ahead=True)

    def counts() -> tuple[int, int, int]:
        return store.stats.read_ahead, store.stats.read_ahead_hits, store.stats.read_ahead_unused

    put(store, 1)
    await read_ahead()
    assert [read(store, 1) for _ in range(2)] == [content(1)] * 2
    assert counts() == (1, 1, 0)
    await read_ahead()
    assert counts() == (2, 1, 0)
    store.demote(one)
    store.read_from_ssd(one)
    store.demote(one)
    assert counts() == (2, 1, 1)
    await store.load(one, ahead=True)
    store.drop(one)
    put(store, 1)
    store.demote(one)
    assert counts() == (3, 1, 1)


def delete(store: BlockStore, number: int, write: int) -> None:
    proof = SEAL.proof(key(number), FRAGMENTS, write, content(number)[: wire.VALUE_BYTES])
    assert store.delete(Tombstone(place(key(number)), write, proof))


@pytest.mark.parametrize("before", range(FRAGMENTS))
def test_a_put_that_another_write_answered_does_not_come_back_when_that_is_deleted(before: int) -> None:
    """The network repeats it, or held some of it back. The deletion knows the other write alone."""
    store = make_store()
    for message in puts(1, write=2)[:before]:
        store.put_fragment(message)
    put(store, 1, write=1)
    assert store.put_fragment(puts(1, write=2)[before]) == (Kept.HELD, 1, 0)
    delete(store, 1, write=1)
    assert put(store, 1, write=2) == [Kept.REFUSED] * FRAGMENTS
    assert store.put_fragment(puts(1, write=2)[0]).reason == wire.REFUSED_DELETED
    assert read(store, 1) is None
    assert put(store, 1, write=3)[-1] is Kept.HELD


def test_a_put_that_another_write_answered_is_kept_where_that_one_left() -> None:
    store = make_store(dram=1)
    put(store, 1, write=1)
    assert put(store, 1, write=2)[-1] is Kept.HELD
    put(store, 2)
    assert read(store, 1) is None
    assert put(store, 1, write=2)[-1] is Kept.HELD
    assert store.find(place(key(1))) == (BLOCK_BYTES, 2)


def test_few_puts_that_other_writes_answered_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hostlib.storage.store.MAX_SUPERSEDED", 1)
    store = make_store()
    for number in (1, 2):
        put(store, number, write=1)
        put(store, number, write=2)
        delete(store, number, write=1)
    assert [put(store, number, write=2)[-1] for number in (1, 2)] == [Kept.HELD, Kept.REFUSED]


@in_virtual_time
async def test_of_one_block_few_lifetimes_are_listed_and_those_the_newest() -> None:
    store = make_store()
    put(store, 1)
    for number in range(MAX_OF_BLOCK + 3):
        stone = Tombstone(place(key(1)), WRITE, bytes([number]) * 16)
        store.lifetimes.begin(Lifetime(1e12, stone, FRAGMENTS), lambda error: None)
    store.lifetimes.begin(
        Lifetime(1e12, Tombstone(place(key(1)), WRITE + 1, bytes(16)), 1), lambda error: None
    )
    store.lifetimes.begin(Lifetime(1e12, Tombstone(place(key(2)), WRITE, bytes(16)), 1), lambda error: None)
    listed = [one.stone.proof[0] for one in store.lifetimes_of_held()]
    assert listed == list(reversed(range(3, MAX_OF_BLOCK + 3)))


@in_virtual_time
async def test_all_places_are_those_in_memory_and_on_the_disk() -> None:
    """Peers copy by them."""
    store = make_store(SimulatedDisk(), dram=1, ssd=4)
    for number in range(3):
        put(store, number)
    assert store.on_ssd_only(place(key(0)))
    assert sorted(store.places()) == sorted(place(key(number)) for number in range(3))
    assert store.tenants() == {TENANT}
    in_memory = make_store()
    put(in_memory, 1)
    assert in_memory.places() == [place(key(1))]


def test_places_are_listed_soon() -> None:
    """In the order of their use, a million took 1.2 s."""
    store = BlockStore(1 << 30, None, derivation(SEAL))
    block, source = Block(WRITE, b"x", bytes(wire.TAG_BYTES)), Random(1)
    for _ in range(200_000):
        store.put(Place(1, source.randbytes(16)), block, durable=False)
    plain = dict.fromkeys(store.places())

    def least_s(listed: Callable[[], list[Place]]) -> float:
        took_s = []
        for _ in range(5):
            began_s = thread_time()
            assert len(listed()) == 200_000
            took_s.append(thread_time() - began_s)
        return min(took_s)

    assert least_s(store.places) < 2.5 * least_s(lambda: list(plain))


def test_memory_holds_no_more_than_its_bytes_but_for_one_block() -> None:
    store = make_store(dram=1)
    for number in range(3):
        put(store, number)
        assert store.sizes()["dram"] == 1
    assert (store.stats.lost_from_dram, read(store, 2)) == (2, content(2))
    put(store, 3, bytes(3 * BLOCK_BYTES))
    assert (store.sizes()["dram"], read(store, 3)) == (1, bytes(3 * BLOCK_BYTES))


def test_short_blocks_take_more_of_memory_and_share_than_their_bytes() -> None:
    """A block of one byte takes hundreds in tables."""
    most = 20
    store = BlockStore(most * LEAST_BYTES, None, derivation(SEAL))
    for number in range(3 * most):
        put(store, number, b"x")
    assert store.sizes()["dram"] == most
    store = BlockStore(1 << 20, None, derivation(SEAL), StoreOptions(tenant_bytes=most * LEAST_BYTES))
    kept = [put(store, number, b"x") for number in range(3 * most)]
    assert kept == [[Kept.HELD]] * most + [[Kept.REFUSED]] * 2 * most
    for number in range(5):
        store.drop(place(key(number)))
    kept = [put(store, number, b"x") for number in range(3 * most, 4 * most)]
    assert kept == [[Kept.HELD]] * 5 + [[Kept.REFUSED]] * (most - 5)


def test_short_blocks_that_are_retained_take_no_more_memory_than_they_may() -> None:
    most = 20
    store = BlockStore(most * LEAST_BYTES, None, derivation(SEAL), StoreOptions(retained_share=0.5))
    for number in range(most):
        put(store, number, b"x")
    assert sum(store.retain(place(key(number))) for number in range(most)) == most / 4  # half for one tenant


@in_virtual_time
async def test_short_blocks_take_more_of_a_disk_than_their_bytes() -> None:
    most, disk = 20, SimulatedDisk()
    tier = SsdTier(disk, most * LEAST_BYTES, run=commit_in_virtual_time)
    store = BlockStore(1, tier, derivation(SEAL))
    for number in range(3 * most):
        put(store, number, b"x")
    await asyncio.sleep(1)
    assert store.sizes()["ssd"] == most
    assert len(list(disk.scan())) == most
    share = StoreOptions(tenant_bytes=(most + 1) * LEAST_BYTES)
    again = BlockStore(1, SsdTier(disk, 1 << 20, run=commit_in_virtual_time), derivation(SEAL), share)
    kept = [put(again, number, b"x")[0] for number in range(100, 103)]
    assert kept == [Kept.HELD, Kept.REFUSED, Kept.REFUSED]


@in_virtual_time
async def test_short_blocks_that_wait_for_a_disk_are_bounded() -> None:
    most = 20
    tier = SsdTier(SimulatedDisk(), 1 << 20, run=commit_in_virtual_time)
    options = StoreOptions(max_waiting_bytes=most * LEAST_BYTES)
    store = BlockStore(1 << 20, tier, derivation(SEAL), options)
    kept = [store.put_fragment(puts(number, b"x", durable=True)[0]).kept for number in range(2 * most)]
    assert most / 2 < kept.count(Kept.COMMITTING) <= most + 1


@in_virtual_time
async def test_a_large_block_takes_the_place_of_many_in_pieces() -> None:
    """Others waited for up to 4 s."""
    tier = SsdTier(SimulatedDisk(), 4_000 * LEAST_BYTES, run=commit_in_virtual_time)
    store = BlockStore(4_000 * LEAST_BYTES, tier, derivation(SEAL))
    tier.preload((Place(1, key(number)), Derived(1)) for number in range(4_000, 8_000))
    for number in range(4_000):
        store.put(Place(1, key(number)), Block(WRITE, b"x", bytes(wire.TAG_BYTES)), durable=False)
    store.put(Place(1, key(9_999)), Block(WRITE, bytes(4_000 * LEAST_BYTES), b""), durable=False)
    assert store.sizes()["dram"] == 4_001 - LEAVE_AT_ONCE
    await asyncio.sleep(0)
    assert store.sizes()["dram"] == 4_001 - 2 * LEAVE_AT_ONCE
    assert tier.dropped == 2 * LEAVE_AT_ONCE
    await asyncio.sleep(0.001)
    assert store.sizes()["dram"] == 1
    assert sorted(tier) == sorted(Place(1, key(number)) for number in range(4_000))


@in_virtual_time
async def test_a_large_block_takes_the_place_of_many_retained_ones_in_a_moment() -> None:
    """Each of them was looked at for each that left: others waited for a minute."""
    store = BlockStore(16_000 * LEAST_BYTES, None, derivation(SEAL))
    for tenant in (1, 2):
        for number in range(8_000):
            where = Place(tenant, key(number))
            store.put(where, Block(WRITE, b"x", bytes(wire.TAG_BYTES)), durable=False)
            store.retain(where)
    assert store.stats.retained == 8_000
    began_s = thread_time()
    store.put(Place(3, key(0)), Block(WRITE, bytes(15_999 * LEAST_BYTES), b""), durable=False)
    await asyncio.sleep(0.001)
    assert thread_time() - began_s < 3
    assert len(store.places()) == 2
