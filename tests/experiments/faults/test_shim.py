"""A shim between two interfaces, in a network namespace of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
]

FRAMES = 200
SCRIPT = r"""
import json, select, socket, subprocess, sys

shares, count = json.loads(sys.argv[1]), int(sys.argv[2])
for scope in "all", "default":
    subprocess.run(["sysctl", "-qw", f"net.ipv6.conf.{scope}.disable_ipv6=1"], check=True)
for one, other in ("a0", "a1"), ("b0", "b1"):
    subprocess.run(["ip", "link", "add", one, "type", "veth", "peer", "name", other], check=True)
    for name in (one, other):
        subprocess.run(["ip", "link", "set", name, "up"], check=True)
ends = []
for name in sys.argv[3:]:
    end = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    end.bind((name, 3))
    ends.append(end)
pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
shim = subprocess.Popen([sys.executable, "-m", "experiments.faults.shim", "1", "a1:b0"], **pipes)
shim.stdout.readline()
shim.stdin.write(json.dumps(shares) + "\n")
shim.stdin.flush()
shim.stdout.readline()
came = []
for number in range(count):
    ends[0].send(bytes(12) + b"\x88\xb5" + number.to_bytes(2, "big") + bytes(100))
while select.select([ends[1]], [], [], 0.5)[0]:
    came.append(ends[1].recv(2048).hex())
shim.stdin.write("{}\n")
shim.stdin.flush()
said = json.loads(shim.stdout.readline())
shim.stdin.write("stop\n")
shim.stdin.flush()
print(json.dumps({"came": came, "said": said, "code": shim.wait(10)}))
"""


def carried(to_host: bool = False, **shares: float | str) -> tuple[list[bytes], dict[str, int]]:
    """What came at the other end of frames numbered from 0 on, from the host or to it, and what the shim
    counted."""
    ends = ("b1", "a0") if to_host else ("a0", "b1")
    command = ["unshare", "--net", sys.executable, "-c", SCRIPT, json.dumps(shares), str(FRAMES), *ends]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["code"] == 0
    assert said["said"]["forwarded"] == FRAMES
    return [bytes.fromhex(frame) for frame in said["came"]], said["said"]


def numbers(frames: list[bytes]) -> list[int]:
    return [int.from_bytes(frame[14:16], "big") for frame in frames]


def test_a_shim_that_is_told_nothing_changes_nothing() -> None:
    came, _ = carried()
    assert numbers(came) == list(range(FRAMES))


def test_frames_are_repeated_and_held_back_and_none_is_lost() -> None:
    came, counts = carried(duplicate=0.2, reorder=0.2)
    assert set(numbers(came)) == set(range(FRAMES))
    assert len(came) == FRAMES + counts["duplicate"]
    assert numbers(came) != sorted(numbers(came))
    assert min(counts["duplicate"], counts["reorder"]) > FRAMES / 10


def test_a_flipped_bit_is_one_bit_behind_the_ethernet_header() -> None:
    came, counts = carried(flip=1.0)
    assert counts["flip"] == FRAMES
    for number, frame in enumerate(came):
        sent = bytes(12) + b"\x88\xb5" + number.to_bytes(2, "big") + bytes(100)
        assert frame[:14] == sent[:14]
        assert sum((one ^ other).bit_count() for one, other in zip(frame, sent, strict=True)) == 1


@pytest.mark.parametrize("to_host", [False, True])
def test_one_way_of_a_link_fails_and_the_other_does_not(to_host: bool) -> None:
    for kind in ("deaf", "mute"):
        came, counts = carried(to_host, **{kind: 1.0})
        gone = FRAMES if to_host == (kind == "deaf") else 0
        assert (len(came), counts.get("lost", 0)) == (FRAMES - gone, gone)


def test_long_frames_are_lost_and_short_ones_pass() -> None:
    assert len(carried(longest=115)[0]) == 0
    assert len(carried(longest=116)[0]) == FRAMES


def test_a_share_is_lost_and_only_where_it_was_said() -> None:
    assert FRAMES * 0.5 < len(carried(lose=0.3)[0]) < FRAMES * 0.9
    assert len(carried(lose=0.3, only="another")[0]) == FRAMES
    assert len(carried(lose=1.0, only="a1")[0]) == 0
