"""Bare datagrams of a fragment's size between two namespaces: the limit for any emulation.

    python -m experiments.bench.emulation.blast send|receive ADDRESS SECONDS

prints a JSON object: the number of datagrams, and the CPU seconds that this process used for them.
"""

from __future__ import annotations

import json
import socket
import struct
import sys
import time

from hostlib.protocol.wire import KV_HEADER_BYTES, VALUE_BYTES

PORT = 9
DATAGRAM_BYTES = VALUE_BYTES + KV_HEADER_BYTES
BURST = 64
UDP_SEGMENT, UDP_GRO = 103, 104
_RECEIVE_BUFFER_BYTES = 8 << 20
_PATIENCE_S = 1.0


def send(address: str, seconds: float) -> int:
    """Send datagrams for `seconds` as fast as the kernel takes them; returns their number."""
    segment = [(socket.IPPROTO_UDP, UDP_SEGMENT, struct.pack("=H", DATAGRAM_BYTES))]
    burst = [bytes(DATAGRAM_BYTES * BURST)]
    sent = 0
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        until_s = time.monotonic() + seconds
        while time.monotonic() < until_s:
            sock.sendmsg(burst, segment, 0, (address, PORT))
            sent += BURST
    return sent


def receive(address: str, seconds: float) -> int:
    """Receive datagrams until none has come for a second; returns their number."""
    received = 0
    buffer = bytearray(1 << 16)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.setsockopt(socket.IPPROTO_UDP, UDP_GRO, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER_BYTES)
        sock.bind((address, PORT))
        sock.settimeout(seconds + _PATIENCE_S)
        print("ready", flush=True)
        try:
            while True:
                length, *_ = sock.recvmsg_into([buffer], 64)
                received += length // DATAGRAM_BYTES
                sock.settimeout(_PATIENCE_S)
        except TimeoutError:
            return received


def main(role: str, address: str, seconds: str) -> None:
    """Run one end, "send" or "receive", and print what it counted."""
    before_s = time.process_time()
    datagrams = {"send": send, "receive": receive}[role](address, float(seconds))
    print(json.dumps({"datagrams": datagrams, "cpu_s": time.process_time() - before_s}))


if __name__ == "__main__":
    main(*sys.argv[1:])
