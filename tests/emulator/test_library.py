"""A scenario from a program, without a command. Needs root."""

import os

import pytest

from emulator import play
from scenario import Scenario


@pytest.mark.slow
@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")
def test_a_scenario_is_played_once_in_each_of_its_modes() -> None:
    scenario = Scenario().changed(
        workload={"requests": 20},
        nodes={"count": 2, "gpu_blocks": 4, "dram_blocks": 8},
        storage={"count": 1},
        emulation={"sigma": 20_000.0, "speed": 10.0, "modes": ("merging", "pool")},
    )
    results = play(scenario)
    assert [*results] == ["merging", "pool"]
    for result in results.values():
        assert (result.requests, result.failed, result.corrupt) == (20, 0, 0)
    assert results["merging"].admitted == 0
