"""Hosts as they are run: processes that talk through the network, controlled by lines."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hostlib.process.observe import OBSERVE_S
from tests.hostlib.loopback import own_address
from workload.cost import make_cost_model
from workload.keys import KeySpace
from workload.scale import ScaleModel

ROOT = Path(__file__).parents[3]
SIGMA = 20_000.0
BLOCK_BYTES = ScaleModel(SIGMA).block_bytes(make_cost_model().block_bytes)

PROGRAMS = {
    "worker": "hostlib.node.worker",
    "storage": "hostlib.storage.storage",
    "index": "hostlib.peer.index",
}


class Host:
    """One host process."""

    def __init__(self, room: str, config: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", PROGRAMS[room], str(config)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def command(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def wait_for(self, event: str) -> dict[str, Any]:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            message: dict[str, Any] = json.loads(line)
            if message["event"] == event:
                return message
        raise AssertionError(f"ended before {event!r}")

    def end(self) -> tuple[int, str]:
        _, errors = self.process.communicate(timeout=60)
        return self.process.returncode, errors


class Hosts:
    """Hosts of one test and their files."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.running: list[Host] = []

    def start(self, room: str, name: str, **config: object) -> Host:
        path = self.directory / f"{name}.json"
        path.write_text(json.dumps({"result": str(self.directory / f"{name}.out")} | config))
        self.running.append(Host(room, path))
        return self.running[-1]

    def storage(self, name: str = "storage", **config: object) -> Host:
        defaults = {"address": own_address(), "block_bytes": BLOCK_BYTES, "dram_bytes": 50 * BLOCK_BYTES}
        return self.start("storage", name, **(defaults | config))

    def worker(self, name: str, homes: list[str], lines: list[dict[str, object]], **changes: object) -> Host:
        trace = self.directory / f"{name}.jsonl"
        trace.write_text("".join(json.dumps(line) + "\n" for line in lines))
        defaults: dict[str, object] = {
            "address": own_address(),
            "homes": homes,
            "trace": str(trace),
            "gpu_blocks": 4,
            "dram_blocks": 4,
            "sigma": SIGMA,
            "speed": 10,
            "silence_s": 20.0,  # other tests keep the machine busy
        }
        return self.start("worker", name, **(defaults | changes))

    def result(self, name: str) -> dict[str, Any]:
        loaded: dict[str, Any] = json.loads((self.directory / f"{name}.out").read_text())
        return loaded


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[Hosts]:
    hosts = Hosts(tmp_path)
    yield hosts
    for host in hosts.running:
        host.process.kill()
        host.process.communicate()


def line(timestamp_ms: int, *blocks: int) -> dict[str, object]:
    return {
        "timestamp": timestamp_ms,
        "input_length": 512 * len(blocks),
        "output_length": 20,
        "hash_ids": list(blocks),
    }


def test_workers_share_blocks_through_a_storage_node(hosts: Hosts, tmp_path: Path) -> None:
    home = own_address()
    preload = tmp_path / "preload"
    preload.write_text("".join(key.hex() + "\n" for key in KeySpace().chain([100, 101])))
    storage = hosts.storage(
        address=home,
        preload=str(preload),
        dram_bytes=2 * BLOCK_BYTES,
        ssd_dir=str(tmp_path / "ssd"),
        ssd_bytes=100 * BLOCK_BYTES,
        link_bit_s=1e9,
    )
    first = hosts.worker("first", [home], [line(0, 1, 2, 3), line(20, 100, 101, 102)])
    second = hosts.worker("second", [home], [line(0, 1, 2, 3, 4)])
    idle = hosts.worker("idle", [home], [])
    for host in hosts.running:
        host.wait_for("ready")
    storage.command("start")
    for worker in (first, second, idle):  # one after the other: what the first stores, the second finds
        worker.command("start")
        worker.wait_for("finished")
    assert storage.wait_for("progress")["gets"] > 0
    for host in hosts.running:
        host.command("report")
    assert storage.wait_for("report")["storage"]["values"] > 0
    said = first.wait_for("report")
    assert (said["get"]["up_to"][-1], said["ttft"]["up_to"][-1]) == (2, 2)
    assert "records" not in said
    for host in hosts.running:
        host.command("stop")
        assert host.end() == (0, "")
    one, two = hosts.result("first"), hosts.result("second")
    assert one["blocks"] == {"gpu": 0, "dram": 0, "pool": 0, "remote": 2, "recomputed": 4}
    assert two["blocks"] == {"gpu": 0, "dram": 0, "pool": 0, "remote": 3, "recomputed": 1}
    assert (one["node"]["completed"], two["node"]["completed"]) == (2, 1)
    assert [len(result["get_ms"]) for result in (one, two)] == [2, 3]
    (fetched,) = two["records"]
    assert sum(fetched["waits_s"].values()) == pytest.approx(fetched["fetch_s"])
    assert fetched["tokens"] == 20
    assert one["client"]["corrupt"] == two["client"]["corrupt"] == 0
    assert hosts.result("idle")["requests"] == 0
    stored = hosts.result("storage")
    assert stored["store"]["stored"] == 5
    assert stored["store"]["held"]["ssd"] > 0
    assert stored["endpoint"]["egress_frame_bytes"] > 5 * BLOCK_BYTES
    assert set(stored["process"]) == {"wall_s", "cpu_s", "cpu_share", "timer_late_ms"}


def test_workers_lend_one_another_what_they_hold(hosts: Hosts, tmp_path: Path) -> None:
    nodes = [own_address() for _ in range(2)]
    shared = [key.hex() for key in KeySpace().chain([1, 2, 3])]
    preload = tmp_path / "preload"
    preload.write_text("".join(f"{key}\n" for key in shared[:2]))
    lends = {"index": str(tmp_path / "socket"), "link_bit_s": 1e9, "gate": True}
    index = hosts.start(
        "index", "index", socket=lends["index"], nodes=nodes, link_bit_s=1e9,
        block_fragments=BLOCK_BYTES / 512,
    )  # fmt: skip
    index.wait_for("ready")
    first = hosts.worker("first", nodes, [line(0, 1, 2, 3)], address=nodes[0], preload=str(preload), **lends)
    second = hosts.worker("second", nodes, [line(0, 1, 2, 3, 4)], address=nodes[1], **lends)
    for host in (first, second):
        host.wait_for("ready")
    index.command("start")
    for worker in (first, second):  # one after the other: what the first computes, the second finds
        worker.command("start")
        worker.wait_for("finished")
    for host in (first, second, index):
        host.command("stop")
        assert host.end() == (0, "")
    one, two = hosts.result("first"), hosts.result("second")
    assert one["blocks"] == {"gpu": 0, "dram": 2, "pool": 0, "remote": 0, "recomputed": 1}
    assert two["blocks"] == {"gpu": 0, "dram": 0, "pool": 0, "remote": 3, "recomputed": 1}
    assert one["lent"]["storage"]["values"] == 3 * BLOCK_BYTES // 512
    assert two["client"]["blocks_put"] == two["client"]["corrupt"] == two["client"]["unexpected"] == 0
    assert two["lent"]["index"]["asked"] == 1
    asked = hosts.result("index")
    assert (asked["located"], asked["promised"], asked["refused"]) == (3, 3, 0)


@pytest.mark.parametrize("how", ["stop", "end of stdin", "SIGTERM", "SIGINT"])
def test_a_worker_stops_when_told_and_leaves_its_result(hosts: Hosts, how: str) -> None:
    worker = hosts.worker("worker", [own_address()], [line(0, 1), line(3_600_000, 2)])
    worker.wait_for("ready")
    worker.command("start")
    assert worker.wait_for("progress")["arrived"] == 1
    if how == "stop":
        worker.command("stop")
    elif how == "end of stdin":
        assert worker.process.stdin is not None
        worker.process.stdin.close()
        worker.process.stdin = None
    else:
        worker.process.send_signal(signal.Signals[how])
    assert worker.end() == (0, "")
    result = hosts.result("worker")
    assert (result["requests"], result["node"]["arrived"]) == (2, 1)


def test_a_host_that_was_never_started_says_at_its_end_what_it_served(hosts: Hosts, tmp_path: Path) -> None:
    storage = hosts.storage()
    storage.wait_for("ready")
    storage.command("stop")
    assert storage.end() == (0, "")
    assert json.loads((tmp_path / "storage.out").read_text())["storage"]["gets"] == 0


def test_errors_are_one_line_and_exit_code_2(hosts: Hosts, tmp_path: Path) -> None:
    failures = [
        (hosts.storage("no_size", dram_bytes=0), "no_size.json: dram_bytes must be above 0"),
        (hosts.storage("strange", address="192.0.2.1"), "address: no interface of this machine has it"),
        (hosts.worker("a", ["nowhere"], []), "a.json: homes: "),
        (hosts.worker("b", [own_address()], [{"timestamp": 0}]), "b.jsonl:1: mooncake schema: no field"),
        (Host("worker", tmp_path / "missing.json"), "missing.json: No such file"),
        (Host("storage", Path("--help")), "usage: "),
    ]
    for host, reason in failures:
        code, errors = host.end()
        assert code == 2
        assert errors.count("\n") == 1
        assert reason in errors


def test_processes_start_at_a_common_time(hosts: Hosts) -> None:
    worker = hosts.worker("worker", [own_address()], [])
    worker.wait_for("ready")
    began_s = time.monotonic()
    worker.command(f"start {began_s + 0.5}")
    worker.wait_for("finished")
    assert time.monotonic() >= began_s + 0.5


def wakes(pid: int) -> int:
    """How often a process's threads have gone to sleep so far."""
    count = 0
    for status in Path(f"/proc/{pid}/task").glob("*/status"):
        lines = status.read_text().splitlines()
        count += sum(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt_switches"))
    return count


@pytest.mark.parametrize("room", ["worker", "storage"])
def test_a_host_that_nobody_asks_for_anything_sleeps(hosts: Hosts, room: str) -> None:
    """A network has a hundred of them on two cores. Heartbeats are ten a second."""
    address = own_address()
    is_worker = room == "worker"
    host = hosts.worker("idle", [address], []) if is_worker else hosts.storage("idle", address=address)
    host.wait_for("ready")
    host.command("start")
    host.wait_for("progress")  # what it does at the start is over
    before, began_s = wakes(host.process.pid), time.monotonic()
    host.wait_for("progress")
    per_s = (wakes(host.process.pid) - before) / (time.monotonic() - began_s)
    assert per_s < 1 / OBSERVE_S + 15
    host.command("stop")
    assert host.end() == (0, "")


def test_python_does_not_walk_all_blocks_while_some_come(tmp_path: Path) -> None:
    """A million blocks would hold up others for 0.4 s each time."""
    script = """
import gc, sys
from hostlib.process import process
from hostlib.process.config import HostConfig
from hostlib.protocol.block import Block, Place
from hostlib.storage.store import BlockStore

assert process.main(HostConfig, None, ["none.json"]) == 2
whole = gc.get_stats()[2]["collections"]
store = BlockStore(1 << 30, None, None)
for number in range(200_000):
    store.put(Place(1, number.to_bytes(16, "big")), Block(1, b"x", bytes(16)), durable=False)
print(gc.get_stats()[2]["collections"] - whole)
"""
    run = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert run.stdout == "0\n"
