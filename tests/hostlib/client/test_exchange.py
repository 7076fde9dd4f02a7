"""The order in which a client sends its requests when its window has no room for all."""

from __future__ import annotations

import asyncio

import pytest

from hostlib.client.client_options import ClientOptions
from hostlib.client.node_window import NodeWindowOptions
from hostlib.protocol import wire
from hostlib.protocol.errors import TransferError
from tests.asynchronous import in_virtual_time
from tests.hostlib.deletions import DOWN, UP
from tests.hostlib.world import NODE, World, content, key, ref

pytestmark = pytest.mark.usefixtures("either_core")

FRAGMENTS = 200


@pytest.mark.parametrize("window", [1, 2, 3, 16])
@in_virtual_time
async def test_homes_take_turns_where_the_window_of_the_node_is_short(window: int) -> None:
    """One waited until the other had given all, if an even number left each time."""
    world = World(homes=2, options=ClientOptions(node=NodeWindowOptions(window, window, window)))
    of_home = {world.members.homes(key(number))[0].address: number for number in range(8)}
    assert len(of_home) == 2
    for number in of_home.values():
        await world.client.put(ref(number), content(number, FRAGMENTS * 512))
    blocks = await asyncio.gather(*(world.client.get(ref(number)) for number in of_home.values()))
    first, last = sorted(block.elapsed_s for block in blocks)
    assert first > 0.9 * last


@in_virtual_time
async def test_a_client_asks_for_the_list_of_storage_nodes_when_it_begins() -> None:
    controller = "10.255.255.254"
    world = World(options=ClientOptions(controller=controller))
    assert [(to, message.epoch) for to, message in world.sent(NODE, wire.OP_HELLO)] == [(controller, 0)]


@in_virtual_time
async def test_nothing_is_left_of_transfers_that_have_ended() -> None:
    world = World(replicas=2)
    second = world.homes(1)[1]
    await world.client.put(ref(1), content(1), replicas=2)
    await world.client.get(ref(1))
    assert not await world.client.exists([ref(2)])
    world.network.dead.add(second)
    await world.client.put(ref(1), content(2), replicas=2, at_least=1)  # one is left out
    with pytest.raises(TransferError):
        await world.client.put(ref(1), content(2), replicas=2)
    world.network.dead.discard(second)
    world.announce(UP, UP, UP)
    putting = asyncio.create_task(world.client.put(ref(3), content(3, FRAGMENTS * 512), replicas=2))
    await asyncio.sleep(0.001)
    gone = world.homes(3)[1]
    world.network.dead.add(gone)
    world.announce(*(DOWN if one.address == gone else UP for one in world.members.nodes))
    await putting  # another takes its place
    assert not world.client._exchange.request_owners
