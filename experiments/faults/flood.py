"""Generator of frames from one port at a fixed rate, which also counts the messages that come back.

    python -m experiments.faults.flood INTERFACE

    stdout  < {"event": "ready"}
    stdin   > {"rate_per_s": N, "frames": [HEXADECIMAL, ...]}     sends them in turn until the next line
    stdin   > {"pause": true}
    stdout  < {"event": "paused", "sent": N, "received": {OPERATION: {TENANT: N}}}
    stdin   > stop                                                or its end

The frames go out of INTERFACE, and the messages of the protocol that come in there are counted.
"""

from __future__ import annotations

import json
import select
import socket
import sys
import time
from collections import Counter
from typing import Any

from hostlib.protocol import wire
from hostlib.protocol.errors import MalformedError

PERIOD_S = 0.01
HEADERS_BYTES = 14 + 20 + 8
ETH_P_ALL = 3


def main(arguments: list[str]) -> int:
    """Flood as stdin says, until it says "stop" or ends. Returns exit code 0."""
    (interface,) = arguments
    out = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    out.bind((interface, 0))
    back = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    back.bind((interface, ETH_P_ALL))
    back.setblocking(False)
    print(json.dumps({"event": "ready"}), flush=True)
    while (line := sys.stdin.readline().strip()) and line != "stop":
        command = json.loads(line)
        if "frames" in command:
            frames = [bytes.fromhex(frame) for frame in command["frames"]]
            _flood(out, back, frames, command["rate_per_s"] * PERIOD_S)
    return 0


def _flood(out: socket.socket, back: socket.socket, frames: list[bytes], at_once: float) -> None:
    """Send `at_once` frames in each period, on average, until the next line comes."""
    sent, due, received = 0, 0.0, Counter[tuple[int, int]]()
    due_s = time.monotonic()
    while not select.select([sys.stdin], [], [], max(0.0, due_s - time.monotonic()))[0]:
        due += at_once
        while sent < round(due):
            out.send(frames[sent % len(frames)])
            sent += 1
        due_s = max(due_s + PERIOD_S, time.monotonic() - PERIOD_S)
        _take(back, received)
    sys.stdin.readline()  # the line that ends the flood
    _take(back, received)
    by_operation: dict[str, dict[str, int]] = {}
    for (operation, tenant), count in received.items():
        by_operation.setdefault(str(operation), {})[str(tenant)] = count
    _report(sent, by_operation)


def _take(back: socket.socket, received: Counter[tuple[int, int]]) -> None:
    """Count the protocol's messages that came in, in at most 4,096 frames, so as not to delay the flood."""
    for _ in range(4096):
        try:
            frame, address = back.recvfrom(2048)
        except BlockingIOError:
            return
        if address[2] == socket.PACKET_OUTGOING:
            continue
        try:
            message = wire.decode(frame[HEADERS_BYTES:])
        except MalformedError:
            continue
        received[message.op, message.tenant] += 1


def _report(sent: int, received: dict[str, Any]) -> None:
    print(json.dumps({"event": "paused", "sent": sent, "received": received}), flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
