"""Benchmark of a tunnel between two servers: `python -m cluster.tunnel_bench ROLE ID LOCAL REMOTE BYTES`.

It runs on both at the same time, as `answer` and as `ask`. Each makes its end of a VXLAN in a network
namespace of its own, so the server's network does not change. `ask` prints one JSON line: the round-trip time
of a small packet, and how many frames of BYTES arrive when one thread sends as fast as it can.
"""

from __future__ import annotations

import errno
import json
import os
import socket
import statistics
import struct
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from hostlib.transport.endpoint import IP_MTU_DISCOVER, IP_PMTUDISC_INTERFACE
from topologies.part import Tunnel

PORT: Final = 9
ADDRESSES: Final = {"answer": "10.254.0.1", "ask": "10.254.0.2"}
ETHERNET_BYTES: Final = 14
HEADERS_BYTES: Final = 42
"""Bytes of the headers of Ethernet, IPv4 and UDP."""
LEAST_MTU: Final = 576
PINGS: Final = 200
PING_TIMEOUT_S: Final = 0.5
BLAST_S: Final = 0.4
SEGMENTS: Final = 32
"""Number of frames that are handed to the kernel at a time."""
REACHED_S: Final = 10.0
SILENCE_S: Final = 20.0
_UDP_SEGMENT, _UDP_GRO = 103, 104
_PING, _COUNT = b"ping", b"count"
_MAX_BYTES = 1 << 16


def main(arguments: Sequence[str]) -> int:
    """Make the tunnel and measure it in a new network namespace; returns the exit code."""
    role, network_id, local, remote, size_bytes = arguments
    tunnel = Tunnel(role, "", int(network_id), local, remote)
    program = [sys.executable, "-m", "cluster.tunnel_bench", "inside", role, size_bytes]
    with subprocess.Popen(["unshare", "--net", "--", *program], stdin=subprocess.PIPE, text=True) as process:
        try:
            ours = Path("/proc/self/ns/net").stat().st_ino
            while Path(f"/proc/{process.pid}/ns/net").stat().st_ino == ours:
                time.sleep(0.01)
            for command in tunnel.commands(f"weirm{os.getpid()}", "tunnel", process.pid):
                subprocess.run(command.split(), check=True)
            process.communicate("go\n")
        except BaseException:
            process.kill()
            raise
    return process.returncode


def inside(role: str, size_bytes: int) -> int:
    """Wait in the namespace for the tunnel, and measure it; return the exit code."""
    sys.stdin.readline()
    commands = (
        f"ip link set dev tunnel mtu {max(LEAST_MTU, size_bytes - ETHERNET_BYTES)}",
        f"ip addr add {ADDRESSES[role]}/24 dev tunnel",
        "ip link set dev tunnel up",
    )
    for command in commands:
        subprocess.run(command.split(), check=True)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:
        link.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_INTERFACE)  # as hosts set it
        if role == "answer":
            link.bind((ADDRESSES[role], PORT))
            answer(link)
        else:
            link.connect((ADDRESSES["answer"], PORT))
            print(json.dumps(ask(link, size_bytes - HEADERS_BYTES)))
    return 0


def answer(link: socket.socket) -> None:
    """Answer pings and count other packets; when asked for the count, send it and end."""
    link.setsockopt(socket.IPPROTO_UDP, _UDP_GRO, 1)
    link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
    link.settimeout(SILENCE_S)
    received_bytes, first_s, last_s = 0, 0.0, 0.0
    while True:
        data, sender = link.recvfrom(_MAX_BYTES)
        if data[:4] == _PING:
            link.sendto(data, sender)
        elif data[:5] == _COUNT:
            link.sendto(struct.pack("!Qd", received_bytes, last_s - first_s), sender)
            return
        else:
            last_s = time.monotonic()
            first_s = first_s or last_s
            received_bytes += len(data)


def ask(link: socket.socket, payload_bytes: int) -> dict[str, float]:
    """Measure the tunnel; raises TimeoutError if nothing comes through."""
    link.settimeout(PING_TIMEOUT_S)
    _reach(link)
    rtts_s = []
    for number in range(PINGS):
        asked_s = time.monotonic()
        link.send(_PING + struct.pack("!I", number))
        try:
            while struct.unpack("!I", link.recv(_MAX_BYTES)[4:8])[0] != number:
                pass
        except TimeoutError:
            continue
        rtts_s.append(time.monotonic() - asked_s)
    used_s = time.process_time()
    sent = _blast(link, payload_bytes)
    used_s = time.process_time() - used_s
    received_bytes, took_s = _count(link)
    frames = received_bytes / payload_bytes
    return {
        "rtt_us": 1e6 * statistics.median(rtts_s) if rtts_s else float("inf"),
        "lost_share": 1 - len(rtts_s) / PINGS,
        "frames_per_s": frames / took_s if took_s > 0 else 0.0,
        "send_us": 1e6 * used_s / max(1, sent),
    }


def _reach(link: socket.socket) -> None:
    """Wait until the other end is there."""
    deadline_s = time.monotonic() + REACHED_S
    while time.monotonic() < deadline_s:
        link.send(_PING + struct.pack("!I", PINGS))
        try:
            link.recv(_MAX_BYTES)
        except (TimeoutError, ConnectionRefusedError):
            continue
        return
    raise TimeoutError(f"nothing came through the tunnel within {REACHED_S:g} s")


def _blast(link: socket.socket, payload_bytes: int) -> int:
    """Send as fast as possible for BLAST_S; returns how many frames."""
    segments = max(1, min(SEGMENTS, 60_000 // payload_bytes))
    link.setsockopt(socket.IPPROTO_UDP, _UDP_SEGMENT, payload_bytes)
    data, sent, end_s = bytes(payload_bytes * segments), 0, time.monotonic() + BLAST_S
    while time.monotonic() < end_s:
        try:
            link.send(data)
        except (BlockingIOError, TimeoutError):
            time.sleep(0.001)
            continue
        except OSError as error:
            if error.errno != errno.ENOBUFS:
                raise
            time.sleep(0.001)
            continue
        sent += segments
    link.setsockopt(socket.IPPROTO_UDP, _UDP_SEGMENT, 0)
    return sent


def _count(link: socket.socket) -> tuple[int, float]:
    """Return the bytes that the other end received, and the seconds between the first and the last."""
    for _ in range(20):
        link.send(_COUNT)
        try:
            received_bytes, took_s = struct.unpack("!Qd", link.recv(_MAX_BYTES))
        except (TimeoutError, struct.error):
            continue
        return received_bytes, took_s
    raise TimeoutError("the other end of the tunnel does not say what came")


if __name__ == "__main__":
    if sys.argv[1] == "inside":
        sys.exit(inside(sys.argv[2], int(sys.argv[3])))
    sys.exit(main(sys.argv[1:]))
