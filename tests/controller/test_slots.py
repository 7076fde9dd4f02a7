"""Slot allocation as a state machine: no slot has two owners, and no generation comes back."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, rule

from controller.slots import GENERATIONS, SlotAllocator, Slots


class SlotsMachine(RuleBasedStateMachine):
    owned = Bundle("owned")

    @initialize(blocks=st.integers(1, 5), fragments=st.integers(1, 4))
    def start(self, blocks: int, fragments: int) -> None:
        self.blocks, self.fragments = blocks, fragments
        self.allocator = SlotAllocator(blocks, fragments)
        self.in_use: set[Slots] = set()
        self.given: set[tuple[int, int]] = set()

    @rule(target=owned)
    def allocate(self) -> Slots | None:
        slots = self.allocator.allocate()
        assert (slots is None) == (len(self.in_use) == self.blocks)
        if slots is None:
            return None
        assert slots.base_slot % self.fragments == 0
        assert 0 <= slots.base_slot <= (self.blocks - 1) * self.fragments
        assert 0 < slots.generation < GENERATIONS
        assert slots not in self.given, "a generation came back"
        assert slots.base_slot not in {other.base_slot for other in self.in_use}, "a slot has two owners"
        self.given.add(slots)
        self.in_use.add(slots)
        return slots

    @rule(slots=consumes(owned))
    def free(self, slots: Slots | None) -> None:
        if slots in self.in_use:
            assert slots is not None
            self.allocator.free(slots)
            self.in_use.remove(slots)

    @rule(target=owned, slots=consumes(owned), keeps=st.booleans())
    def hand_over(self, slots: Slots | None, keeps: bool) -> Slots | None:
        """To the next owner, unless the present one keeps them after all."""
        if slots is None or slots not in self.in_use:
            return None
        heir = self.allocator.hand_over(slots)
        assert heir.base_slot == slots.base_slot
        assert heir not in self.given, "a generation came back"
        self.given.add(heir)
        if keeps:
            self.allocator.take_back(slots)
            return slots
        self.in_use.remove(slots)
        self.in_use.add(heir)
        return heir

    @rule()
    def read_back(self) -> None:
        """As after a lost connection: everything is freed, and what the switch holds claimed again."""
        self.allocator.free_all()
        assert all(self.allocator.claim(slots) for slots in self.in_use)

    @rule()
    def restart(self) -> None:
        """As a controller that knows only that no generation above the highest was used."""
        self.allocator = SlotAllocator(self.blocks, self.fragments)
        self.allocator.start_after(max((generation for _, generation in self.given), default=0))
        assert all(self.allocator.claim(slots) for slots in self.in_use)

    @invariant()
    def counts_what_is_free(self) -> None:
        assert self.allocator.free_blocks == self.blocks - len(self.in_use)


TestSlots = SlotsMachine.TestCase
TestSlots.settings = settings(deadline=None)


def test_the_first_generation_is_1() -> None:
    assert SlotAllocator(2, 8).allocate() == Slots(0, 1)


def test_generations_wrap_to_1_as_0_means_empty() -> None:
    allocator = SlotAllocator(1, 1)
    allocator.start_after(GENERATIONS - 2)
    first = allocator.allocate()
    assert first == Slots(0, GENERATIONS - 1)
    allocator.free(first)
    assert allocator.allocate() == Slots(0, 1)


def test_slots_free_for_longest_go_first() -> None:
    allocator = SlotAllocator(2, 1)
    first = allocator.allocate()
    assert first is not None
    allocator.free(first)
    assert allocator.allocate() == Slots(1, 1)


@pytest.mark.parametrize(
    "slots", [Slots(1, 1), Slots(-4, 1), Slots(8, 1), Slots(0, 0), Slots(0, GENERATIONS)]
)
def test_slots_that_do_not_exist_are_not_claimed(slots: Slots) -> None:
    allocator = SlotAllocator(2, 4)
    assert not allocator.claim(slots)
    assert allocator.free_blocks == 2


def test_freeing_twice_or_for_another_owner_is_refused() -> None:
    allocator = SlotAllocator(1, 1)
    first = allocator.allocate()
    assert first is not None
    with pytest.raises(ValueError, match="belong to generation"):
        allocator.free(Slots(0, 99))
    allocator.free(first)
    with pytest.raises(ValueError, match="not in use"):
        allocator.free(first)
    with pytest.raises(ValueError, match="not in use"):
        allocator.hand_over(first)
    with pytest.raises(ValueError, match="not in use"):
        allocator.take_back(first)
