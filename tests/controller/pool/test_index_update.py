"""What leaves and what comes in one write: slots pass on, and what fails leaves nothing half done."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from controller.errors import ConnectionLostError
from controller.operations import Install, Remove, Replace, Result
from controller.pool.index_update import IndexUpdate
from controller.pool.slots import SlotAllocator, Slots
from tests.controller.recording import RecordingAdapter

FRAGMENTS = 4
OLD, NEW, OTHER = b"old", b"new", b"other"


class World:
    """`OLD` is installed in the only slots there are."""

    def __init__(self, backwards: bool = False) -> None:
        self.adapter = RecordingAdapter(table_size=1, backwards=backwards)
        self.slots = SlotAllocator(FRAGMENTS)
        self.index_update = IndexUpdate(self.adapter, self.slots)
        assert self.index_update.write({}, {OLD: FRAGMENTS}).installed == [Install(OLD, 0, 1, FRAGMENTS)]
        self.adapter.operations.clear()

    def refuse(self, results: Sequence[Result]) -> None:
        """The next updates of a write."""
        self.adapter.refusals.extend(results)


def test_a_newcomer_takes_over_the_slots_of_what_leaves_in_one_write() -> None:
    world = World()
    outcome = world.index_update.write({OLD: Slots(0, 1, FRAGMENTS)}, {NEW: 2})
    assert world.adapter.writes == 2
    assert world.adapter.operations == [Remove(OLD), Install(NEW, 0, 2, 2)]
    assert (outcome.left, outcome.installed) == ([OLD], [Install(NEW, 0, 2, 2)])
    assert world.slots.free_slots == 2


def test_a_switch_that_installs_before_it_removes_is_asked_once_more() -> None:
    world = World(backwards=True)  # its table has room for one
    outcome = world.index_update.write({OLD: Slots(0, 1, FRAGMENTS)}, {NEW: 2})
    assert world.adapter.entries == {NEW: Install(NEW, 0, 2, 2)}
    assert (outcome.left, outcome.refused) == ([OLD], [])


def test_whose_slots_are_not_free_after_all_is_not_installed() -> None:
    world = World()
    world.adapter.table_size = 2
    world.refuse([Result.FAILED])
    outcome = world.index_update.write({OLD: Slots(0, 1, FRAGMENTS)}, {NEW: 2})
    assert (outcome.left, outcome.stayed, outcome.installed, outcome.refused) == ([], [OLD], [], [NEW])
    assert set(world.adapter.entries) == {OLD}
    assert world.index_update.write({OLD: Slots(0, 1, FRAGMENTS)}, {OTHER: 2}).installed == [
        Install(OTHER, 0, 3, 2)
    ]


def test_what_has_an_entry_already_is_replaced() -> None:
    world = World()
    world.adapter.entries[NEW] = Install(NEW, 8, 77, 1)
    outcome = world.index_update.write({OLD: Slots(0, 1, FRAGMENTS)}, {NEW: 2})
    assert world.adapter.operations[-1] == Replace(NEW, 0, 2, 2)
    assert outcome.installed == [Install(NEW, 0, 2, 2)]


def test_slots_of_what_is_refused_are_free_again() -> None:
    world = World()
    world.refuse([Result.OK, Result.FAILED, Result.FAILED])
    outcome = world.index_update.write({OLD: Slots(0, 1, FRAGMENTS)}, {NEW: 2})
    assert (outcome.left, outcome.refused, world.slots.free_slots) == ([OLD], [NEW], FRAGMENTS)


def test_slots_stay_where_they_were_when_the_switch_is_gone() -> None:
    world = World()
    world.adapter.lost = True
    for _ in range(2):
        with pytest.raises(ConnectionLostError):
            world.index_update.write({OLD: Slots(0, 1, FRAGMENTS)}, {NEW: 2})
    world.slots.free(Slots(0, 1, FRAGMENTS))


@pytest.mark.parametrize("coming", [0, 1, 2])
def test_more_than_there_are_slots_for_get_none(coming: int) -> None:
    world = World()
    outcome = world.index_update.write({}, dict.fromkeys((NEW, OTHER)[:coming], 1))
    assert len(outcome.no_slot) == coming
    assert world.adapter.operations == []
