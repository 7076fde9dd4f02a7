"""The SSD tier: what it keeps, over restarts, power cuts and damage."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from functools import partial
from hashlib import blake2b
from pathlib import Path
from time import thread_time
from types import SimpleNamespace
from typing import NoReturn

import lmdb
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from experiments.simulate_faults.virtual_time import run_virtual
from hostlib.protocol import wire
from hostlib.protocol.block import LEAST_BYTES, NAME_BYTES, Block, Derived, Place, encode_record
from hostlib.protocol.content import block_content, derivation, sealed_block
from hostlib.protocol.errors import ConfigError, DiskError, DiskFullError, UnreadableError
from hostlib.protocol.tombstones import ALIVE, NOTE
from hostlib.storage.disk import KEY_LENGTHS, Batch, Disk, LmdbDisk
from hostlib.storage.simulated_disk import SimulatedDisk
from hostlib.storage.ssd import LEAVE_AT_ONCE, SsdTier
from hostlib.storage.store import BlockStore
from tests.asynchronous import in_real_time, in_virtual_time
from tests.hostlib.network import commit_in_virtual_time
from tests.hostlib.sealed import SEAL, WRITE, place

BLOCK_BYTES = 1024 + 10
MAP_BYTES = 1 << 20


def at(number: int) -> Place:
    return place(blake2b(number.to_bytes(4, "big"), digest_size=16).digest())


def block(number: int, length: int = BLOCK_BYTES) -> Block:
    key = at(number).key
    return sealed_block(SEAL, key, WRITE, block_content(key, length))


def make_tier(disk: Disk, blocks: int = 3) -> SsdTier:
    return SsdTier(disk, blocks * BLOCK_BYTES, run=commit_in_virtual_time)


async def keep(tier: SsdTier, *numbers: int) -> list[DiskError | None]:
    """Keep blocks one after the other; what is said of each in the end."""
    said: dict[int, DiskError | None] = {}

    def told(number: int) -> Callable[[DiskError | None], None]:
        return lambda error: said.__setitem__(number, error)

    for number in numbers:
        tier.keep(at(number), block(number), told(number))
    await asyncio.sleep(0.1)
    assert set(said) == set(numbers)
    return [said[number] for number in numbers]


@in_virtual_time
async def test_ssd_is_bounded_and_the_oldest_goes() -> None:
    tier = make_tier(SimulatedDisk())
    for number in range(5):
        await keep(tier, number)
    await keep(tier, 3)
    await keep(tier, 5)
    assert [at(n) in tier for n in range(6)] == [False, False, False, True, True, True]
    assert (len(tier), tier.dropped) == (3, 3)


@in_virtual_time
async def test_many_blocks_share_one_commit() -> None:
    disk = SimulatedDisk()
    tier = make_tier(disk, 100)
    assert await keep(tier, *range(50)) == [None] * 50
    assert tier.commits == disk.syncs == 1


@in_virtual_time
async def test_ssd_survives_a_restart_whatever_the_lengths_of_its_blocks() -> None:
    disk = SimulatedDisk()
    tier = make_tier(disk)
    await keep(tier, 1)
    tier.keep(at(2), block(2, 100))
    tier.keep(at(3), Derived(77))
    await asyncio.sleep(0.1)
    again = make_tier(disk)
    assert again.get(at(1)) == block(1)
    assert again.get(at(2)) == block(2, 100)
    assert again.get(at(3)) == Derived(77)
    assert [again.length(at(n)) for n in (1, 2, 3)] == [BLOCK_BYTES, 100, 77]


class ForgetfulDisk(SimulatedDisk):
    """Its sync does nothing."""

    def sync(self) -> None:
        """As if fsync were taken out."""


def lost_after_a_power_cut(disk: SimulatedDisk, steps: list[int]) -> int:
    """Blocks that were said to be safe and are gone; `steps`: blocks kept in each millisecond."""

    async def main() -> int:
        safe: set[int] = set()

        def remember(which: int, error: DiskError | None) -> None:
            if error is None:
                safe.add(which)

        tier = make_tier(disk, 1000)
        number = 0
        for blocks in steps:
            for _ in range(blocks):
                tier.keep(at(number), block(number), partial(remember, number))
                number += 1
            await asyncio.sleep(0.001)
        disk.power_cut()
        after = make_tier(disk, 1000)
        for one in safe & {n for n in range(number) if at(n) in after}:
            assert after.get(at(one)) == block(one)
        return sum(at(one) not in after for one in safe)

    return run_virtual(main())


@given(st.lists(st.integers(0, 4), max_size=40), st.integers(0, 2**32))
def test_no_acknowledged_block_is_lost_in_a_power_cut(steps: list[int], seed: int) -> None:
    assert lost_after_a_power_cut(SimulatedDisk(seed=seed), steps) == 0


def test_without_the_sync_a_power_cut_loses_acknowledged_blocks() -> None:
    assert sum(lost_after_a_power_cut(ForgetfulDisk(seed=seed), [2] * 20) for seed in range(10)) > 0


@in_virtual_time
async def test_what_a_killed_process_had_written_and_not_synced_is_synced_at_the_next_start() -> None:
    disk = SimulatedDisk()
    disk.write([(at(0).name(), encode_record(at(0), 1, block(0)))])
    tier = make_tier(disk)
    BlockStore(1, tier, derivation(SEAL)).preload([], BLOCK_BYTES)  # as a storage node does when it starts
    assert await keep(tier, 0) == [None]
    disk.power_cut(keep=False)
    assert disk.synced(at(0).name()) is not None


@in_virtual_time
async def test_a_full_disk_is_said_and_what_was_there_stays() -> None:
    disk = SimulatedDisk()
    tier = make_tier(disk, 100)
    await keep(tier, 1)
    disk.full = True
    (error,) = await keep(tier, 2)
    assert isinstance(error, DiskFullError)
    assert at(2) not in tier
    assert tier.get(at(1)) == block(1)
    disk.full = False
    assert await keep(tier, 2) == [None]


@in_virtual_time
async def test_who_keeps_a_block_that_is_longer_than_the_tier_is_told_so() -> None:
    tier = make_tier(SimulatedDisk(), blocks=1)
    said: list[DiskError | None] = []
    tier.keep(at(1), block(1, 10 * BLOCK_BYTES), said.append)
    assert [type(one) for one in said] == [DiskFullError]
    assert at(1) not in tier


@in_virtual_time
async def test_a_disk_that_fails_acknowledges_nothing() -> None:
    disk = SimulatedDisk()
    tier = make_tier(disk, 100)
    disk.failing = True
    (error,) = await keep(tier, 1)
    assert isinstance(error, DiskError)
    assert at(1) not in tier


@pytest.mark.parametrize("how", ["unreadable", "damaged"])
@in_virtual_time
async def test_what_can_not_be_read_back_is_said_and_forgotten(how: str) -> None:
    disk = SimulatedDisk()
    tier = make_tier(disk, 100)
    await keep(tier, 1, 2)
    if how == "unreadable":
        disk.unreadable.add(at(1).name())
    else:
        disk.damage(at(1).name())
    with pytest.raises(UnreadableError):
        tier.get(at(1))
    assert tier.get(at(1)) is None
    assert tier.get(at(2)) == block(2)
    assert tier.damaged == 1


@in_virtual_time
async def test_what_is_before_a_page_that_can_not_be_read_is_kept() -> None:
    class Broken(SimulatedDisk):
        def scan(self) -> Iterator[tuple[bytes, memoryview]]:
            yield from list(super().scan())[:2]
            raise UnreadableError("simulated unreadable page")

    disk = Broken()
    disk.write([(at(n).name(), encode_record(at(n), n, block(n))) for n in range(4)])
    tier = make_tier(disk, 100)
    assert (len(tier), tier.damaged) == (2, 1)


names = st.sampled_from(KEY_LENGTHS).flatmap(lambda length: st.binary(min_size=length, max_size=length))


@given(names, st.binary(max_size=200))
@in_virtual_time
async def test_records_of_nobody_knows_what_are_not_taken(name: bytes, record: bytes) -> None:
    assume(not name.startswith(NOTE))
    disk = SimulatedDisk()
    disk.write([(name, record)])
    assert len(make_tier(disk)) == 0
    assert list(disk.scan()) == []


@given(st.integers(0, 2**32))
@in_virtual_time
async def test_any_flipped_bit_of_a_record_is_noticed(seed: int) -> None:
    disk = SimulatedDisk(seed=seed)
    await keep(make_tier(disk), 1)
    disk.damage(at(1).name())
    tier = make_tier(disk)
    if at(1) in tier:  # else it was noticed at the start
        with pytest.raises(UnreadableError):
            tier.get(at(1))


@pytest.fixture
def disks(tmp_path: Path) -> Iterator[Callable[[], LmdbDisk]]:
    opened: list[LmdbDisk] = []

    def open_disk() -> LmdbDisk:
        for disk in opened:
            disk.close()
        opened.append(LmdbDisk(tmp_path, MAP_BYTES))
        return opened[-1]

    yield open_disk
    opened[-1].close()


@in_real_time
async def test_lmdb_commits_in_a_thread_and_keeps_blocks_over_a_restart(
    disks: Callable[[], LmdbDisk],
) -> None:
    tier = SsdTier(disks(), 100 * BLOCK_BYTES)
    safe = asyncio.Event()
    tier.keep(at(1), block(1), lambda error: safe.set())
    assert tier.get(at(1)) == block(1)
    await asyncio.wait_for(safe.wait(), 60)
    again = SsdTier(disks(), 100 * BLOCK_BYTES)
    assert again.get(at(1)) == block(1)


def test_a_disk_that_was_gone_for_a_while_is_used_again(
    disks: Callable[[], LmdbDisk], monkeypatch: pytest.MonkeyPatch
) -> None:
    """LMDB does nothing any more with an environment whose meta page could not be written."""

    def fails(*_: object, **__: object) -> NoReturn:
        raise lmdb.PanicError("Input/output error")

    disk = disks()
    disk.write([(b"kept", b"1")])
    with monkeypatch.context() as gone:
        gone.setattr(lmdb, "open", fails)
        gone.setattr(disk, "_env", SimpleNamespace(begin=fails, close=disk._env.close))
        with pytest.raises(DiskError):
            disk.write([(b"lost", b"2")])
    disk.write([(b"new", b"3")])
    assert [disk.read(name, bytes) for name in (b"kept", b"lost", b"new")] == [b"1", None, b"3"]


@in_real_time
async def test_a_commit_to_lmdb_is_synced(disks: Callable[[], LmdbDisk]) -> None:
    """Each batch is followed by a sync before anyone is told: what LMDB does with it is LMDB's."""
    calls: list[str] = []

    class Watched(LmdbDisk):
        def write(self, batch: Batch) -> None:
            calls.append("write")
            super().write(batch)

        def sync(self) -> None:
            calls.append("sync")
            super().sync()

    disk = disks()
    disk.__class__ = Watched
    tier = SsdTier(disk, 100 * BLOCK_BYTES)
    safe = asyncio.Event()

    def told(error: DiskError | None) -> None:
        calls.append("told")
        safe.set()

    tier.keep(at(1), block(1), told)
    await asyncio.wait_for(safe.wait(), 60)
    assert calls == ["write", "sync", "told"]


def test_a_full_lmdb_refuses_and_goes_on(tmp_path: Path) -> None:
    disk = LmdbDisk(tmp_path, 0)
    record = bytes(8 << 20)
    names = [at(number).name() for number in range(20)]

    def fill() -> None:
        for name in names:
            disk.write([(name, record)])

    with pytest.raises(DiskFullError):
        fill()
    assert disk.read(names[0], bytes) == record
    disk.write([(names[0], None)])
    disk.close()


def test_a_torn_file_is_put_aside(tmp_path: Path) -> None:
    (tmp_path / "data.mdb").write_bytes(b"torn" * 5000)
    disk = LmdbDisk(tmp_path, MAP_BYTES)
    assert disk.was_damaged
    assert list(disk.scan()) == []
    assert (tmp_path / "data.mdb.damaged").read_bytes().startswith(b"torn")
    disk.close()


def test_a_directory_that_cannot_be_used_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ConfigError, match=r"SSD directory .*file"):
        LmdbDisk(tmp_path / "file", MAP_BYTES)


def test_a_directory_has_one_storage_node_at_a_time(tmp_path: Path) -> None:
    first = LmdbDisk(tmp_path, MAP_BYTES)
    with pytest.raises(ConfigError, match="another storage node uses it"):
        LmdbDisk(tmp_path, MAP_BYTES)
    first.write([(b"n" * NAME_BYTES, b"kept")])
    first.close()
    second = LmdbDisk(tmp_path, MAP_BYTES)
    assert second.read(b"n" * NAME_BYTES, bytes) == b"kept"
    second.close()
    second.close()


def test_blocks_held_from_the_start_outlast_a_power_cut() -> None:
    disk = SimulatedDisk()
    make_tier(disk, 4).preload((at(number), Derived(BLOCK_BYTES)) for number in range(3))
    assert [disk.synced(at(number).name()) is not None for number in range(4)] == [True, True, True, False]


@in_real_time
async def test_a_closed_tier_reads_nothing_any_more() -> None:
    """Its thread has ended before the disk is closed that it reads from."""
    tier = SsdTier(SimulatedDisk(), 1 << 20)
    safe: asyncio.Future[DiskError | None] = asyncio.get_running_loop().create_future()
    tier.keep(at(1), block(1), safe.set_result)
    assert await safe is None
    others = set(threading.enumerate())  # those of tests before may end meanwhile
    assert await tier.load(at(1)) == block(1)
    (reads,) = set(threading.enumerate()) - others
    tier.close()
    assert not reads.is_alive()


@in_virtual_time
async def test_a_note_that_the_disk_refused_is_known_until_it_is_safe() -> None:
    disk, name = SimulatedDisk(), ALIVE
    tier = make_tier(disk)
    disk.failing = True
    tier.note(name, b"first")
    assert not tier.refused_note(name)  # it waits
    await asyncio.sleep(2)
    assert tier.refused_note(name)
    disk.failing = False
    tier.note(name, b"again")
    await asyncio.sleep(2)
    assert not tier.refused_note(name)
    assert disk.synced(name) == b"again"


@in_virtual_time
async def test_a_large_block_takes_the_place_of_many_in_pieces() -> None:
    """Others waited for half a second, and for seconds where each was looked for from the start of a dict."""
    tier = SsdTier(SimulatedDisk(), 65_000 * LEAST_BYTES, run=commit_in_virtual_time)
    tier.preload((at(number), Derived(1)) for number in range(65_000))
    began_s = thread_time()
    tier.keep(at(65_000), Block(WRITE, bytes(65_000 * LEAST_BYTES), bytes(wire.TAG_BYTES)))
    assert 1 < len(tier) <= 65_001 - LEAVE_AT_ONCE
    left = len(tier)
    await asyncio.sleep(0)
    assert left - LEAVE_AT_ONCE <= len(tier) < left
    await asyncio.sleep(0.001)
    assert thread_time() - began_s < 0.5
    assert list(tier) == [at(65_000)]


@in_virtual_time
async def test_the_oldest_block_is_found_soon_where_many_left_before() -> None:
    async def kept_s(before: int) -> float:
        """The least time for 100 short blocks, each of which takes the place of another."""
        tier = SsdTier(SimulatedDisk(), before * LEAST_BYTES, run=commit_in_virtual_time)
        tier.preload((at(number), Derived(1)) for number in range(before))
        tier.keep(at(-1 % (1 << 32)), Derived((before - 500) * LEAST_BYTES))
        await asyncio.sleep(0.1)
        took_s = []
        for first in range(0, 300, 100):
            new = [at(before + number) for number in range(first, first + 100)]
            began_s = thread_time()
            for where in new:
                tier.keep(where, Derived(1))
            took_s.append(thread_time() - began_s)
        return min(took_s)

    assert await kept_s(86_000) < 2.5 * await kept_s(1_000)
