"""Shim in wires: it passes frames between two interfaces, and delays, repeats, damages or loses some.

    python -m experiments.faults.shim SEED INTERFACE:INTERFACE ...

    stdout  < {"event": "ready"}
    stdin   > {"reorder": SHARE, "duplicate": SHARE, "flip": SHARE, "lose": SHARE, "deaf": SHARE,
               "mute": SHARE, "longest": BYTES, "only": INTERFACE}      from now on; what is left out is 0
    stdout  < {"event": "damaged", "forwarded": N, "reorder": N, "duplicate": N, "flip": N, "lost": N,
               "dropped": N}
    stdin   > stop                                                      or its end

The host is at the first interface of a pair. The share `deaf` of frames to it is lost, the share `mute` of
frames from it, and the share `lose` of both. Frames longer than `longest` are lost, if that is not 0. With
`only`, all this happens to one pair, named by its first interface; without it, to all pairs.

The shim replaces the kernel's netem, which not every machine has. A delayed frame comes up to `LATE_S` later,
behind others. A flipped bit is anywhere behind the Ethernet header, and no checksum is updated. A frame that
the other interface does not take is dropped and counted, as by a full queue.
"""

from __future__ import annotations

import heapq
import json
import random
import select
import socket
import sys
import time
from collections import Counter

LATE_S = 0.01
KINDS = ("reorder", "duplicate", "flip")
ETH_P_ALL = 3
ETHERNET_BYTES = 14
MAX_FRAME_BYTES = 9216
MAX_HELD_BACK = 4096
BATCH_FRAMES = 64
BUFFER_BYTES = 4 << 20


class Shim:
    """Wires between pairs of interfaces."""

    def __init__(self, seed: int, pairs: list[tuple[str, str]]) -> None:
        self.counts: Counter[str] = Counter()
        self.shares: dict[str, float] = {}
        self._longest_bytes = MAX_FRAME_BYTES
        self._only: str | None = None
        self._random = random.Random(seed)
        self._across: dict[int, socket.socket] = {}
        self._sockets: dict[int, socket.socket] = {}
        self._hosts: dict[int, str] = {}
        """First interface of each pair, by the number of the socket through which frames go to the host."""
        self._pair_of: dict[int, str] = {}
        self._late: list[tuple[float, int, int, bytes]] = []
        """Heap of delayed frames: time when due, number, socket and frame."""
        for one, other in pairs:
            first, second = _open(one), _open(other)
            for end, across in ((first, second), (second, first)):
                self._sockets[end.fileno()], self._across[end.fileno()] = end, across
                self._pair_of[end.fileno()] = one
            self._hosts[first.fileno()] = one

    def run(self) -> None:
        """Pass frames on until stdin says "stop" or ends."""
        poll = select.poll()
        for number in (*self._sockets, sys.stdin.fileno()):
            poll.register(number, select.POLLIN)
        while True:
            wait_s = max(0.0, self._late[0][0] - time.monotonic()) if self._late else None
            for number, _ in poll.poll(None if wait_s is None else 1000 * wait_s):
                if number in self._sockets:
                    self._take(number)
                elif not self._handle(sys.stdin.readline().strip()):
                    return
            self._release()

    def _handle(self, line: str) -> bool:
        if line in ("", "stop"):
            return False
        print(json.dumps({"event": "damaged", **self.counts}), flush=True)
        command = json.loads(line)
        self._only = command.pop("only", None)
        self._longest_bytes = command.pop("longest", 0) or MAX_FRAME_BYTES
        self.shares = command
        return True

    def _take(self, number: int) -> None:
        for _ in range(BATCH_FRAMES):
            try:
                frame, address = self._sockets[number].recvfrom(MAX_FRAME_BYTES)
            except BlockingIOError:
                return
            if address[2] != socket.PACKET_OUTGOING:
                self._forward(self._across[number].fileno(), frame)

    def _forward(self, to: int, frame: bytes) -> None:
        self.counts["forwarded"] += 1
        if self._only not in (None, self._pair_of[to]):
            self._send(to, frame)
            return
        if self._is_lost(to, frame):
            self.counts["lost"] += 1
            return
        damages = [kind for kind in KINDS if self._random.random() < self.shares.get(kind, 0.0)]
        self.counts.update(damages)
        if "flip" in damages:
            damaged = bytearray(frame)
            damaged[self._random.randrange(ETHERNET_BYTES, len(frame))] ^= 1 << self._random.randrange(8)
            frame = bytes(damaged)
        if "reorder" in damages and len(self._late) < MAX_HELD_BACK:
            due_s = time.monotonic() + self._random.uniform(0, LATE_S)
            heapq.heappush(self._late, (due_s, self.counts["forwarded"], to, frame))
        else:
            self._send(to, frame)
        if "duplicate" in damages:
            self._send(to, frame)

    def _is_lost(self, to: int, frame: bytes) -> bool:
        way = "deaf" if to in self._hosts else "mute"
        shares = (self.shares.get(kind, 0.0) for kind in ("lose", way))
        return len(frame) > self._longest_bytes or any(self._random.random() < share for share in shares)

    def _release(self) -> None:
        now_s = time.monotonic()
        while self._late and self._late[0][0] <= now_s:
            _, _, to, frame = heapq.heappop(self._late)
            self._send(to, frame)

    def _send(self, to: int, frame: bytes) -> None:
        try:
            self._sockets[to].send(frame)
        except OSError:  # its queue is full, or it is down
            self.counts["dropped"] += 1


def _open(interface: str) -> socket.socket:
    opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
    opened.bind((interface, ETH_P_ALL))
    opened.setblocking(False)
    return opened


def main(arguments: list[str]) -> int:
    """Run the shim until stdin ends. Returns exit code 0, or 2 if it could not begin."""
    if len(arguments) < 2:
        print("usage: python -m experiments.faults.shim SEED INTERFACE:INTERFACE ...", file=sys.stderr)
        return 2
    pairs = [argument.split(":") for argument in arguments[1:]]
    try:
        shim = Shim(int(arguments[0]), [(one, other) for one, other in pairs])
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(json.dumps({"event": "ready"}), flush=True)
    shim.run()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
