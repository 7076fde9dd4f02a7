"""Scenarios drawn at random can be played on the emulator, and a number always gives the same one."""

from hashlib import blake2b

import pytest

from experiments.simulate.emulate import Emulator
from experiments.validate.random_scenarios import FIRST_EXTENDED, draw
from hostlib.model.gate import ANSWERS, HINTS
from tests.slow import rest_slow
from workload.schedule import CONDUCTOR

NEW = range(FIRST_EXTENDED, FIRST_EXTENDED + 60)


@pytest.mark.parametrize("number", rest_slow([1, 2, 3, 4, *NEW[:8]], [*range(1, 25), *NEW]))
def test_what_is_drawn_can_be_played(number: int) -> None:
    Emulator(draw(number), 50_000.0)


def test_a_number_is_one_scenario() -> None:
    assert draw(7) == draw(7)
    assert len({draw(number).name for number in range(1, 21)}) == 20
    assert len({draw(number).nodes.count for number in range(1, 21)}) > 3


def test_scenarios_that_were_played_stay_what_they_were() -> None:
    """Kept plays are of the scenario of their number, and are played anew where it is another."""
    found = [draw(number) for number in range(1, FIRST_EXTENDED)]
    told = [
        (
            *(one.workload.shape, one.workload.requests, one.workload.scheduler, one.workload.seed),
            *(one.nodes.count, one.nodes.gpu_gb, one.nodes.dram_gb, one.nodes.gate, one.nodes.hints),
            *(one.network.link_gbit_s, one.network.topology, one.network.requests_first),
            *(one.storage.kind, one.storage.count, one.pool.size_gb, one.pool.policy),
        )
        for one in found
    ]
    assert blake2b(repr(told).encode(), digest_size=8).hexdigest() == "3ab5502573f9f19e"


def test_later_numbers_draw_what_the_study_has() -> None:
    found = [draw(number) for number in NEW]
    asking = [one.nodes.hints for one in found if not one.lends]
    assert set(asking) == set(HINTS)
    assert {one.network.requests_first for one in found} == {False, True}
    assert {one.network.topology for one in found} == {"star", "leafspine"}
    assert 10 < sum(one.lends for one in found) < 50
    conducted = [one for one in found if one.workload.scheduler == CONDUCTOR]
    assert conducted
    assert all(one.nodes.hints == ANSWERS and not one.lends for one in conducted)
