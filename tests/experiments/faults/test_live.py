"""make faults, one short case on a real network."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from commands.command import Screen
from commands.verbosity import QUIET
from experiments.faults.__main__ import LINK_BIT_S, compile_program, play, play_all
from experiments.faults.cases import CASES, Case
from experiments.faults.cluster import Cluster
from experiments.faults.options import parse_options
from tests.experiments.summaries import assert_described
from topologies.engines import Embedded
from topologies.network import Network
from topologies.registry import make_topology

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
]


@pytest.mark.slow
def test_a_storage_node_is_killed_under_load_and_nothing_fails_is_wrong_or_lost(tmp_path: Path) -> None:
    arguments = ["--seconds", "3", "--rate", "20", "--fragments", "4", "--results", str(tmp_path)]
    options = parse_options(arguments, "", "")
    with Network(make_topology("star", LINK_BIT_S, 2, 3), Embedded()) as network:
        result = play(network, compile_program(network, options.fragments), options, "storage_killed")
    assert result.operations == 2 * 3 * 20
    assert result.missed(may_fail=False, may_refuse=False) == []
    assert result.recover_s < options.seconds


@pytest.mark.slow
def test_a_case_that_breaks_off_and_an_interrupt_leave_what_else_was_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(cluster: Cluster, seconds: float) -> None:
        os.kill(cluster.nodes[cluster.fabric.nodes[0]].process.pid, signal.SIGKILL)

    def interrupt(cluster: Cluster, seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setitem(CASES, "node_killed", Case("a node crashes", crash))
    monkeypatch.setitem(CASES, "partition", Case("somebody has enough of it", interrupt))
    arguments = ["--cases", "node_killed,none,partition", "--topos", "star", "--seconds", "3"]
    options = parse_options(
        [*arguments, "--rate", "10", "--fragments", "4", "--results", str(tmp_path)], "", ""
    )
    with pytest.raises(KeyboardInterrupt):
        play_all(Screen(QUIET), options)
    assert_described("faults", tmp_path / "summary.json")
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["complete"] is False
    broken, right = summary["cases"]
    assert (broken["fault"], right["fault"]) == ("node_killed", "none")
    assert "was ended by SIGKILL" in broken["broken_off"]
    assert (right["broken_off"], right["operations"], right["failed"], right["lost_blocks"]) == ("", 90, 0, 0)
    assert (tmp_path / "report.html").exists()
