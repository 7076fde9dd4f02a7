"""The comparison with the emulator: the same demand in both, and a real play where there is root."""

import os
from pathlib import Path

import pytest

from commands.toml_file import ScenarioError
from experiments.simulate.emulate import Emulator
from experiments.validate.emulator import compare, incast
from scenario import Scenario
from simulator.checks import cost_model, ladder, pool_blocks, sizes
from simulator.measured import ENTRY_DIGEST_S
from simulator.simulation import simulate
from workload.levels import find_ladder

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
    assert matched.control.list_s == pytest.approx(0.2)
    assert matched.control.digest_cpu_s == pytest.approx(2 * ENTRY_DIGEST_S)
    assert matched.machine.live_puts


def test_coded_blocks_are_matched_in_bytes_and_in_what_the_pool_holds(tmp_path: Path) -> None:
    scenario = incast(tmp_path).changed(model={"name": "llama3-70b", "codec": "cachegen", "coder": "instant"})
    matched = Emulator(scenario, 5000.0, 1.0).matched(pool=True)
    cost = cost_model(matched, 512)
    cut = sizes(matched, cost)
    values = 167_772_160 / 5000 // 512 * cost.stored_share  # of 512 bytes, in frames of 634
    assert cut.fragments * cut.value_bytes == pytest.approx(values * 634 * 5000, rel=0.01)
    assert cut.fragments == round(values)
    plain = scenario.pool.size_gb * 1e9 / cost.block_bytes
    assert pool_blocks(matched, cost) == pytest.approx(0.96 * plain / cost.stored_share, rel=0.05)


@pytest.mark.slow
def test_a_streams_levels_have_the_emulators_lengths(tmp_path: Path) -> None:
    tables: dict[str, dict[str, object]] = {
        "model": {"name": "llama3-70b", "codec": "cachegen", "level": "adaptive"},
        "workload": {"ttft_slo_s": 2.0},
    }
    matched = Emulator(incast(tmp_path).changed(**tables), 5000.0, 1.0).matched(pool=True)
    assert matched.network.fragments == 65
    levels = ladder(matched, cost_model(matched, 512))
    assert levels == find_ladder("cachegen", 65, 2.0)
    assert simulate(matched).levels


@pytest.mark.parametrize(
    ("tables", "reason"),
    [
        ({"storage": {"kind": "direct"}}, "storage nodes, or nodes that lend"),
        ({"storage": {"kind": "peers"}}, "storage nodes, or nodes that lend"),
        ({"nodes": {"tiers": "inclusive"}}, "exclusive tiers only"),
        ({"nodes": {"asking": "block"}}, 'asking = "chain" only'),
        ({"decoders": {"count": 2}}, "no decoders"),
        ({"model": {"coded_share": 0.5}}, "by model.codec"),
        ({"nodes": {"decode": "batched"}}, 'decode = "apart"'),
        ({"nodes": {"gate": "never"}}, 'no gate = "never"'),
        ({"workload": {"clients": 3}}, "plays traces only"),
        ({"nodes": {"stores_new": False}}, "store what they compute"),
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


@pytest.mark.slow
@pytest.mark.root
@pytest.mark.timeout(180)
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root for network namespaces")
def test_emulator_and_simulator_find_the_same_blocks(tmp_path: Path) -> None:
    """What is found does not depend on how fast this machine is; times do, so they are not tested."""
    for comparison in compare(small(tmp_path), SIGMA, 1.0, lambda name: None):
        emulated, simulated = comparison.emulated, comparison.simulated
        assert emulated.failed == emulated.corrupt == 0
        assert emulated.blocks["recomputed"] == simulated.blocks["recomputed"] == 8
        found = emulated.blocks["pool"] + emulated.blocks["remote"]
        assert found == simulated.blocks["pool"] + simulated.blocks["remote"] == 8 * 24
