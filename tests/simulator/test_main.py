"""The command: a table, all figures as JSON, refusals with their line, and a real play given root."""

import json
import os
from pathlib import Path

import pytest

from experiments.simulate.__main__ import main
from experiments.validate.incast import write_incast

SCENARIO = """
name = "two nodes"

[workload]
trace = "incast.jsonl"
requests = 4
start_s = 1.0
scheduler = "round_robin"

[nodes]
count = 2
{nodes}

[storage]
count = 1
dram_gb = 100.0
ssd_gb = 100.0

[pool]
size_gb = 10.0
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    """Two rounds of two nodes, the trace beside the scenario."""
    write_incast(tmp_path / "incast.jsonl", nodes=2, rounds=2)
    path = tmp_path / "two.toml"
    path.write_text(SCENARIO.format(nodes=""))
    return path


def test_a_scenario_gives_a_table(scenario: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(scenario)]) == 0
    printed = capsys.readouterr().out
    assert "two nodes" in printed
    assert "time to first token" in printed


def test_all_figures_as_json(scenario: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(scenario), "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["completed"] == 4
    assert figures["blocks"]["recomputed"] == 4
    assert figures["link_bytes"]["store1->s1"] > 0


def test_bad_input_is_refused_with_its_line(scenario: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scenario.write_text(SCENARIO.format(nodes="gpu_gb = -1.0"))
    assert main([str(scenario)]) == 2
    assert f"error: {scenario}:12: nodes.gpu_gb: must be from 0" in capsys.readouterr().err


def test_what_the_emulator_cannot_do_is_refused(scenario: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scenario.write_text(SCENARIO.format(nodes='decode = "batched"'))
    assert main([str(scenario), "--emulate", "50000"]) == 2
    assert "error: nodes: the emulator has decode" in capsys.readouterr().err


@pytest.mark.parametrize("sigma", ["0", "nan", "inf", "-5"])
def test_an_impossible_sigma_is_refused(
    scenario: Path, sigma: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(scenario), f"--emulate={sigma}"]) == 2
    assert capsys.readouterr().err.startswith("error: ")


@pytest.mark.root
@pytest.mark.xdist_group("network")
@pytest.mark.timeout(180)
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root for network namespaces")
def test_a_scenario_is_played_on_the_emulator(scenario: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(scenario), "--emulate", "50000"]) == 0
    printed = capsys.readouterr().out
    assert "two nodes" in printed
    assert "96 (96.0%)" in printed  # without the pool: 2 nodes fetch 24 blocks each in 2 rounds
