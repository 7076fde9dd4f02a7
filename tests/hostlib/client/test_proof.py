"""A PUT of a block that is held already: each home shows that it holds what its tenant wrote."""

from __future__ import annotations

import asyncio

import pytest

from hostlib.protocol import wire
from hostlib.protocol.errors import TransferTimeoutError
from tests.asynchronous import in_virtual_time
from tests.hostlib.deletions import DOWN, UP, absent_home
from tests.hostlib.sealed import place
from tests.hostlib.world import NODE, World, content, key, ref

pytestmark = pytest.mark.usefixtures("either_core")


async def _asked(world: World, home: str) -> None:
    """Until the node reads from a home; the answer is not there yet."""
    while not any(to == home for to, _ in world.sent(NODE, wire.OP_GET)):
        await asyncio.sleep(1e-5)


@pytest.mark.parametrize("is_first", [True, False])
@in_virtual_time
async def test_a_home_that_falls_silent_before_it_has_shown_it_is_replaced(is_first: bool) -> None:
    world = World(replicas=2, controller="10.255.255.254")
    world.announce(UP, UP, UP)
    await asyncio.sleep(0.1)
    gone = absent_home(world)
    n = next(n for n in range(80) if gone in world.homes(n) and (world.homes(n)[0] == gone) is is_first)
    await world.client.put(ref(n), content(n), durable=True, replicas=2)
    writing = asyncio.create_task(world.client.put(ref(n), content(n), durable=True, replicas=2))
    await _asked(world, gone)
    world.kill(gone)
    await asyncio.sleep(0.4)
    world.announce(DOWN, UP, UP)
    await writing
    assert len(set(world.holders(n)) - {gone}) == 2


@in_virtual_time
async def test_without_a_controller_nobody_names_another() -> None:
    world = World(replicas=2)
    gone = absent_home(world)
    n = next(n for n in range(80) if world.homes(n)[0] == gone)
    await world.client.put(ref(n), content(n), durable=True, replicas=2)
    writing = asyncio.create_task(world.client.put(ref(n), content(n), durable=True, replicas=2))
    await _asked(world, gone)
    world.kill(gone)
    with pytest.raises(TransferTimeoutError):
        await writing


@pytest.mark.parametrize("is_silent", [True, False])
@pytest.mark.parametrize("how", ["get", "get_into", "get_chain"])
@in_virtual_time
async def test_who_reads_the_block_meanwhile_has_it_of_another_home(how: str, is_silent: bool) -> None:
    world = World(replicas=2)
    await world.client.put(ref(1), content(1), durable=True, replicas=2)
    writing = asyncio.create_task(world.client.put(ref(1), content(1), durable=True, replicas=2))
    home = world.homes(1)[0]
    await _asked(world, home)
    if is_silent:
        world.kill(home)
    else:
        world.stores[home].drop(place(key(1)))
    if how == "get_chain":
        (block,) = (await world.client.get_chain([ref(1)])).blocks
    elif how == "get":
        block = await world.client.get(ref(1))
    else:
        block = await world.client.get_into(ref(1), memoryview(bytearray(len(content(1)))))
    assert block.content == content(1)
    with pytest.raises(TransferTimeoutError):
        await writing
