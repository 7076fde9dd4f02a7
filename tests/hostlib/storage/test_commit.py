"""Records that are written in groups: how long the next one waits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from hostlib.protocol.block import Block
from hostlib.protocol.errors import DiskError, DiskFullError
from hostlib.protocol.tombstones import ALIVE, Tombstone
from hostlib.storage.commit import CommitOptions, GroupCommit
from hostlib.storage.simulated_disk import SimulatedDisk
from tests.asynchronous import in_virtual_time
from tests.hostlib.sealed import place
from tests.hostlib.world import key


async def slowly(work: Callable[[], None]) -> None:
    await asyncio.sleep(1)
    work()


def block_of(write: int, size: int = 100) -> Block:
    return Block(write, bytes(size), bytes(16))


@in_virtual_time
async def test_who_waits_for_a_record_hears_of_the_one_that_takes_its_place() -> None:
    disk = SimulatedDisk()
    commit = GroupCommit(disk, run=slowly)
    heard: list[DiskError | None] = []
    for record in (b"first", b"second"):
        commit.note(ALIVE, record)
        assert commit.when_safe(ALIVE, heard.append)
    assert commit.waiting_bytes == len(b"second")
    await asyncio.sleep(2)
    assert heard == [None, None]
    assert disk.synced(ALIVE) == b"second"
    assert commit.waiting_bytes == commit.waiting_records == 0


@in_virtual_time
async def test_what_was_deleted_is_gone_when_a_note_is_safe_though_a_later_group_writes_it_anew() -> None:
    """Else a power cut in between brings back what was deleted."""
    disk, one = SimulatedDisk(), place(key(1))
    commit = GroupCommit(disk, CommitOptions(max_batch_bytes=1000), run=slowly)
    commit.put(one, 1, block_of(1))
    await asyncio.sleep(0.5)  # it is being written
    note = Tombstone(one, 1, bytes(16)).name()
    assert commit.waiting_records == 1
    commit.delete(one.name())
    assert commit.waiting_records == 2
    commit.note(note, b"deleted")
    commit.put(one, 2, block_of(2, 1000))
    await asyncio.sleep(2)
    assert disk.synced(note) == b"deleted"
    assert disk.synced(one.name()) is None
    await asyncio.sleep(1)
    assert disk.synced(one.name()) is not None


@in_virtual_time
async def test_a_clean_stop_does_not_write_what_was_deleted_while_it_was_written() -> None:
    disk, deleted, kept = SimulatedDisk(), place(key(1)), place(key(2))
    commit = GroupCommit(disk, run=slowly)
    for one in (deleted, kept):
        commit.put(one, 1, block_of(1))
    await asyncio.sleep(0.5)
    commit.delete(deleted.name())
    commit.flush()
    assert disk.synced(deleted.name()) is None
    assert disk.synced(kept.name()) is not None


@in_virtual_time
async def test_how_long_a_record_waits_follows_the_rate_of_the_last_groups() -> None:
    took_s = 2.0

    async def slow(work: Callable[[], None]) -> None:
        await asyncio.sleep(took_s)
        work()

    commit = GroupCommit(SimulatedDisk(), run=slow)

    async def put(number: int) -> int:
        """The size of a record, once it is written."""
        commit.put(place(key(number)), 1, Block(1, bytes(100), bytes(16)))
        size = commit.waiting_bytes
        while commit.waiting_bytes:
            await asyncio.sleep(0.1)
        return size

    async def wait_s(number: int) -> float:
        """How long one more record of that size is said to wait."""
        commit.put(place(key(number)), 1, Block(1, bytes(100), bytes(16)))
        waits_s = commit.wait_s()
        while commit.waiting_bytes:
            await asyncio.sleep(0.1)
        return waits_s

    size = await put(1)
    assert await wait_s(2) == pytest.approx(2.0)
    took_s = 1.0
    await put(3)
    rate = (7 * size / 2.0 + size / 1.0) / 8
    assert await wait_s(4) == pytest.approx(size / rate)


@in_virtual_time
async def test_what_comes_within_a_moment_is_written_together() -> None:
    disk = SimulatedDisk()
    commit = GroupCommit(disk, CommitOptions(gather_s=0.1), run=slowly)
    for number in range(5):
        commit.put(place(key(number)), 1, block_of(1))
        await asyncio.sleep(0.01)
    await asyncio.sleep(2)
    assert commit.commits == 1
    assert len(list(disk.scan())) == 5


@in_virtual_time
async def test_what_is_deleted_is_gone_though_nothing_is_written_any_more() -> None:
    disk, one = SimulatedDisk(), place(key(1))
    commit = GroupCommit(disk, run=slowly)
    commit.put(one, 1, block_of(1))
    await asyncio.sleep(2)
    commit.delete(one.name())
    await asyncio.sleep(2)
    assert disk.synced(one.name()) is None


@in_virtual_time
async def test_a_clean_stop_deletes_what_was_being_deleted() -> None:
    """Else a block whose tombstone is written comes back."""
    disk, one = SimulatedDisk(), place(key(1))
    commit = GroupCommit(disk, run=slowly)
    commit.put(one, 1, block_of(1))
    await asyncio.sleep(2)
    commit.delete(one.name())
    await asyncio.sleep(0.5)  # it is being deleted
    commit.flush()
    assert disk.synced(one.name()) is None


@in_virtual_time
async def test_what_was_deleted_is_gone_though_the_disk_does_not_take_what_is_written_with_it() -> None:
    disk, old, new = SimulatedDisk(), place(key(1)), place(key(2))
    commit = GroupCommit(disk, run=slowly)
    commit.put(old, 1, block_of(1))
    await asyncio.sleep(2)
    disk.capacity_bytes = 0
    heard: list[DiskError | None] = []
    commit.delete(old.name())
    commit.put(new, 1, block_of(1, 10_000))
    assert commit.when_safe(new.name(), heard.append)
    await asyncio.sleep(4)
    assert [type(one) for one in heard] == [DiskFullError]
    assert [name for name, _ in disk.scan()] == []


@in_virtual_time
async def test_what_was_deleted_while_the_disk_gave_errors_is_gone_when_it_does_not() -> None:
    disk, old, new = SimulatedDisk(), place(key(1)), place(key(2))
    commit = GroupCommit(disk, run=slowly)
    commit.put(old, 1, block_of(1))
    await asyncio.sleep(2)
    disk.failing = True
    commit.delete(old.name())
    await asyncio.sleep(5)
    disk.failing = False
    commit.put(new, 1, block_of(1))
    await asyncio.sleep(5)
    assert [name for name, _ in disk.scan()] == [new.name()]
