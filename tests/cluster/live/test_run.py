"""A run over servers: the same counts as on one machine, nothing left behind, also where a server is lost."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest
from scapy.utils import RawPcapNgReader

from tests.cluster.servers import CLOCK_STEP_S, TestServers
from tests.experiments.summaries import assert_described

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("cluster"), pytest.mark.timeout(1800)]
SMALL = ("--requests", "24", "--gpu-blocks", "4", "--dram-blocks", "8", "--scale", "20000", "--speed", "4")
STAR = ("--topo", "star", "--hosts", "4", "--stores", "2")
LONG = ("--modes", "no_pool", "--speed", "1", "--requests", "400")
LEAFSPINE = ("--topo", "leafspine", "--hosts", "6", "--stores", "3", "--leaves", "3", "--spines", "2")
RUN_TIMEOUT_S = 900.0
LOST_WITHIN_S = 120.0
POLL_S = 0.1
USED_S = 0.05
IDLE = ("sshd", "sshd-session", "sshd-auth", "unshare")
"""What runs on a server when nothing of ours does."""


def command(results: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "experiments.run", *SMALL, *arguments, "--results", str(results)]


def played(results: Path, *arguments: str) -> dict[str, Any]:
    """Return the summary of a run that ended well."""
    done = subprocess.run(
        command(results, *arguments), capture_output=True, text=True, timeout=RUN_TIMEOUT_S, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert_described("run", results / "summary.json")
    summary: dict[str, Any] = json.loads((results / "summary.json").read_text())
    return summary


def counts(summary: dict[str, Any]) -> dict[str, Any]:
    """What has to be the same wherever it is played."""
    names = ("requests", "completed", "failed", "corrupt")
    return {
        mode: {name: run[name] for name in names} | {"blocks": sum(run["blocks"].values())}
        for mode, run in summary["runs"].items()
    }


def folders() -> set[Path]:
    return {path for path in Path("/tmp").glob("weir-*") if not path.name.startswith("weir-servers-")}


def ours(servers: TestServers, names: Sequence[str]) -> list[tuple[str, list[str]]]:
    """What of a run runs on these servers, by server."""
    found = []
    for name in names:
        for process in servers.servers[name].processes():
            with contextlib.suppress(psutil.NoSuchProcess):
                if process.name() not in IDLE:
                    found.append((name, process.cmdline()))
    return found


def assert_idle(servers: TestServers, names: Sequence[str]) -> None:
    """Nothing of a run is on these servers: no process, no interface."""
    assert not ours(servers, names)
    for name in names:
        server = servers.servers[name]
        shown = subprocess.run(
            ["ip", "netns", "exec", server.namespace, "ip", "-j", "link"], capture_output=True, check=True
        ).stdout
        assert {link["ifname"] for link in json.loads(shown)} == {"lo", "eth0"}, name


@pytest.mark.parametrize(
    ("topology", "names"),
    [(STAR, ("a", "b")), (LEAFSPINE, ("a", "b")), (LEAFSPINE, ("a", "b", "c"))],
    ids=["star-2", "leafspine-2", "leafspine-3"],
)
def test_servers_count_what_one_machine_counts(
    servers: TestServers, tmp_path: Path, topology: Sequence[str], names: Sequence[str]
) -> None:
    before = folders()
    file = servers.write_file(names)
    alone = played(tmp_path / "alone", *topology, "--modes", "no_pool,pool")
    several = played(tmp_path / "several", *topology, "--modes", "no_pool,pool", "--servers", str(file))
    assert counts(several) == counts(alone)
    assert several["runs"]["no_pool"]["blocks"]["pool"] == 0
    # What a busy machine lets nodes fetch in a few seconds may be nothing, but the controller wrote.
    assert several["runs"]["pool"]["p4runtime_writes"] > 0
    about = several["servers"]
    assert set(about) == set(names)
    carried = [name for server in about.values() for name in server["carries"]]
    assert len(carried) == len(set(carried))
    assert all(server["carries"] for server in about.values())
    assert sum(server["load_share"] for server in about.values()) == pytest.approx(1, abs=1e-3)
    # Their monotonic clocks are far apart, and that was measured.
    assert all(abs(server["clock_drift_ms"]) < CLOCK_STEP_S for server in about.values())
    assert several["tunnels"]
    assert all(one["carries_bit_s"] > one["asked_bit_s"] > 0 for one in several["tunnels"])
    details = json.loads((tmp_path / "several" / "details.json").read_text())
    links = details["runs"]["no_pool"]["timeline"][-1]["link_bytes"]
    assert all(sum(both) > 0 for both in links.values()), links
    log = (tmp_path / "several" / "log.jsonl").read_text()
    assert '"process": "controller"' in log
    assert_idle(servers, names)
    assert folders() <= before


def test_a_server_that_is_lost_ends_the_run_and_leaves_nothing_on_the_others(
    servers: TestServers, tmp_path: Path
) -> None:
    before = folders()
    file = servers.write_file(("a", "c"))
    arguments = (*STAR, *LONG, "--servers", str(file))
    with subprocess.Popen(
        command(tmp_path, *arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as run:
        wait_until_serving(servers, "c", run)
        servers.servers["c"].kill()
        said, complaint = run.communicate(timeout=LOST_WITHIN_S)
    assert run.returncode == 2, said + complaint
    assert "server c was lost: its connection ended" in complaint
    assert json.loads((tmp_path / "summary.json").read_text())["crashed"]["server"] == "c"
    assert_idle(servers, ("a",))
    on_dead_server = folders() - before
    assert len(on_dead_server) <= 1
    servers.servers["c"].restart()


def test_a_server_that_is_cut_off_removes_everything_itself(servers: TestServers, tmp_path: Path) -> None:
    before = folders()
    file = servers.write_file(("a", "c"))
    cable = ["ip", "link", "set", f"weir-{servers.servers['c'].name}"]
    arguments = (*STAR, *LONG, "--servers", str(file))
    with subprocess.Popen(
        command(tmp_path, *arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as run:
        wait_until_serving(servers, "c", run)
        subprocess.run([*cable, "down"], check=True)
        try:
            said, complaint = run.communicate(timeout=LOST_WITHIN_S)
            wait_until_idle(servers, ("c",))
        finally:
            subprocess.run([*cable, "up"], check=True)
    assert run.returncode == 2, said + complaint
    assert "server c was lost: its connection ended" in complaint
    assert_idle(servers, ("a", "c"))
    assert folders() <= before


def wait_until_idle(servers: TestServers, names: Sequence[str]) -> None:
    """Until nothing of ours runs on these servers, for as long as they may take."""
    deadline_s = time.monotonic() + LOST_WITHIN_S
    while time.monotonic() < deadline_s and ours(servers, names):
        time.sleep(POLL_S)


def wait_until_serving(servers: TestServers, name: str, run: subprocess.Popen[str]) -> None:
    """Until nodes play on a server: one of them has used more CPU time than when it was first seen."""
    deadline_s = time.monotonic() + RUN_TIMEOUT_S
    first_s: dict[int, float] = {}
    while time.monotonic() < deadline_s:
        assert run.poll() is None, run.communicate()
        for process in servers.servers[name].processes():
            with contextlib.suppress(psutil.NoSuchProcess):
                if process.name().startswith("hostlib.node"):
                    used_s = sum(process.cpu_times()[:2])
                    if used_s > first_s.setdefault(process.pid, used_s) + USED_S:
                        return
        time.sleep(POLL_S)
    raise AssertionError(f"no node plays on {name}")


def test_a_run_that_is_killed_leaves_nothing(servers: TestServers, tmp_path: Path) -> None:
    names = ("a", "b")
    before = folders()
    file = servers.write_file(names)
    arguments = (*STAR, *LONG, "--servers", str(file))
    with subprocess.Popen(command(tmp_path, *arguments), stdout=subprocess.DEVNULL, text=True) as run:
        wait_until_serving(servers, "b", run)
        own = folders() - before
        os.kill(run.pid, signal.SIGKILL)
    wait_until_idle(servers, names)
    assert_idle(servers, names)
    # The folder of the run itself is what `make clean` removes; those of the servers are gone.
    assert len(folders() & own) <= 1


def test_a_link_that_a_tunnel_cannot_carry_is_refused(servers: TestServers, tmp_path: Path) -> None:
    file = servers.write_file(("a", "b"))
    arguments = (*STAR, "--scale", "10", "--block-tokens", "16", "--servers", str(file))
    done = subprocess.run(
        command(tmp_path, *arguments), capture_output=True, text=True, timeout=RUN_TIMEOUT_S, check=False
    )
    assert done.returncode == 2, done.stdout + done.stderr
    assert "the tunnel between servers a and b carries" in done.stderr
    assert "use SCALE=" in done.stderr
    assert_idle(servers, ("a", "b"))


def test_servers_that_no_tunnel_connects_are_refused(servers: TestServers, tmp_path: Path) -> None:
    file = servers.write_file(("a", "b"))
    a, b = (servers.servers[name] for name in ("a", "b"))
    route = ["ip", "-n", a.namespace, "route"]
    subprocess.run([*route, "add", "blackhole", b.address], check=True)
    try:
        done = subprocess.run(
            command(tmp_path, *STAR, "--servers", str(file)),
            capture_output=True, text=True, timeout=RUN_TIMEOUT_S, check=False,
        )  # fmt: skip
    finally:
        subprocess.run([*route, "del", "blackhole", b.address], check=True)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "servers a and b: no packet of" in done.stderr
    assert f"between {a.address} and {b.address}: see that these" in done.stderr
    assert "let UDP port 4789 pass there" in done.stderr
    assert "Traceback" not in done.stderr
    assert_idle(servers, ("a", "b"))


def test_the_servers_choose_the_scale(servers: TestServers, tmp_path: Path) -> None:
    file = servers.write_file(("a", "b", "c"))
    arguments = (*LEAFSPINE, "--modes", "no_pool", "--scale", "auto", "--servers", str(file))
    of_any_size = {name: value for name, value in os.environ.items() if name != "WEIR_VALUE_BYTES"}
    done = subprocess.run(
        command(tmp_path, *arguments), env=of_any_size, capture_output=True, text=True, timeout=RUN_TIMEOUT_S,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["scale_chosen"] == "by the machine"
    assert summary["scale"] >= 1
    assert f"sigma {summary['scale']:g}" in done.stdout
    assert "Of the servers," in done.stdout
    assert all(one["carries_bit_s"] > one["asked_bit_s"] > 0 for one in summary["tunnels"])
    # The servers' network carries 1,500 bytes, the longest frame is longer.
    assert all(one["frame_bytes"] > 8192 and one["frames_per_s"] > 0 for one in summary["tunnels"])
    assert_idle(servers, ("a", "b", "c"))


def test_captures_come_back_with_our_times(servers: TestServers, tmp_path: Path) -> None:
    file = servers.write_file(("a", "b"))
    began_s = time.time()
    played(tmp_path, *STAR, "--modes", "no_pool", "--pcap", "node1,store1", "--servers", str(file))
    for name in ("node1", "store1"):
        capture = tmp_path / "pcap" / f"no_pool.{name}.pcapng"
        with RawPcapNgReader(str(capture)) as packets:
            times_s = [((about.tshigh << 32) + about.tslow) / about.tsresol for _, about in packets]
        assert len(times_s) > 10
        assert began_s < min(times_s)
        assert max(times_s) < time.time()
