"""The command: a table, all figures as JSON, refusals with their line, and a real play given root."""

import json
from pathlib import Path

import pytest

from commands.errors import OptionError
from emulator.options import parse_options
from emulator.scenario import make_scenario
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


def test_variables_and_the_command_line_change_what_the_file_says(
    scenario: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEIR_HOSTS", "1")
    monkeypatch.setenv("WEIR_REQUESTS", "3")
    assert main([str(scenario), "--json", "--requests=2"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["completed"] == 2
    assert not [name for name in figures["link_bytes"] if "node2" in name]


def test_without_a_file_the_demo_is_simulated(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--requests=20"]) == 0
    assert "demo" in capsys.readouterr().out


def test_what_the_simulator_does_not_have_is_refused(
    scenario: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(scenario), "--replicas=2"]) == 2
    assert "storage.replicas: the simulator keeps each block on one" in capsys.readouterr().err


def test_what_the_emulator_cannot_do_is_refused(scenario: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scenario.write_text(SCENARIO.format(nodes='decode = "batched"'))
    with pytest.raises(OptionError, match=r"nodes\.decode: the emulator has decode"):
        make_scenario(parse_options(["--scenario", str(scenario)], "run", ""))


def test_the_emulator_plays_the_same_file(scenario: Path) -> None:
    made = make_scenario(parse_options(["--scenario", str(scenario), "--scale=50000"], "run", ""))
    assert made.fabric.nodes == ("node1", "node2")
    assert len(made.trace.requests) == 4
    block_gb = made.cost.block_bytes / 1e9
    assert made.options.pool_blocks == int(10.0 / block_gb)
    assert made.options.store_blocks == int(100.0 / block_gb)
