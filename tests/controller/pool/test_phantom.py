"""A phantom pool: managed as any other, under keys that nobody asks for."""

from __future__ import annotations

from dataclasses import replace

from controller.policies import Hits
from controller.pool.phantom import PhantomAdapter
from tests.controller.pool_world import World, key


def phantom_world(**options: int) -> World:
    world = World(**options)  # type: ignore[arg-type]
    world.pool._adapter = PhantomAdapter(world.adapter)
    return world


def test_the_same_is_written_as_for_a_pool_but_under_other_keys() -> None:
    real, phantom = World(blocks=2), phantom_world(blocks=2)
    for world in (real, phantom):
        world.miss(1, 2, 3)
        world.miss(4)
    assert len(phantom.adapter.operations) == len(real.adapter.operations)
    assert set(phantom.policy) == set(real.policy)
    assert not phantom.installed & {key(number) for number in range(10)}
    slots = [
        {replace(entry, key=b"") for entry in world.adapter.entries.values()} for world in (real, phantom)
    ]
    assert slots[0] == slots[1]


def test_what_a_phantom_left_is_adopted_by_the_next() -> None:
    before = phantom_world(blocks=2)
    before.miss(1, 2)
    after = phantom_world(blocks=2)
    after.adapter.entries = dict(before.adapter.entries)
    after.pool.read_back(1.0)
    assert set(after.policy) == {key(1), key(2)}


def test_counters_belong_to_the_blocks_that_the_pool_knows() -> None:
    world = phantom_world(blocks=1)
    world.miss(1)
    (entry,) = world.adapter.entries.values()
    world.adapter.hits = {entry.base_slot: 8}
    world.pool.read_hits(1.0)
    assert [event.key for event in world.events if isinstance(event, Hits)] == [key(1)]
