"""A controller that finds a switch as another left it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from controller.errors import ConnectionLostError
from controller.operations import (
    Install,
)
from controller.policies import Hits
from tests.controller.pool_world import FRAGMENTS, World, hot_miss, key

if TYPE_CHECKING:
    pass


def test_after_a_lost_connection_the_switch_is_the_truth() -> None:
    world = World(blocks=4)
    world.miss(1, 2, 3)
    del world.adapter.entries[key(1)]  # evicted behind our back
    world.adapter.entries[key(8)] = Install(key(8), 3 * FRAGMENTS, 5, FRAGMENTS)  # fits: adopted
    world.adapter.entries[key(9)] = Install(key(9), 1, 5, FRAGMENTS)  # lies across blocks: removed
    world.adapter.lost = True
    with pytest.raises(ConnectionLostError):
        world.miss(4)
    world.adapter.lost = False
    world.pool.read_back(2.0)
    assert world.installed == {key(2), key(3), key(8)} == set(world.policy)
    world.miss(5)
    assert world.adapter.entries[key(5)].base_slot == 0


def test_a_new_controller_goes_on_with_what_the_switch_holds() -> None:
    old = World(blocks=3)
    old.miss(1, 2, 3)
    new = World(blocks=3)
    new.adapter.entries = dict(old.adapter.entries)
    new.pool.read_back(1.0, reached=1000)
    assert set(new.policy) == new.installed == {key(1), key(2), key(3)}
    new.served(1, 50 * FRAGMENTS)
    new.pool.read_hits(2.0)  # the first reading only sets the base
    assert not any(isinstance(event, Hits) for event in new.events)
    new.miss(4)
    assert new.adapter.entries[key(4)].generation > 1


def test_a_controller_that_takes_over_again_gives_no_generation_that_another_gave_meanwhile() -> None:
    world = World(blocks=1)
    world.miss(1)
    world.adapter.entries.clear()  # another controller had the slots, up to generation 70, and ended
    world.pool.read_back(2.0, reached=70)
    world.miss(2)
    assert world.adapter.entries[key(2)].generation > 70


def test_no_answer_to_an_earlier_controller_answers_what_a_new_one_asks() -> None:
    """A value that was held back for a fill would bring back what was deleted meanwhile; an acknowledgement
    would say that a home holds what only the pool has."""
    for thresholds in ({"fill": "now"}, {"eviction": "reclaim"}):
        numbers = [_asked(began_s, **thresholds) for began_s in (1.0, 2.0)]
        assert all(numbers)
        assert not numbers[0] & numbers[1]


def _asked(began_s: float, **thresholds: Any) -> set[int]:
    """Numbers of what a controller asks of storage nodes that begins at a time."""
    world = World(blocks=1, **thresholds)
    for number in (1, 2):
        world.pool.hot_miss(hot_miss(number), began_s)
        world.pool.commit(began_s)
        world.pool.tick(began_s)
    return {packet.sequence for packet in world.adapter.packets}
