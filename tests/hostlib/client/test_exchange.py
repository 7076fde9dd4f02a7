"""The order in which a client sends its requests when its window has no room for all."""

from __future__ import annotations

import asyncio

import pytest

from hostlib.client.client_options import ClientOptions
from hostlib.client.node_window import NodeWindowOptions
from tests.asynchronous import in_virtual_time
from tests.hostlib.world import World, content, key, ref

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
