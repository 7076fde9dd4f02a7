"""Worlds in which blocks are deleted: what their tests share."""

from __future__ import annotations

import asyncio

from hostlib.client.client import Client
from hostlib.protocol.block import Place
from hostlib.protocol.errors import BlockNotFoundError
from hostlib.protocol.members import State
from tests.asynchronous import until
from tests.hostlib.sealed import TENANT
from tests.hostlib.world import World, key, ref

UP, DOWN, JOINING = State.UP, State.DOWN, State.JOINING


async def is_found(client: Client, number: int) -> bool:
    try:
        await client.get(ref(number))
    except BlockNotFoundError:
        return False
    return True


def write_at(world: World, address: str, number: int) -> int:
    """The content id of a block that a storage node holds."""
    found = world.stores[address].find(Place(TENANT, key(number)))
    assert found is not None
    return found[1]


def absent_home(world: World) -> str:
    return world.members.nodes[0].address


async def come_back(world: World, address: str) -> None:
    world.announce(JOINING, UP, UP)
    node = world.restart(address)
    node.start()
    await until(lambda: node.joining.caught_up)
    world.announce(UP, UP, UP)
    await asyncio.sleep(0.1)
