"""The demo for real: namespaces, packets, P4Runtime. Needs root."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from experiments.run.__main__ import main
from tests.experiments.summaries import assert_described
from topologies import run_records

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
]
SMALL = (
    *("--requests", "40", "--hosts", "3", "--stores", "2", "--speed", "6"),
    *("--gpu-blocks", "4", "--dram-blocks", "8", "--scale", "5000"),
)
ROLES = ("node", "store", "switch", "controller", "watch")
"""Whose CPU time every run says."""


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "experiments.run", *SMALL, *arguments]


def networks_of(pid: int) -> list[Path]:
    return list((run_records.RUN_DIRECTORY / str(pid)).glob("*"))


def keeps_up(summary: dict[str, Any]) -> bool:
    """Whether the machine carried all plays: the figures of one that was overloaded say nothing."""
    return not any(run["overloaded"] for run in summary["runs"].values())


def test_the_pool_serves_and_saves(tmp_path: Path) -> None:
    done = subprocess.run(
        command("--modes", "no_pool,pool", "--results", str(tmp_path)),
        capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert_described("run", tmp_path / "summary.json")
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert (summary["engine"], summary["topology"]) == ("embedded", "star")
    assert (summary["scale_chosen"], summary["requests_first"]) == ("by the user", False)
    assert set(summary["runs"]) == {"no_pool", "pool"}
    for run in summary["runs"].values():
        assert (run["requests"], run["completed"], run["failed"], run["corrupt"]) == (40, 40, 0, 0)
    without, pool = summary["runs"]["no_pool"], summary["runs"]["pool"]
    assert (without["blocks"]["pool"], without["merged"], without["admitted"]) == (0, 0, 0)
    if keeps_up(summary):
        assert pool["blocks"]["pool"] > 0
        assert pool["switch_served_bytes"] > 0
        assert pool["storage_egress_bytes"] < without["storage_egress_bytes"]
    details = json.loads((tmp_path / "details.json").read_text())
    egress = details["runs"]["no_pool"]["timeline"][-1]["link_bytes"]
    seen = egress["s1-store1"][0] + egress["s1-store2"][0]
    assert seen == pytest.approx(without["storage_egress_bytes"], rel=0.02)
    assert ">Where blocks came from</h2>" in (tmp_path / "report.html").read_text()
    assert sum(pool["blocks"].values()) == sum(without["blocks"].values())


@pytest.mark.slow
def test_without_stores_nodes_lend_one_another_what_the_pool_does_not_have(tmp_path: Path) -> None:
    lending = ("--stores", "0", "--hosts", "6", "--requests", "80", "--dram-blocks", "64")
    done = subprocess.run(
        command(*lending, "--modes", "no_pool,pool", "--traces", "1", "--results", str(tmp_path)),
        capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert_described("run", tmp_path / "summary.json")
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert (summary["stores"], summary["eviction"]) == (0, "drop")
    for run in summary["runs"].values():
        assert (run["requests"], run["completed"], run["failed"], run["corrupt"]) == (80, 80, 0, 0)
        assert run["blocks"]["remote"] > 0
        fetched = run["blocks"]["remote"] + run["blocks"]["pool"]
        assert run["index"]["asked"] > run["index"]["located"] >= run["index"]["promised"] >= fetched
        assert set(run["cpu_s"]) == {*ROLES, "index"}
        assert run["cpu_s"]["index"] > 0
    without, pool = summary["runs"]["no_pool"], summary["runs"]["pool"]
    assert without["blocks"]["pool"] == 0
    assert pool["blocks"]["pool"] > 0
    details = json.loads((tmp_path / "details.json").read_text())
    left = sum(sent for sent, _ in details["runs"]["no_pool"]["timeline"][-1]["link_bytes"].values())
    assert left == pytest.approx(without["storage_egress_bytes"], rel=0.02)
    traced = json.loads((tmp_path / "traces" / "no_pool.perfetto.json").read_text())
    homes = {event.get("args", {}).get("weir.home") for event in traced["traceEvents"]} - {None}
    assert len(homes) > 1
    assert homes <= {f"node{number}" for number in range(1, 7)}


@pytest.mark.slow
def test_the_conductor_routes_by_what_nodes_and_switch_report(tmp_path: Path) -> None:
    conductor = ("--scheduler", "conductor", "--modes", "pool", "--results", str(tmp_path))
    done = subprocess.run(
        command(*conductor, "--ttft-slo", "40"), capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert_described("run", tmp_path / "summary.json")
    summary = json.loads((tmp_path / "summary.json").read_text())
    run = summary["runs"]["pool"]
    assert (summary["scheduler"], summary["ttft_slo_s"]) == ("conductor", 40)
    assert run["completed"] + run["rejected"] == 40
    assert (run["failed"], run["corrupt"]) == (0, 0)
    if keeps_up(summary):
        assert run["blocks"]["pool"] > 0
    assert set(run["cpu_s"]) == {*ROLES, "router"}
    assert run["cpu_s"]["router"] > 0
    details = json.loads((tmp_path / "details.json").read_text())
    assert {r["node"] for r in details["runs"]["pool"]["requests"]} == {"node1", "node2", "node3"}


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_leaves_nothing_behind(tmp_path: Path, number: int) -> None:
    child = subprocess.Popen(
        command("--results", str(tmp_path)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        while not (records := networks_of(child.pid)):
            assert child.poll() is None
        (record,) = records
        while len(record.read_text().splitlines()) < 8:  # hosts are there, and processes in them
            assert child.poll() is None
        pids = [int(line.split()[0]) for line in record.read_text().splitlines()[2:]]
        child.send_signal(number)
        said, _ = child.communicate(timeout=240)
    finally:
        child.kill()
        child.wait()
    assert child.returncode == 130, said
    assert "everything that was started has ended" in said
    assert not networks_of(child.pid)
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--policy", "magic"), "POLICY: there is no 'magic': choose one of"),
        (("--trace", "/nonexistent.jsonl"), "TRACE: there is no file /nonexistent.jsonl"),
        (("--hosts", "62"), "a star has 63 ports at most"),
    ],
)
def test_bad_input_is_one_clear_error(
    arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main((*SMALL, *arguments)) == 2
    assert said in capsys.readouterr().err
