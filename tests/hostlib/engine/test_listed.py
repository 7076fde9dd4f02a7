"""What engines store is listed by name for their tenant, and can be cleared by name."""

from __future__ import annotations

import argparse
import asyncio
import json
from typing import TYPE_CHECKING

import pytest

from hostlib.client.client import Client
from hostlib.engine import Item, ObjectPool
from hostlib.engine.listed import FLUSH_S, MAX_NAMES, PAGE_ENTRIES, Listed, Lists
from hostlib.engine.pool_command import UnknownNameError, main, run
from hostlib.protocol.block import Place
from hostlib.protocol.seal import Seal
from hostlib.protocol.transfer import BlockRef
from tests.asynchronous import in_virtual_time
from tests.hostlib.engine.pool_world import PoolWorld
from tests.hostlib.sealed import SEAL

if TYPE_CHECKING:
    from pathlib import Path

SECRET = b"a secret of sixteen bytes or more".hex()


def block(number: int) -> BlockRef:
    return BlockRef(SEAL.key(b"object", b"%d" % number))


def pool(world: PoolWorld) -> ObjectPool:
    return world.objects(listed=True, tenant=SEAL.tenant, secret=SECRET)


async def store(one: ObjectPool, name: str, numbers: range) -> None:
    items = [Item(block(number), b"x" * (100 + number), name) for number in numbers]
    assert await one.store(items) == [True] * len(items)


async def listed(lists: Lists, name: str) -> set[bytes]:
    return {one.key for page in [page async for page in lists.pages(name)] for one in page.objects}


def lists_of(world: PoolWorld) -> tuple[Client, Lists]:
    client = world.client(world.config())
    return client, Lists(client, SEAL)


def asked(what: str, name: str | None = None, **options: object) -> argparse.Namespace:
    return argparse.Namespace(what=what, name=name, json=True, every=0.01, times=2, seconds=60, **options)


@in_virtual_time
async def test_what_two_engines_store_is_listed_under_its_names() -> None:
    world = PoolWorld()
    one, other = pool(world), pool(world)
    await asyncio.gather(store(one, "a", range(5)), store(other, "a", range(5, 9)))
    await store(other, "b", range(20, 22))
    await asyncio.sleep(2 * FLUSH_S)
    _, lists = lists_of(world)
    assert await lists.names() == ["a", "b"]
    assert await listed(lists, "a") == {block(n).key for n in range(9)}
    assert await listed(lists, "b") == {block(n).key for n in range(20, 22)}


@in_virtual_time
async def test_many_objects_take_several_pages() -> None:
    world = PoolWorld()
    one = pool(world)
    await store(one, "a", range(PAGE_ENTRIES + 5))
    await asyncio.sleep(2 * FLUSH_S)
    _, lists = lists_of(world)
    assert [len(page.objects) async for page in lists.pages("a")] == [PAGE_ENTRIES, 5]


@in_virtual_time
async def test_without_the_setting_nothing_is_written_down() -> None:
    world = PoolWorld()
    one = world.objects(tenant=SEAL.tenant, secret=SECRET)
    await store(one, "a", range(5))
    await asyncio.sleep(2 * FLUSH_S)
    assert sum(len(each.places()) for each in world.stores.values()) == 5


@in_virtual_time
async def test_another_tenant_sees_no_name() -> None:
    world = PoolWorld()
    await store(pool(world), "a", range(5))
    await asyncio.sleep(2 * FLUSH_S)
    client = world.client(world.config())
    assert await Lists(client, Seal(SEAL.tenant, b"another secret of 16 bytes")).names() == []


@in_virtual_time
async def test_what_is_cleared_is_gone_and_the_other_name_stays() -> None:
    world = PoolWorld()
    one = pool(world)
    await store(one, "a", range(5))
    await store(one, "b", range(20, 23))
    await asyncio.sleep(2 * FLUSH_S)
    _, lists = lists_of(world)
    done: list[int] = []
    assert await lists.clear("a", done.append) == 5
    assert done == [1, 2, 3, 4, 5]
    assert await lists.names() == ["b"]
    assert await one.present([block(n) for n in range(5)]) == [False] * 5
    assert await one.present([block(n) for n in range(20, 23)]) == [True] * 3
    await store(one, "a", range(3))
    await asyncio.sleep(2 * FLUSH_S)
    assert await listed(lists, "a") == {block(n).key for n in range(3)}


@in_virtual_time
async def test_names_are_bounded() -> None:
    world = PoolWorld()
    _, lists = lists_of(world)
    for number in range(MAX_NAMES):
        await lists.add(f"name {number}", [Listed(block(number).key, 1)])
    with pytest.raises(ValueError, match="names already"):
        await lists.add("one more", [Listed(block(0).key, 1)])
    with pytest.raises(ValueError, match="a name has"):
        await lists.add("x" * 201, [Listed(block(0).key, 1)])


@in_virtual_time
async def test_the_command_says_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    world = PoolWorld()
    await store(pool(world), "a", range(3))
    await asyncio.sleep(2 * FLUSH_S)
    config = world.config()
    client = world.client(config)

    async def say(what: str, name: str | None = None) -> list[object]:
        assert await run(client, SEAL, config, asked(what, name)) == 0
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    row = {"name": "a", "objects": 3, "bytes": 303}
    assert await say("ls") == [[row]]
    assert await say("watch") == [[row], [row]]
    (objects,) = await say("ls", "a")
    assert isinstance(objects, list)
    assert [one["bytes"] for one in objects] == [100, 101, 102]
    world.stores[world.members.homes(block(1).key)[0].address].drop(world_place(1))
    assert await say("stat", "a") == [[row | {"there": 2, "there_bytes": 202, "unknown": 0}]]
    assert await say("pin", "a") == [[{"name": "a", "done": 2, "refused": 0, "not_found": 1, "no_answer": 0}]]
    retained = [one.stats.retained for one in world.stores.values()]
    assert sum(retained) == 2
    for hint in ("unpin", "prefetch", "demote", "expire"):
        assert await say(hint, "a") == [
            [{"name": "a", "done": 2, "refused": 0, "not_found": 1, "no_answer": 0}]
        ]
    assert await say("clear", "a") == [[{"name": "a", "listed": 3, "deleted": 2}]]
    assert await say("ls") == [[]]
    with pytest.raises(UnknownNameError, match="no name 'a' exists"):
        await run(client, SEAL, config, asked("stat", "a"))


def world_place(number: int) -> Place:
    return Place(SEAL.tenant, block(number).key)


@pytest.mark.parametrize(
    ("content", "why"),
    [(None, "No such file"), ("{", "not JSON"), ("[]", "not an object"), ("{}", "'address' is missing")],
)
def test_settings_that_cannot_be_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str | None, why: str
) -> None:
    path = tmp_path / "pool.json"
    if content is not None:
        path.write_text(content)
    assert main(["--settings", str(path), "ls"]) == 2
    assert why in capsys.readouterr().err
