"""When it is known how much of a chain can be had."""

import itertools

import pytest

from simulator.prefix import Prefix

HELD = (True, True, False, True)


@pytest.mark.parametrize("order", [*itertools.permutations(range(len(HELD)))])
def test_it_is_answered_once_by_the_first_that_nobody_holds_and_all_before_it(order: tuple[int, ...]) -> None:
    answered: list[int] = []
    prefix = Prefix(len(HELD), lambda sources: answered.append(len(sources)))
    for number, place in enumerate(order):
        if HELD[place]:
            prefix.arrived(place, "remote")
        else:
            prefix.ends(place)
        assert answered == ([2] if {0, 1, 2} <= {*order[: number + 1]} else [])


def test_it_is_answered_when_all_are_held() -> None:
    answered: list[int] = []
    prefix = Prefix(3, lambda sources: answered.append(len(sources)))
    for place in (2, 0, 1, 1):
        prefix.arrived(place, "remote")
    assert answered == [3]
