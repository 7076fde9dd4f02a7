"""Engines whose objects have a lifetime (`lifetime_s`)."""

from __future__ import annotations

import asyncio

import pytest

from hostlib.engine import Item, large, objects
from hostlib.protocol.errors import ConfigError
from hostlib.protocol.hints import MAX_LIFETIME_S
from hostlib.protocol.transfer import BlockRef
from hostlib.storage import expiry, lifetimes
from tests.asynchronous import in_real_time, in_virtual_time, until
from tests.hostlib.engine.pool_world import PoolWorld

KEY, OTHER = BlockRef(bytes(range(16))), BlockRef(bytes(range(16, 32)))
LIFETIME_S = 30


def world() -> PoolWorld:
    """Two homes of each block, whose clocks on the wall go with the loop's."""
    made = PoolWorld(homes=3, replicas=2)
    for store in made.stores.values():
        store.lifetimes.wall_s = asyncio.get_running_loop().time
    return made


@pytest.mark.parametrize("length", [1000, 90_000])
@in_real_time
async def test_what_is_stored_with_a_lifetime_is_gone_after_it_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch, length: int
) -> None:
    monkeypatch.setattr(large, "PART_BYTES", 20_000)
    monkeypatch.setattr(objects, "MAX_BLOCK_BYTES", 40_000)
    monkeypatch.setattr(expiry, "LOOK_S", 0.01)
    one, clock_s = PoolWorld(homes=3, replicas=2), [0.0]
    for node in one.stores.values():
        node.lifetimes.wall_s = lambda: clock_s[0]
    short, lasting = one.objects(lifetime_s=LIFETIME_S), one.objects()
    assert await short.store([Item(KEY, bytes(length))]) == [True]
    assert await lasting.store([Item(OTHER, bytes(length))]) == [True]
    clock_s[0] = LIFETIME_S - 1
    await asyncio.sleep(0.05)
    assert await lasting.present([KEY, OTHER]) == [True, True]
    clock_s[0] = LIFETIME_S
    await until(lambda: not any(len(node.lifetimes) for node in one.stores.values()), 30)
    assert await lasting.present([KEY, OTHER]) == [False, True]
    await lasting.delete([OTHER])
    assert not any(node.places() for node in one.stores.values())  # nor is any part left


@in_virtual_time
async def test_an_object_whose_lifetime_no_home_takes_is_not_kept(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(lifetimes, "MAX_OF_TENANT", 1)
    one = world()
    engine = one.objects(lifetime_s=LIFETIME_S)
    keys = [BlockRef(bytes([number]) * 16) for number in range(8)]
    held = [await engine.store([Item(key, bytes(1000))]) for key in keys]
    assert held.count([True]) in (1, 2)
    assert engine.stats.failed["lifetime"] == held.count([False])
    there = await engine.present(keys)
    assert [[one] for one in there] == held
    said = [record.message for record in caplog.records if "lifetime" in record.message]
    assert len(said) == 1
    assert "storage nodes do not take its lifetime (refused)" in said[0]


@in_virtual_time
async def test_many_that_end_at_once_all_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expiry, "BATCH", 4)
    monkeypatch.setattr(expiry, "MAX_TOLD", 8)
    one = world()
    engine = one.objects(lifetime_s=LIFETIME_S)
    keys = [BlockRef(bytes([number]) * 16) for number in range(60)]
    assert all(await engine.store([Item(key, bytes(100)) for key in keys]))
    await asyncio.sleep(LIFETIME_S + 20)
    assert not any(await engine.present(keys))


@pytest.mark.parametrize("lifetime_s", [-1, 1.5, True, MAX_LIFETIME_S + 1])
@in_virtual_time
async def test_a_lifetime_that_cannot_be_is_refused(lifetime_s: object) -> None:
    with pytest.raises(ConfigError, match="'lifetime_s' is a whole number from 0"):
        PoolWorld().config(lifetime_s=lifetime_s)
