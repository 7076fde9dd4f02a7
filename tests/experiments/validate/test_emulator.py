"""The comparison with the emulator: the same demand in both, and a real play where there is root."""

import os
from pathlib import Path

import pytest

from experiments.simulator.emulate import Emulator
from experiments.simulator.scenario import Scenario
from experiments.simulator.schema import ScenarioError
from experiments.simulator.simulation import simulate
from experiments.validate.emulator import compare, incast

SIGMA = 50_000.0


def small(folder: Path) -> Scenario:
    """Two rounds of four nodes."""
    return incast(folder).changed(nodes={"count": 4}, workload={"requests": 8})


def test_the_matched_scenario_has_the_emulators_frames_and_rounding(tmp_path: Path) -> None:
    scenario = incast(tmp_path)
    emulator = Emulator(scenario, SIGMA, 2.0)
    matched = emulator.matched(pool=True)
    # 83.9 MB / 50,000 are 1,677 bytes: three fragments of 512, each in a frame of 634.
    assert matched.network.fragments == 3
    assert matched.network.header_share == pytest.approx(3 * 634 * SIGMA / 83_886_080 - 1)
    assert matched.pool.pending_timeout_s == pytest.approx(2 * scenario.pool.pending_timeout_s)
    assert emulator.matched(pool=False).pool.memory == "none"


@pytest.mark.parametrize(
    ("tables", "reason"),
    [
        ({"storage": {"kind": "direct"}}, "storage nodes only"),
        ({"nodes": {"decode": "batched"}}, 'decode = "apart"'),
        ({"nodes": {"gate": "never"}}, 'no gate = "never"'),
        ({"workload": {"clients": 3}}, "plays traces only"),
        ({"model": {"name": "llama3-70b", "codec": "cachegen"}}, "make run CODEC"),
        ({"workload": {"load": 2.0}}, "at their own rate"),
        ({"pool": {"memory": "dram"}}, "line rate only"),
        ({"model": {"gpus": 1}}, "own GPUs only"),
    ],
)
def test_what_the_emulator_cannot_do_is_refused(
    tables: dict[str, dict[str, object]], reason: str, tmp_path: Path
) -> None:
    with pytest.raises(ScenarioError, match=reason):
        Emulator(incast(tmp_path).changed(**tables), SIGMA)


def test_an_incast_asks_for_the_same_blocks_at_once(tmp_path: Path) -> None:
    scenario = incast(tmp_path)
    result = simulate(Emulator(scenario, SIGMA, 1.0).matched(pool=True))
    assert result.blocks["recomputed"] == scenario.workload.requests
    assert result.merged > 0


@pytest.mark.root
@pytest.mark.xdist_group("network")
@pytest.mark.timeout(180)
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root for network namespaces")
def test_emulator_and_simulator_find_the_same_blocks(tmp_path: Path) -> None:
    """What is found does not depend on how fast this machine is; times do, so they are not tested."""
    for comparison in compare(small(tmp_path), SIGMA, 1.0, lambda name: None):
        emulated, simulated = comparison.emulated, comparison.simulated
        assert emulated.failed == emulated.corrupt == 0
        assert emulated.blocks.recomputed == simulated.blocks["recomputed"] == 8
        found = emulated.blocks.pool + emulated.blocks.remote
        assert found == simulated.blocks["pool"] + simulated.blocks["remote"] == 8 * 24
