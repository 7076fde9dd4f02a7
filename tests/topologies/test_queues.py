"""What waits in front of links, against what tc says. Needs root."""

import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from topologies.errors import TopologyError
from topologies.queues import Queues

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
]
SLOW = """
ip link add q0 type veth peer name q1
ip address add 10.9.0.1/24 dev q0
ip link set q0 up; ip link set q1 up
ip neigh replace 10.9.0.2 lladdr 02:00:00:00:00:02 dev q0
tc qdisc add dev q0 root handle 5:0 htb default 1
tc class add dev q0 parent 5:0 classid 5:1 htb rate 8kbit burst 1600 cburst 1600 quantum 1514
echo ready; exec sleep 600
"""
FLOOD = """
import socket
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as flood:
    for _ in range(40):
        flood.sendto(bytes(1000), ("10.9.0.2", 9))
"""


@pytest.fixture
def pid() -> Iterator[int]:
    """A process in a namespace with a link of 8 kbit/s."""
    command = ["unshare", "--net", "sh", "-ec", SLOW]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield process.pid
        finally:
            process.kill()


def inside(pid: int, *command: str) -> str:
    done = subprocess.run(["nsenter", f"--net=/proc/{pid}/ns/net", *command], check=True, capture_output=True)
    return done.stdout.decode()


def test_what_waits_is_what_tc_says(pid: int) -> None:
    with Queues({"slow": pid}) as queues:
        assert queues.waiting_bytes()["q0"] == 0
        inside(pid, "python3", "-c", FLOOD)
        waiting = queues.waiting_bytes()["q0"]
        words = inside(pid, "tc", "-s", "qdisc", "show", "dev", "q0").split()
        still = int(words[words.index("backlog") + 1].removesuffix("b"))
        assert 20_000 < still <= waiting <= 40 * 1042


def test_reading_moves_nobody_into_the_namespace(pid: int) -> None:
    before = Path("/proc/self/ns/net").readlink()
    with Queues({"slow": pid}):
        assert Path("/proc/thread-self/ns/net").readlink() == before
        assert "q0" not in dict(socket.if_nameindex()).values()


def test_a_process_that_is_gone_is_an_error() -> None:
    with pytest.raises(TopologyError, match="No such file"):
        Queues({"gone": 2**22 + 1})
