"""A router as a process, with nodes that the test plays."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from workload.generate import to_line
from workload.keys import KeySpace
from workload.trace import Request

ROOT = Path(__file__).parents[3]
REQUESTS = [Request(0.0, 512 * 3, 1, (1, 2, 3 + n)) for n in range(6)]
HEX = [key.hex() for key in KeySpace().chain((1, 2))]


class Router:
    """The process, its files, and connections to it."""

    def __init__(self, folder: Path, **changes: Any) -> None:
        self.result, self._socket = folder / "result.json", folder / "socket"
        (folder / "trace.jsonl").write_text("".join(f"{to_line(request)}\n" for request in REQUESTS))
        config = {
            "result": str(self.result),
            "socket": str(self._socket),
            "nodes": ["node1", "node2"],
            "homes": ["10.0.0.9"],
            "trace": str(folder / "trace.jsonl"),
            "link_bit_s": 1e7,
        }
        (folder / "router.json").write_text(json.dumps(config | changes))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "hostlib.peer.router", str(folder / "router.json")],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def wait_for(self, event: str) -> None:
        assert self.process.stdout is not None
        assert any(json.loads(line)["event"] == event for line in self.process.stdout), event

    def say(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def connect(self, *messages: dict[str, Any]) -> socket.SocketIO:
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(60)
        connection.connect(str(self._socket))
        connection.sendall(b"".join(json.dumps(message).encode() + b"\n" for message in messages))
        file = connection.makefile("rwb", buffering=0)
        connection.close()
        return file

    def end(self) -> tuple[int, str]:
        """Exit code and words of one that ends by itself: the end of its stdin would stop it."""
        self.process.wait(60)
        _, errors = self.process.communicate(timeout=60)
        return self.process.returncode, errors


@pytest.fixture
def router(tmp_path: Path) -> Iterator[Router]:
    made = Router(tmp_path)
    try:
        yield made
    finally:
        made.process.kill()
        made.process.communicate()


def received(node: socket.SocketIO) -> list[dict[str, Any]]:
    messages = []
    for line in node:
        messages.append(json.loads(line))
        if "end" in messages[-1]:
            return messages[:-1]
    raise AssertionError("the router is gone")


def test_requests_go_where_the_prefix_is_held(router: Router) -> None:
    router.wait_for("ready")
    controller = router.connect({"switch": "s1", "held": HEX})
    other = router.connect({"node": "node1"})
    holder = router.connect({"node": "node2"}, {"held": HEX})
    router.say("start")
    first = json.loads(holder.readline())
    assert first["request"][1:] == [512 * 3, 1, [1, 2, 3]]
    assert not first["fetch"]
    holder.write(json.dumps({"prefilled": first["number"]}).encode() + b"\n")
    served = {"node1": received(other), "node2": [first, *received(holder)]}
    assert sum(map(len, served.values())) == len(REQUESTS)
    assert served["node1"][0]["fetch"]  # the pool has the prefix, and the holder is busy
    router.wait_for("finished")
    router.say("stop")
    assert router.end() == (0, "")
    result = json.loads(router.result.read_text())
    assert result["conductor"]["assigned"] == len(result["records"]) == len(REQUESTS)
    assert result["pooled_blocks"] == len(HEX)
    controller.close()


def test_a_node_that_goes_away_ends_the_run_with_its_name(router: Router) -> None:
    router.wait_for("ready")
    router.connect({"node": "node1"}).close()
    router.say("start")
    code, errors = router.end()
    assert code == 2
    assert "node1 went away before all requests were sent" in errors


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ({"node": "node9"}, "a node that says it is 'node9' is not expected"),
        ({"node": ["node1"]}, "is not expected"),
        ({"held": HEX}, "who speaks?"),
    ],
)
def test_a_stranger_is_refused_with_a_reason(router: Router, message: dict[str, Any], said: str) -> None:
    router.wait_for("ready")
    connection = router.connect(message)
    router.say("start")
    assert connection.read() == b""
    code, errors = router.end()
    assert code == 2
    assert said in errors


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"nodes": []}, "nodes must name at least one node"),
        ({"link_bit_s": 0}, "link_bit_s must be above 0"),
        ({"ttft_slo_s": -1}, "ttft_slo_s must be above 0"),
        ({"socket": "/nonexistent/socket"}, "socket: /nonexistent/socket"),
    ],
)
def test_a_bad_configuration_is_one_clear_error(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    code, errors = Router(tmp_path, **changes).end()
    assert code == 2
    assert said in errors
    assert len(errors.splitlines()) == 1
