"""What a machine has to have for networks, and what is said where it has not. Most of it needs root."""

import os
import resource
import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.topologies.test_network import BrokenEngine
from topologies import machine_check
from topologies.errors import TopologyError
from topologies.machine_check import check_machine, check_open_files, complete_path, try_in_namespace
from topologies.network import Network
from topologies.star import star

ROOT = Path(__file__).parents[2]
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")
WATCHED = """
import subprocess, threading, time
from tests.topologies.test_network import BrokenEngine
from topologies.network import Network
from topologies.shaping import require
from topologies.star import star

monitor = subprocess.Popen(["ip", "-o", "monitor", "link"], stdout=subprocess.PIPE, text=True)
lines = []
threading.Thread(target=lambda: lines.extend(iter(monitor.stdout.readline, "")), daemon=True).start()

def until_seen(name):
    "Events come in order: who has seen this one has seen all before."
    while not any(name in line for line in tuple(lines)):
        subprocess.run(f"ip link add {name} type veth && ip link del {name}", shell=True, check=True)
        time.sleep(0.01)

try:
    until_seen("weir-seen")
    with Network(star(2, 1, 1e7), BrokenEngine()):
        pass
    require(0.0, requests_first=True)
    until_seen("weir-end")
finally:
    monitor.kill()
    monitor.wait()
    print("".join(lines))
"""
CHECK = "from topologies.machine_check import check_machine; check_machine()"


def program(folder: Path, name: str, script: str) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def checked_under(*wrapper: str) -> str:
    """What the check says in a process that is started by a wrapper; "" if it has nothing to say."""
    done = subprocess.run(
        [*wrapper, sys.executable, "-c", CHECK],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.stderr.strip().splitlines()[-1] if done.returncode else ""


def in_a_namespace_of_its_own(code: str) -> str:
    """Run code in a new network namespace, where nothing else makes interfaces; return what it prints."""
    done = subprocess.run(
        ["unshare", "--net", sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.root
@needs_root
def test_a_machine_with_all_of_it_passes_and_nothing_is_left() -> None:
    code = f"import socket; {CHECK}; print([name for _, name in socket.if_nameindex()])"
    assert in_a_namespace_of_its_own(code) == "['lo']\n"


@pytest.mark.root
@needs_root
@pytest.mark.parametrize(
    ("capability", "said"),
    [("sys_admin", "CAP_SYS_ADMIN"), ("net_admin", "a pair of veth interfaces can't be made")],
)
def test_a_container_without_a_capability_is_told_which_to_grant(capability: str, said: str) -> None:
    began_s = time.monotonic()
    dropped = f"-{capability}"
    assert said in checked_under("setpriv", f"--bounding-set={dropped}", f"--inh-caps={dropped}", "--")
    assert time.monotonic() - began_s < 30


def test_path_is_completed_with_the_folders_of_administrators(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/usr/sbin:/bin")
    complete_path()
    complete_path()
    assert os.environ["PATH"] == "/usr/bin:/usr/sbin:/bin:/usr/local/sbin:/sbin"


@pytest.mark.root
@needs_root
def test_without_sbin_in_path_a_network_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/local/bin:/usr/bin:/bin")
    with Network(star(1, 1, 1e7), BrokenEngine()) as net:
        assert "10.0.0.1" in net.mininet["node1"].cmd("ip -4 -o addr show dev node1-eth0")


@pytest.mark.root
@needs_root
def test_missing_programs_are_named_by_their_packages(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(machine_check, "SBIN", ())
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(TopologyError, match="apt-get install ethtool iproute2 mininet net-tools util-linux"):
        check_machine()


@pytest.mark.root
@needs_root
@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"__init__.py": "", "net.py": 'VERSION = "2.2.2"\n'}, "is version 2.2.2, and Weir needs 2.3"),
        ({"__init__.py": ""}, "is not a Mininet that Weir knows"),
    ],
)
def test_another_mininet_that_comes_first_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, files: dict[str, str], said: str
) -> None:
    (tmp_path / "mininet").mkdir()
    for name, text in files.items():
        (tmp_path / "mininet" / name).write_text(text)
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}"}
    done = subprocess.run(
        [sys.executable, "-c", CHECK],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert f"{tmp_path}/mininet {said}" in done.stderr


def test_without_mininet_the_network_s_module_can_be_imported(tmp_path: Path) -> None:
    code = "import sys; sys.modules['mininet'] = None; import topologies.network, topologies.shaping"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


@pytest.mark.root
@needs_root
def test_a_kernel_without_queues_is_told_what_to_load(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    real = shutil.which("tc")
    refuse = 'case "$*" in *htb*) echo "Error: Specified qdisc kind is unknown." >&2; exit 2;; esac'
    refuse += f'; exec {real} "$@"'
    program(tmp_path / "bin", "tc", refuse)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    with pytest.raises(TopologyError, match=r"HTB, which is not here .*qdisc kind is unknown.*sch_htb.*WSL"):
        Network(star(1, 1, 1e7), BrokenEngine())


@pytest.mark.root
@needs_root
def test_drops_are_counted_where_tc_colours_what_it_prints(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program(tmp_path / "bin", "tc", f'exec {shutil.which("tc")} -color=always "$@"')
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    with Network(star(1, 1, 1e5), BrokenEngine(), queue_packets=1) as net:
        assert net.link_drops() == 0
        # A flood from the switch's end of the link, whose queue holds one packet.
        net.mininet["s1"].cmd(
            "ip address add 10.9.9.9/8 dev s1-eth1; ping -q -f -c 300 -s 1400 -w 3 10.0.0.1"
        )
        assert net.link_drops() > 0


NETWORK = (
    "from topologies.network import Network; from topologies.star import star\n"
    "with Network(star(1, 1, 1e7), None) as net:\n"
    "    print(net.transmitted_bytes('node1') >= 0, net.mininet['node1'].cmd('ip link').count('weir'))"
)
# A seccomp filter (seccomp(2), BPF): mount(2) fails with EPERM, everything else is allowed.
NO_MOUNTS = """
import ctypes, platform, struct
number = {"x86_64": 165, "aarch64": 40}[platform.machine()]
program = b"".join(struct.pack("=HBBI", *one) for one in (
    (0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7FFF0000)))
code = ctypes.create_string_buffer(program)
filter = struct.pack("=HxxxxxxQ", 4, ctypes.addressof(code))
assert ctypes.CDLL(None, use_errno=True).prctl(22, 2, filter, 0, 0) == 0
"""


def network_after(*command: str) -> list[str]:
    """What NETWORK prints when a command runs it."""
    done = subprocess.run([*command], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.root
@needs_root
@pytest.mark.parametrize(
    "mounts",
    [
        "mount --bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys",
        "mount -t tmpfs weir /proc/sys/net/ipv6",
    ],
    ids=["read-only", "no IPv6"],
)
def test_a_proc_sys_that_is_read_only_or_has_no_ipv6_has_networks(mounts: str) -> None:
    script = f'{mounts} && exec "$@"'
    said = network_after("unshare", "--mount", "sh", "-c", script, "sh", sys.executable, "-c", NETWORK)
    assert said == ["True", "0"]


@pytest.mark.root
@needs_root
def test_a_sandbox_that_refuses_mounts_has_networks() -> None:
    """Mininet's own way to make a node mounts /sys, and waits forever where that is refused."""
    assert network_after(sys.executable, "-c", NO_MOUNTS + NETWORK) == ["True", "0"]
    mininets_way = "import os; os.execvp('mnexec', ['mnexec', '-n', 'true'])"
    tried = subprocess.run([sys.executable, "-c", NO_MOUNTS + mininets_way], capture_output=True, check=False)
    assert tried.returncode != 0


@pytest.mark.root
@needs_root
def test_no_interface_is_ever_seen_outside_of_its_namespace() -> None:
    """NetworkManager and its like take what they see for their own."""
    seen = in_a_namespace_of_its_own(WATCHED)
    assert "weir-seen" in seen  # the monitor works
    assert not [name for name in ("node1", "s1-eth", "weir0") if name in seen]


def test_the_limit_of_open_files_is_raised_where_it_may_be() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (200, hard))
        check_open_files(30)
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] >= 30 * machine_check.FILES_PER_VERTEX
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_where_it_may_not_be_raised_the_limit_is_named() -> None:
    """Root may; so the process is a user's once it has imported what a user may not be able to read."""
    code = (
        "import os; from topologies.machine_check import check_open_files\n"
        "if os.geteuid() == 0: os.setuid(65534)\n"
        "check_open_files(203)"
    )
    command = ["sh", "-c", 'ulimit -n 1024; exec "$@"', "sh", sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert "this process may have 1024: raise the limit (ulimit -Hn" in done.stderr


def test_a_refused_command_is_quoted() -> None:
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    assert try_in_namespace(["ip link set weir0 up"]) == ""
    assert "Cannot find device" in try_in_namespace(["ip link set nothing up"])
    assert not Path("/sys/class/net/weir0").exists()


@pytest.mark.root
@needs_root
def test_a_full_disk_is_found_before_anything_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_check, "LEAST_FREE_BYTES", 1 << 60)
    with pytest.raises(TopologyError, match=r"MB left, .* TMPDIR"):
        check_machine()
