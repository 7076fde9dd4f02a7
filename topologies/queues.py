"""Reader of the bytes that wait in front of links, which asks the kernel over netlink.

`tc -s qdisc` shows the same, but each look at each namespace would start a process. Here each namespace has
one open socket, because a socket belongs to the namespace in which it was made. Messages and attributes are
as in rtnetlink(7), linux/rtnetlink.h and linux/gen_stats.h; all numbers are in the machine's byte order.
"""

from __future__ import annotations

import ctypes
import os
import socket
import struct
import threading
from collections.abc import Iterator, Mapping

from topologies.errors import TopologyError

_CLONE_NEWNET = 0x40000000
_GETLINK, _GETQDISC, _DONE, _ERROR = 18, 38, 3, 2
_REQUEST_DUMP = 0x1 | 0x300
_MESSAGE = struct.Struct("=IHHII")
_LINK = struct.Struct("=BBHiII")
_QDISC = struct.Struct("=BBHiIII")
_ATTRIBUTE = struct.Struct("=HH")
_IFLA_IFNAME, _TCA_STATS2, _TCA_STATS_QUEUE = 3, 7, 3
_QUEUE = struct.Struct("=IIIII")
_ROOT = 0xFFFFFFFF
_MAX_ANSWER_BYTES = 1 << 16
_TIMEOUT_S = 1.0
_libc = ctypes.CDLL(None, use_errno=True)


class Queues:
    """Queues at the interfaces of some namespaces. Use as a context manager, or `close` it."""

    def __init__(self, namespaces: Mapping[str, int]) -> None:
        """Open the sockets; raises TopologyError without root.

        `namespaces` has a process ID in each namespace, by the namespace's name.
        """
        self._sockets = {name: _socket_in(pid) for name, pid in namespaces.items()}
        self._names = {name: dict(_links(one)) for name, one in self._sockets.items()}

    def __enter__(self) -> Queues:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the sockets."""
        for one in self._sockets.values():
            one.close()

    def waiting_bytes(self) -> dict[str, int]:
        """Return the waiting bytes by interface, such as s1-eth2; namespaces that are gone are left out."""
        found = {}
        for name, one in self._sockets.items():
            try:
                for index, waiting in _backlogs(one):
                    if index in self._names[name]:
                        found[self._names[name][index]] = waiting
            except OSError:
                continue
        return found


def _socket_in(pid: int) -> socket.socket:
    """Return a netlink socket of the namespace of process `pid`.

    A thread enters the namespace, makes the socket and ends, so that no other thread changes its namespace.
    """
    sockets: list[socket.socket] = []
    problem: list[OSError] = []

    def make() -> None:
        try:
            namespace = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
            try:
                if _libc.setns(namespace, _CLONE_NEWNET):
                    raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
            finally:
                os.close(namespace)
            sockets.append(socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE))
        except OSError as error:
            problem.append(error)

    thread = threading.Thread(target=make)
    thread.start()
    thread.join()
    if problem:
        raise TopologyError(f"the queues of process {pid}'s namespace can't be read: {problem[0].strerror}")
    sockets[0].settimeout(_TIMEOUT_S)
    return sockets[0]


def _dump(link: socket.socket, kind: int, header: bytes) -> Iterator[bytes]:
    """Yield the payloads of an answer."""
    link.send(_MESSAGE.pack(_MESSAGE.size + len(header), kind, _REQUEST_DUMP, 1, 0) + header)
    while True:
        answer = link.recv(_MAX_ANSWER_BYTES)
        at = 0
        while at + _MESSAGE.size <= len(answer):
            length, kind_of_answer, _, _, _ = _MESSAGE.unpack_from(answer, at)
            if kind_of_answer in (_DONE, _ERROR) or length < _MESSAGE.size:
                return
            yield answer[at + _MESSAGE.size : at + length]
            at += _aligned(length)


def _attributes(payload: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + _ATTRIBUTE.size <= len(payload):
        length, kind = _ATTRIBUTE.unpack_from(payload, at)
        if length < _ATTRIBUTE.size:
            return
        yield kind & 0x3FFF, payload[at + _ATTRIBUTE.size : at + length]
        at += _aligned(length)


def _aligned(length: int) -> int:
    return (length + 3) & ~3


def _links(link: socket.socket) -> Iterator[tuple[int, str]]:
    """Yield (index, name) of the interfaces."""
    for payload in _dump(link, _GETLINK, _LINK.pack(socket.AF_UNSPEC, 0, 0, 0, 0, 0)):
        index = _LINK.unpack_from(payload)[3]
        for kind, value in _attributes(payload[_LINK.size :]):
            if kind == _IFLA_IFNAME:
                yield index, value.rstrip(b"\0").decode()


def _backlogs(link: socket.socket) -> Iterator[tuple[int, int]]:
    """Yield (index of the interface, bytes in its outermost queue, which counts the inner ones)."""
    for payload in _dump(link, _GETQDISC, _QDISC.pack(socket.AF_UNSPEC, 0, 0, 0, 0, 0, 0)):
        _, _, _, index, _, parent, _ = _QDISC.unpack_from(payload)
        if parent != _ROOT:
            continue
        for kind, value in _attributes(payload[_QDISC.size :]):
            if kind == _TCA_STATS2:
                for inner, statistics in _attributes(value):
                    if inner == _TCA_STATS_QUEUE:
                        yield index, _QUEUE.unpack_from(statistics)[1]
