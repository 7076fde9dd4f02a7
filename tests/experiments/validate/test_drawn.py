"""Scenarios drawn at random can be played on the emulator, and a number always gives the same one."""

import pytest

from experiments.simulator.emulate import Emulator
from experiments.validate.drawn import draw


@pytest.mark.parametrize("number", range(1, 25))
def test_what_is_drawn_can_be_played(number: int) -> None:
    Emulator(draw(number), 50_000.0)


def test_a_number_is_one_scenario() -> None:
    assert draw(7) == draw(7)
    assert len({draw(number).name for number in range(1, 21)}) == 20
    assert len({draw(number).nodes.count for number in range(1, 21)}) > 3
