"""Networks in namespaces: reachability, rates, and that nothing is left behind. Needs root."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from topologies import run_records
from topologies.certificates import Certificates
from topologies.engines import Artifacts, Engine
from topologies.errors import EngineError, TopologyError
from topologies.network import Network
from topologies.star import star

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")
pytestmark = pytest.mark.root


class BrokenEngine(Engine):
    """An engine whose switch ends with an error at once."""

    name = "broken"

    def compile(
        self, program: Path, defines: Mapping[str, int], into: Path, *, in_full: bool = True
    ) -> Artifacts:
        raise NotImplementedError

    def command(
        self,
        device_id: int,
        interfaces: Sequence[tuple[int, str]],
        address: str,
        certificates: Certificates | None = None,
    ) -> list[str]:
        return [sys.executable, "-c", "import sys; sys.exit('no ASIC in this machine')"]


def processes_of(directory: Path) -> list[int]:
    """Pids in the record of the network that works in `directory`."""
    (record,) = [p for p in run_records.records() if p.name == directory.name]
    return [int(line.split()[0]) for line in record.read_text().splitlines()[2:]]


@needs_root
def test_hosts_have_their_addresses_and_know_each_other() -> None:
    with Network(star(2, 1, 1e7), BrokenEngine()) as net:
        shown = net.mininet["node1"].cmd(
            "ip -color=never -4 -o addr show dev node1-eth0; ip -color=never neigh"
        )
    assert "10.0.0.1/8" in shown
    assert re.search(r"10\.0\.0\.3 dev node1-eth0 lladdr 02:00:00:00:00:03 PERMANENT", shown)
    assert "10.255.0.1 dev node1-eth0" in shown


@needs_root
def test_links_are_shaped_and_offloads_off() -> None:
    with Network(star(1, 1, 2.5e9), BrokenEngine()) as net:
        for name, interface in (("node1", "node1-eth0"), ("s1", "s1-eth1")):
            assert "rate 2500Mbit" in net.mininet[name].cmd(f"tc -color=never class show dev {interface}")
            assert "tx-checksumming: off" in net.mininet[name].cmd(f"ethtool -k {interface}")


@needs_root
def test_nothing_is_left_behind() -> None:
    with Network(star(2, 1, 1e7), BrokenEngine()) as net:
        directory = net.directory
        child = net.popen("node1", ["sleep", "1000"])
        pids = processes_of(directory)
        assert child.pid in pids
    assert not directory.exists()
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
    assert not [p for p in run_records.records() if p.name == directory.name]


@needs_root
def test_nothing_is_left_behind_by_a_failure() -> None:
    said = r"switch s1 \(broken\) did not start:\nno ASIC in this machine"
    with Network(star(1, 1, 1e7), BrokenEngine()) as net:
        pids = processes_of(net.directory)
        with pytest.raises(EngineError, match=said):
            net.start_switches()
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


@needs_root
def test_what_a_killed_run_left_is_cleaned() -> None:
    code = (
        "import sys; from topologies.network import Network; from topologies.star import star\n"
        "with Network(star(1, 1, 1e7), None) as net:\n"
        "    print(net.directory, flush=True); sys.stdin.read()"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    directory = Path(child.stdout.readline().strip())
    pids = processes_of(directory)
    child.kill()
    child.communicate()
    run_records.clean()
    assert not directory.exists()
    assert not [pid for pid in pids if run_records.start_time(pid) and "Z" not in _state(pid)]


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


@needs_root
def test_a_delay_without_netem_is_an_error() -> None:
    refused = ""
    try:
        Network(star(1, 1, 1e7), BrokenEngine(), delay_ms=5)
    except TopologyError as error:
        refused = str(error)
    if not refused:
        pytest.skip("this kernel has netem: a delay works")
    assert "a link delay of 5 ms needs the kernel's netem" in refused


def test_without_root_one_line_says_what_needs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(TopologyError, match=r"need root: .*make test") as error:
        Network(star(1, 1, 1e7), BrokenEngine())
    assert "\n" not in str(error.value)
