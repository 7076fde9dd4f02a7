"""Tombstones on a disk: there after a power cut, gone when they are old, and none from what is damaged."""

from __future__ import annotations

import asyncio
from time import thread_time
from typing import cast

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hostlib.protocol import tombstones
from hostlib.protocol.block import Block, Place
from hostlib.protocol.catalog import FIRST, LAST
from hostlib.protocol.content import derivation
from hostlib.protocol.errors import DiskError, MalformedError
from hostlib.protocol.tombstones import (
    ALIVE,
    MAX_FORGOTTEN,
    MAX_FORGOTTEN_OF_ALL,
    MAX_OF_BLOCK,
    MAX_OF_TENANT,
    NOTE,
    TENANTS_AT_ONCE,
    TOMBSTONE_S,
    WHOLE_TENANT,
    AgedStone,
    Tombstone,
    Tombstones,
    encode_note,
    make_stones_page,
    read_stones_page,
)
from hostlib.storage import missed_deletions
from hostlib.storage.catch_up import CatchUp
from hostlib.storage.graveyard import ALIVE_EVERY_S, Graveyard
from hostlib.storage.missed_deletions import MissedDeletions
from hostlib.storage.simulated_disk import SimulatedDisk
from hostlib.storage.ssd import SsdTier
from hostlib.storage.store import BlockStore
from hostlib.storage.unsure import UnsureBlocks
from tests.asynchronous import in_virtual_time
from tests.hostlib.network import commit_in_virtual_time
from tests.hostlib.sealed import SEAL, WRITE


class Clock:
    now_s = 1_000_000.0

    def __call__(self) -> float:
        return self.now_s


def stone(number: int, tenant: int = 7, write: int = 5) -> Tombstone:
    return Tombstone(Place(tenant, number.to_bytes(16, "big")), write, number.to_bytes(16, "little"))


def open_yard(disk: SimulatedDisk, clock: Clock) -> Graveyard:
    return Graveyard(Tombstones(clock), SsdTier(disk, 1 << 20, run=commit_in_virtual_time))


@in_virtual_time
async def test_what_was_said_to_be_safe_is_there_after_a_power_cut() -> None:
    disk, clock = SimulatedDisk(), Clock()
    yard = open_yard(disk, clock)
    safe: list[DiskError | None] = []
    yard.bury(stone(1), 10.0)
    yard.when_safe(stone(1), safe.append)
    assert not safe
    await asyncio.sleep(1)
    assert safe == [None]
    disk.power_cut(keep=False)
    again = open_yard(disk, clock)
    assert stone(1) in again.stones
    assert again.last_there_s == clock.now_s - 10
    clock.now_s += TOMBSTONE_S - 10.5
    again.stones.expire()
    assert stone(1) in again.stones
    clock.now_s += 1
    again.stones.expire()
    await asyncio.sleep(1)
    assert not list(disk.scan())


@pytest.mark.parametrize("name", [stone(1).name(), NOTE + b"of another program".ljust(50), NOTE + b"alive"])
@in_virtual_time
async def test_what_is_damaged_is_no_tombstone(name: bytes) -> None:
    disk = SimulatedDisk()
    disk.write([(name, b"damaged")])
    yard = open_yard(disk, Clock())
    assert not len(yard.stones)
    assert yard.last_there_s == 0
    await asyncio.sleep(1)
    assert [left for left, _ in disk.scan() if left != ALIVE] == []


@in_virtual_time
async def test_what_newer_ones_leave_no_room_for_takes_none_on_the_disk_either() -> None:
    disk = SimulatedDisk()
    yard = open_yard(disk, Clock())
    for write in range(1, MAX_OF_BLOCK + 1):
        yard.bury(stone(1, write=write), 0.0)
    older = stone(1, write=MAX_OF_BLOCK + 1)
    yard.bury(older, 100.0)
    assert older not in yard.stones
    await asyncio.sleep(1)
    assert older.name() not in [name for name, _ in disk.scan()]


@in_virtual_time
async def test_the_disk_says_when_the_node_was_there() -> None:
    disk, clock = SimulatedDisk(), Clock()
    yard = open_yard(disk, clock)
    for _ in range(1000):
        yard.is_there()
        clock.now_s += 1
    await asyncio.sleep(1)
    disk.power_cut(keep=False)
    assert clock.now_s - open_yard(disk, clock).last_there_s <= 600
    assert disk.syncs <= 2


def test_tombstones_are_bounded_and_say_since_when_they_are_complete() -> None:
    clock = Clock()
    stones = Tombstones(clock)
    for number in range(MAX_OF_TENANT + 3):
        stones.add(stone(number), clock.now_s)
        clock.now_s += 0.5
    assert len(stones) == MAX_OF_TENANT
    assert stones.complete_since_s(Place(7, WHOLE_TENANT)) == 1_000_000.0 + 2 * 0.5
    assert stones.complete_since_s(Place(8, WHOLE_TENANT)) == clock.now_s - TOMBSTONE_S


def test_tombstones_of_one_block_are_bounded() -> None:
    clock = Clock()
    stones = Tombstones(clock)
    for write in range(1, MAX_OF_BLOCK + 3):
        stones.add(stone(1, write=write), clock.now_s)
    assert len(stones.of(stone(1).place)) == MAX_OF_BLOCK


def test_a_block_that_is_deleted_too_often_says_nothing_of_others() -> None:
    clock = Clock()
    stones, often, other = Tombstones(clock), stone(1).place, stone(2).place
    for write in range(1, MAX_OF_BLOCK + 3):
        stones.add(stone(1, write=write), clock.now_s)
        clock.now_s += 10
    assert stones.complete_since_s(often) == 1_000_000.0 + 10
    assert stones.complete_since_s(other) == clock.now_s - TOMBSTONE_S
    marks = [place for place, entry in stones.records() if not any(entry[18:26])]
    assert marks == [often]
    clock.now_s += TOMBSTONE_S
    stones.expire()
    assert stones.complete_since_s(often) == clock.now_s - TOMBSTONE_S
    assert [place.key for place, _ in stones.records()] == [WHOLE_TENANT]


def test_of_too_many_blocks_that_are_deleted_too_often_the_first_counts_as_its_tenant(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tombstones, "MAX_FORGOTTEN", 2)
    clock = Clock()
    stones = Tombstones(clock)
    for number in range(3):
        stones.incomplete(stone(number).place, clock.now_s + number)
    stones.incomplete(stone(9, tenant=8).place, clock.now_s)
    since_s = [stones.complete_since_s(stone(number).place) - clock.now_s for number in range(4)]
    assert since_s == [0, 1, 2, 0]
    assert stones.complete_since_s(stone(1, tenant=8).place) == clock.now_s - TOMBSTONE_S


def test_a_restart_forgets_no_block_that_was_deleted_too_often() -> None:
    disk, clock = SimulatedDisk(), Clock()
    known = [stone(1, write=write) for write in range(1, MAX_OF_BLOCK + 1)]
    disk.write([(one.name(), encode_note(one, clock.now_s + one.write, "")) for one in known])
    clock.now_s += 100
    assert open_yard(disk, clock).stones.complete_since_s(stone(1).place) == 1_000_000.0 + 1


@pytest.mark.parametrize("same_block", [True, False])
@pytest.mark.parametrize("sources", [1, 2, 3])
def test_what_others_tell_of_older_deletions_displaces_no_newer_one(
    monkeypatch: pytest.MonkeyPatch, sources: int, same_block: bool
) -> None:
    if not same_block:
        monkeypatch.setattr(tombstones, "MAX_OF_TENANT", MAX_OF_BLOCK)
    clock = Clock()
    stones = Tombstones(clock)
    made = [stone(0 if same_block else number, write=number + 1) for number in range(2 * MAX_OF_BLOCK)]
    for _ in range(3):
        for number, one in enumerate(made):
            stones.add(one, clock() - 100 + number, f"10.0.0.{number % sources}")
        assert made[-1] in stones
        for number, one in enumerate(made[:-1]):
            stones.add(one, clock() - 100 + number, f"10.0.0.{number % sources}")
            assert made[-1] in stones


def test_of_all_tombstones_the_tenant_with_most_loses_its_oldest(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many tenants there are: the 65th had another's forgotten, all of them."""
    monkeypatch.setattr(tombstones, "MAX_STONES", 1000)
    clock = Clock()
    stones = Tombstones(clock)
    for number in range(10):
        stones.add(stone(number), clock.now_s)
    for tenant in range(100, 100 + 990):
        stones.add(stone(1, tenant), clock.now_s)
    assert len(stones) == 1000
    clock.now_s += 5
    stones.add(stone(1, 2000), clock.now_s)
    assert len(stones) == 1000
    assert [number for number in range(10) if stone(number) not in stones] == [0]
    assert stones.complete_since_s(Place(7, WHOLE_TENANT)) == clock.now_s - 5
    assert stones.complete_since_s(Place(100, WHOLE_TENANT)) == clock.now_s - TOMBSTONE_S


def test_who_makes_up_many_displaces_none_of_anothers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tombstones, "MAX_OF_TENANT", 20)
    clock = Clock()
    stones = Tombstones(clock)
    genuine = stone(1)
    stones.add(genuine, clock.now_s, "10.0.0.1")
    for write in range(100, 150):
        stones.add(stone(1, write=write), clock.now_s, "10.0.0.66")
    assert len(stones.of(genuine.place)) == MAX_OF_BLOCK
    assert genuine in stones
    for number in range(2, 100):
        stones.add(stone(number), clock.now_s, "10.0.0.66")
    assert len(stones) == 20
    assert genuine in stones
    clock.now_s += TOMBSTONE_S
    stones.expire()
    assert len(stones) == 0


def test_hosts_that_a_storage_node_makes_up_are_not_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """The host with most is looked for with each deletion beyond the bound: 2 to 76 ms for 16,384."""
    monkeypatch.setattr(tombstones, "MAX_OF_TENANT", 20)
    monkeypatch.setattr(tombstones, "MAX_SOURCES", 3)
    clock = Clock()
    stones = Tombstones(clock)
    for number in range(100):
        stones.add(stone(number), clock.now_s, f"10.0.0.{number}")
    assert len(stones) == 20
    told_apart = {stones.source_of(stone(number)) for number in range(100) if stone(number) in stones}
    assert told_apart == {"", "10.0.0.0", "10.0.0.1", "10.0.0.2"}


def test_tenants_that_a_storage_node_makes_up_cost_no_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All were looked at with each deletion beyond the bound, 13 ms, and each second, 0.2 to 0.5 s."""
    tenants = 20_000
    monkeypatch.setattr(tombstones, "MAX_STONES", tenants)
    clock = Clock()
    stones = Tombstones(clock)
    for tenant in range(tenants):
        stones.add(stone(1, tenant), clock.now_s)
    began_s = thread_time()
    for number in range(500):
        stones.add(stone(number, tenants), clock.now_s)
    assert thread_time() - began_s < 0.3
    assert len(stones) == tenants
    clock.now_s += TOMBSTONE_S
    stones.expire()
    assert len(stones) >= tenants - 500 - TENANTS_AT_ONCE
    for _ in range(tenants // TENANTS_AT_ONCE):
        stones.expire()
    assert not len(stones)


@pytest.mark.parametrize("tenants", [1, 3, 30])
def test_blocks_that_a_storage_node_says_were_deleted_too_often_are_bounded(
    monkeypatch: pytest.MonkeyPatch, tenants: int
) -> None:
    """A returning node kept what a peer said in eleven minutes: 100 bytes for each of millions."""
    monkeypatch.setattr(tombstones, "MAX_FORGOTTEN", 20)
    monkeypatch.setattr(tombstones, "MAX_FORGOTTEN_OF_ALL", 40)
    clock = Clock()
    stones = Tombstones(clock)
    for number in range(40 * tenants):
        stones.incomplete(stone(number, number % tenants).place, clock.now_s)
    assert len(list(stones.records())) <= 20 + 40 + 2 * tenants
    assert all(stones.complete_since_s(stone(0, tenant).place) == clock.now_s for tenant in range(tenants))


def test_where_tenants_are_many_a_tenant_keeps_fewer_of_its_blocks_that_were_deleted_too_often() -> None:
    """Its earlier ones were given up by a recursion that was too deep for Python."""
    clock = Clock()
    stones = Tombstones(clock)
    places = [stone(number, 1).place for number in range(MAX_FORGOTTEN + 1)]
    for number, place in enumerate(places[:-1]):
        stones.incomplete(place, clock.now_s - number)
    for tenant in range(2, 3000):
        stones.incomplete(Place(tenant, WHOLE_TENANT), clock.now_s)
    stones.incomplete(places[-1], clock.now_s - 2000)
    assert sum(place.tenant == 1 for place, _ in stones.records()) == 1 + MAX_FORGOTTEN_OF_ALL // 2999
    assert stones.complete_since_s(places[0]) == clock.now_s


@in_virtual_time
async def test_where_too_many_blocks_may_have_been_deleted_all_of_their_tenants_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They are no more than a storage node can remember, whatever a peer says."""
    monkeypatch.setattr(missed_deletions, "MAX_MISSED", 20)
    clock = Clock()
    store = BlockStore(1 << 20, None, derivation(SEAL), tombstones=Tombstones(clock))
    held = [stone(100, tenant).place for tenant in (7, 8, 9)]
    for place in held:
        store.put(place, Block(WRITE, b"x", bytes(16)), durable=False)
    unsure = UnsureBlocks(store, cast(CatchUp, None), lambda place: [])
    missed = MissedDeletions(store, unsure, lambda: False, lambda: None)
    missed.was_away(holds_old_blocks=True)
    clock.now_s += 100
    for number in range(21):
        missed.bury(AgedStone(Tombstone(stone(number, 7 + number % 2).place, 0, bytes(16)), 0))
    missed.all_was_said()
    missed.listed()
    assert [place in unsure for place in held] == [True, True, False]
    missed.close()


stones_of = st.lists(
    st.builds(stone, st.integers(0, 30), st.integers(1, 3), st.integers(1, MAX_OF_BLOCK)), max_size=80
)


@given(made=stones_of)
@example(made=[stone(block, write=write) for block in range(6) for write in range(1, MAX_OF_BLOCK + 1)])
def test_pages_give_all_of_them(made: list[Tombstone]) -> None:
    clock = Clock()
    stones = Tombstones(clock)
    for one in made:
        stones.add(one, clock.now_s - 3)
    entries, start, read = sorted(stones.records()), FIRST, set[Tombstone]()
    while start != LAST:
        before, (start, page) = start, read_stones_page(make_stones_page(entries, start))
        assert start > before
        assert all(aged == AgedStone(aged.stone, 3) for aged in page)
        read |= {aged.stone for aged in page}
    assert read == set(made)


@given(st.binary(max_size=512))
def test_a_hostile_page_is_no_page_or_one_of_tombstones(value: bytes) -> None:
    try:
        _, stones = read_stones_page(value)
    except MalformedError:
        return
    assert all(len(one.stone.proof) == 16 for one in stones)


@in_virtual_time
async def test_a_node_that_falls_again_while_it_is_in_doubt_was_there_when_it_was_before() -> None:
    disk, clock = SimulatedDisk(), Clock()
    yard = open_yard(disk, clock)
    there_s = clock.now_s - 5000
    yard.doubts(there_s)
    clock.now_s += 2 * ALIVE_EVERY_S
    yard.is_there()
    await asyncio.sleep(1)
    assert open_yard(disk, clock).last_there_s == there_s
    yard.knows()
    await asyncio.sleep(1)
    assert open_yard(disk, clock).last_there_s == clock.now_s
