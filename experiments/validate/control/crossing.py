"""Sender and receiver that measure how much longer the first packet takes through a switch that rested.

    python -m experiments.validate.control.crossing NODE_INTERFACE STORE_INTERFACE ROUNDS

Requests for unknown blocks cross the switch one by one, alternately after a rest and soon after the previous
one. They ask for later fragments, so that they cause no digests. The kernel timestamps each request that
comes out, so that it does not matter when this process wakes up; polling would keep the switch from a core.
For each round it prints a line of JSON: the seconds after a rest, and without one.
"""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import sys
import time
from hashlib import blake2b

from experiments.bench.switch.workloads import FRAGMENTS, STORE, kv_frame
from hostlib.protocol import wire

REST_S = 0.1
AWAKE_S = 0.001
"""Seconds between requests to a switch that does not rest."""
AWAKE = 5
"""Number of requests without a rest in a round; the fastest counts, because other processes delay some."""
LONGEST_S = 0.1
"""Seconds after which a request counts as lost."""
_FRAGMENT = 1
_SO_TIMESTAMPNS = 35
"""Number of a socket option of Linux; the module socket has no name for it."""
_TIMESPEC = struct.Struct("qq")


def main(node: str, store: str, rounds: int) -> None:
    """Measure in rounds: one request after a rest, and then some without."""
    with (
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sender,
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)) as receiver,
    ):
        sender.bind((node, 0))
        receiver.bind((store, 0))
        receiver.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        receiver.settimeout(LONGEST_S)
        for number in range(rounds):
            rested_s = _crossing(sender, receiver, f"{number} rested", REST_S)
            awake_s = [_crossing(sender, receiver, f"{number} {each}", AWAKE_S) for each in range(AWAKE)]
            found = [each for each in awake_s if each is not None]
            print(json.dumps([rested_s, min(found, default=None)]), flush=True)


def _crossing(sender: socket.socket, receiver: socket.socket, name: str, pause_s: float) -> float | None:
    """Pause, then send a request; return the seconds until it comes out, or None if it does not."""
    key = blake2b(f"crossing {name}".encode(), digest_size=wire.KEY_BYTES).digest()
    frame = kv_frame(0, STORE, wire.Message(wire.OP_GET, key, _FRAGMENT, FRAGMENTS))
    time.sleep(pause_s)
    began_ns = time.time_ns()
    sender.send(frame)
    with contextlib.suppress(TimeoutError):
        while True:
            packet, ancillary, _, _ = receiver.recvmsg(2048, socket.CMSG_SPACE(_TIMESPEC.size))
            if key in packet:
                seconds, nanoseconds = _TIMESPEC.unpack(ancillary[0][2])
                came_ns: int = 1_000_000_000 * seconds + nanoseconds
                return (came_ns - began_ns) / 1e9
    return None


if __name__ == "__main__":
    _, node_end, store_end, round_count = sys.argv
    main(node_end, store_end, int(round_count))
