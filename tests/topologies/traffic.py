"""Frames of the protocol as hosts and switches hand them to the kernel, and the order in which they arrive.

python -m tests.topologies.traffic host|switch INTERFACE OP,COUNT ...   sends so many of each, in this order
python -m tests.topologies.traffic watch INTERFACE                      a line an arrival: op, seconds
"""

import errno
import socket
import struct
import sys

from hostlib.native.python_sockets import UDP_SEGMENT
from hostlib.protocol.wire import KV_HEADER_BYTES, KV_PORT, Message, encode, op_of

BATCH = 5
"""Datagrams that a host hands to the kernel as one."""
SO_TIMESTAMPNS = 35
WAIT_S = 30.0
_TIME = struct.Struct("=qq")
_ETHERNET_IP = bytes(12) + b"\x08\x00" + b"\x45\x00"
_OP_AT = 14 + 20 + 8


def message(op: int) -> bytes:
    return encode(Message(op=op, key=bytes(16), fragment=0, fragments=1))


def frame(datagram: bytes) -> bytes:
    """As a switch forwards it."""
    udp = struct.pack("!HHHH", KV_PORT, KV_PORT, 8 + len(datagram), 0) + datagram
    return _ETHERNET_IP + struct.pack("!HIBBHII", 20 + len(udp), 0, 64, 17, 0, 0, 0) + udp


def send_as_host(interface: str, op: int, count: int) -> None:
    """In batches, where the kernel takes them."""
    datagram = message(op)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, interface.encode())
        sender.connect(("10.0.0.3", KV_PORT))
        segment = [(socket.IPPROTO_UDP, UDP_SEGMENT, struct.pack("=H", len(datagram)))]
        for first in range(0, count, BATCH):
            batch = [datagram] * min(BATCH, count - first)
            try:
                sender.sendmsg(batch, segment)
            except OSError:  # before Linux 6.11
                for one in batch:
                    sender.send(one)


def send_as_switch(interface: str, op: int, count: int) -> None:
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as sender:
        sender.bind((interface, 0x0003))
        for _ in range(count):
            try:
                sender.send(frame(message(op)))
            except OSError as error:  # the queue is full
                if error.errno != errno.ENOBUFS:
                    raise


def watch(interface: str) -> None:
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0003)) as watcher:
        watcher.bind((interface, 0x0003))
        watcher.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        watcher.settimeout(WAIT_S)
        print("ready", flush=True)
        while True:
            data, [(_, _, time)], _, _ = watcher.recvmsg(2048, 64)
            if len(data) >= _OP_AT + KV_HEADER_BYTES:
                seconds, nanoseconds = _TIME.unpack(time)
                print(op_of(data[_OP_AT:]), f"{seconds}.{nanoseconds:09}", flush=True)


def main(role: str, interface: str, *numbers: str) -> None:
    if role == "watch":
        watch(interface)
    send = {"host": send_as_host, "switch": send_as_switch}[role]
    for given in numbers:
        op, count = given.split(",")
        send(interface, int(op), int(count))


if __name__ == "__main__":
    main(*sys.argv[1:])
