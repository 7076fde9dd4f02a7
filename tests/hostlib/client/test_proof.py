"""A PUT of a block that is held already: each home shows that it holds what its tenant wrote."""

from __future__ import annotations

import asyncio

import pytest

from hostlib.protocol import wire
from hostlib.protocol.errors import TransferTimeoutError
from tests.asynchronous import in_virtual_time
from tests.hostlib.deletions import DOWN, UP, absent_home
from tests.hostlib.world import NODE, World, content, ref

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
