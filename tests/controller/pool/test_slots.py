"""Slot allocation as a state machine: no slot has two owners, and no generation comes back to a slot."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, rule

from controller.pool.free_runs import FreeRuns
from controller.pool.slots import GENERATIONS, SlotAllocator, Slots


def places(slots: Slots) -> set[int]:
    return set(range(slots.base_slot, slots.base_slot + slots.fragments))


class SlotsMachine(RuleBasedStateMachine):
    owned = Bundle("owned")

    @initialize(slots=st.integers(1, 24))
    def start(self, slots: int) -> None:
        self.slots = slots
        self.allocator = SlotAllocator(slots)
        self.in_use: set[Slots] = set()
        self.given: set[tuple[int, int]] = set()

    def longest_free(self) -> int:
        taken = {place for slots in self.in_use for place in places(slots)}
        marks = "".join(" x"[place in taken] for place in range(self.slots))
        return max(map(len, marks.split("x")))

    @rule(target=owned, fragments=st.integers(1, 7))
    def allocate(self, fragments: int) -> Slots | None:
        longest = self.longest_free()
        slots = self.allocator.allocate(fragments)
        assert (slots is None) == (longest < fragments)
        if slots is None:
            return None
        assert slots.fragments == fragments
        assert places(slots) <= set(range(self.slots))
        assert 0 < slots.generation < GENERATIONS
        now_given = {(place, slots.generation) for place in places(slots)}
        assert not now_given & self.given, "a generation came back to a slot"
        assert not any(slots.overlaps(other) for other in self.in_use), "a slot has two owners"
        self.given |= now_given
        self.in_use.add(slots)
        return slots

    @rule(slots=consumes(owned))
    def free(self, slots: Slots | None) -> None:
        if slots in self.in_use:
            assert slots is not None
            self.allocator.free(slots)
            self.in_use.remove(slots)

    @rule(target=owned, slots=consumes(owned))
    def free_and_claim_again(self, slots: Slots | None) -> Slots | None:
        """As when a removal fails after its slots were to go to others."""
        if slots is None or slots not in self.in_use:
            return None
        self.allocator.free(slots)
        assert self.allocator.claim(slots)
        assert not self.allocator.claim(slots)
        return slots

    @rule()
    def read_back(self) -> None:
        """As after a lost connection: everything is freed, and what the switch holds claimed again."""
        self.allocator.free_all()
        assert all(self.allocator.claim(slots) for slots in self.in_use)

    @rule()
    def restart(self) -> None:
        """As a controller that knows only that no generation above the highest was used."""
        self.allocator = SlotAllocator(self.slots)
        self.allocator.start_after(max((generation for _, generation in self.given), default=0))
        assert all(self.allocator.claim(slots) for slots in self.in_use)

    @rule(fragments=st.integers(1, 7))
    def clear_the_way(self, fragments: int) -> None:
        """Without those in the way there is room; no single owner that is shorter would have made it."""
        leaving = self.allocator.in_the_way(fragments, lambda slots: True)
        if self.longest_free() >= fragments or self.slots < fragments:
            return
        assert leaving
        stay = self.in_use - set(leaving)
        assert self._longest_without(stay) >= fragments
        used = sum(slots.fragments for slots in leaving)
        for one in self.in_use:
            if one.fragments < used:
                assert self._longest_without(self.in_use - {one}) < fragments

    def _longest_without(self, stay: set[Slots]) -> int:
        before, self.in_use = self.in_use, stay
        try:
            return self.longest_free()
        finally:
            self.in_use = before

    @invariant()
    def counts_what_is_free(self) -> None:
        used = sum(slots.fragments for slots in self.in_use)
        assert (self.allocator.used_slots, self.allocator.free_slots) == (used, self.slots - used)


TestSlots = SlotsMachine.TestCase


def test_the_first_generation_is_1() -> None:
    assert SlotAllocator(16).allocate(8) == Slots(0, 1, 8)


def test_generations_wrap_to_1_as_0_means_empty() -> None:
    allocator = SlotAllocator(1)
    allocator.start_after(GENERATIONS - 2)
    first = allocator.allocate(1)
    assert first == Slots(0, GENERATIONS - 1, 1)
    allocator.free(first)
    assert allocator.allocate(1) == Slots(0, 1, 1)


def test_a_generation_is_above_that_of_every_slot_in_the_run() -> None:
    allocator = SlotAllocator(4)
    for _ in range(3):
        slots = allocator.allocate(1)
        assert slots is not None
        allocator.free(slots)
    assert allocator.allocate(4) == Slots(0, 4, 4)


def test_blocks_of_one_length_leave_no_gaps() -> None:
    allocator = SlotAllocator(40)
    owned = [allocator.allocate(8) for _ in range(5)]
    assert None not in owned
    for slots in (owned[3], owned[1]):
        assert slots is not None
        allocator.free(slots)
    assert [allocator.allocate(8), allocator.allocate(8)] == [Slots(24, 2, 8), Slots(8, 2, 8)]
    assert allocator.allocate(1) is None


@pytest.mark.parametrize(
    "slots",
    [
        Slots(7, 1, 2),
        Slots(-1, 1, 2),
        Slots(8, 1, 1),
        Slots(0, 0, 1),
        Slots(0, GENERATIONS, 1),
        Slots(0, 1, 0),
    ],
)
def test_slots_that_do_not_exist_are_not_claimed(slots: Slots) -> None:
    allocator = SlotAllocator(8)
    assert not allocator.claim(slots)
    assert allocator.free_slots == 8


def test_freeing_twice_or_for_another_owner_is_refused() -> None:
    allocator = SlotAllocator(2)
    first = allocator.allocate(2)
    assert first is not None
    with pytest.raises(ValueError, match="belong to"):
        allocator.free(Slots(0, 99, 2))
    with pytest.raises(ValueError, match="belong to"):
        allocator.free(Slots(0, 1, 1))
    allocator.free(first)
    with pytest.raises(ValueError, match="not in use"):
        allocator.free(first)


def test_who_may_not_go_is_never_in_the_way() -> None:
    allocator = SlotAllocator(9)
    owned = [allocator.allocate(3) for _ in range(3)]
    assert allocator.in_the_way(4, lambda slots: slots != owned[1]) == []
    assert allocator.in_the_way(3, lambda slots: slots != owned[0]) == [owned[1]]


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 10)), max_size=30))
def test_free_runs_never_touch_and_add_up(taken: list[tuple[int, int]]) -> None:
    free = FreeRuns(40)
    held = [(first, length) for first, length in taken if free.take_at(first, length)]
    for first, length in held[::2]:
        free.give_back(first, length)
    runs = list(free)
    assert all(first + length < after for (first, length), (after, _) in pairwise(runs))
    assert free.total == sum(length for _, length in runs) == 40 - sum(length for _, length in held[1::2])
