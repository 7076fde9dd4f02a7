"""When it is known whether the blocks of a chain are there."""

import itertools

import pytest

from experiments.simulator.question import Question

HELD = (True, True, False, True)


@pytest.mark.parametrize("order", [*itertools.permutations(range(len(HELD)))])
def test_it_is_answered_once_by_the_first_that_nobody_holds_and_all_before_it(order: tuple[int, ...]) -> None:
    answered: list[int] = []
    question = Question(len(HELD), lambda: answered.append(question.length))
    for number, place in enumerate(order):
        question.told(place, HELD[place])
        assert answered == ([2] if {0, 1, 2} <= {*order[: number + 1]} else [])


def test_it_is_answered_when_all_are_held() -> None:
    answered: list[int] = []
    question = Question(3, lambda: answered.append(question.length))
    for place in (2, 0, 1, 1):
        question.told(place, held=True)
    assert answered == [3]
