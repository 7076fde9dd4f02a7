"""Statistics of the runtime's ports, and reasons why one can't be attached."""

from __future__ import annotations

import ctypes
import errno
import os
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from v1model.binding.library import Handle

# The longest frame of any interface: loopback's MTU with an Ethernet header and two VLAN tags.
MAX_FRAME_BYTES = 65536 + 14 + 2 * 4


class PortStatistics(TypedDict):
    """Counts since the port was attached; `error` is the last one as text."""

    interface: str
    received_packets: int
    received_bytes: int
    sent_packets: int
    sent_bytes: int
    oversize_drops: int
    beyond_mtu_drops: int
    transmit_drops: int
    kernel_drops: int
    unfinished_checksums: int
    error: str


class Statistics(TypedDict):
    """Statistics of a switch: dropped packets by cause, ports by number, and their queues by priority."""

    drops: dict[str, int]
    ports: dict[int, PortStatistics]
    queues: dict[int, dict[int, dict[str, int]]]


def port_statistics(handle: Handle, port: int, interface: str) -> PortStatistics:
    values = (ctypes.c_uint64 * 10)()  # weir_port_statistics
    handle.call("port_statistics", port, values)
    return {
        "interface": interface,
        "received_packets": values[0],
        "received_bytes": values[1],
        "sent_packets": values[2],
        "sent_bytes": values[3],
        "oversize_drops": values[4],
        "beyond_mtu_drops": values[5],
        "transmit_drops": values[6],
        "kernel_drops": values[7],
        "unfinished_checksums": values[8],
        "error": os.strerror(values[9]) if values[9] else "",
    }


def attach_error(port: int, interface: str, code: int) -> str:
    reasons = {
        errno.EPERM: "raw sockets need root (or CAP_NET_RAW)",
        errno.ENODEV: "there is no such interface",
        errno.EBUSY: "the port is in use",
        errno.EADDRINUSE: "another switch has this interface",
        errno.ENAMETOOLONG: "interface names have at most 15 characters",
        errno.ENETDOWN: "the interface is down: ip link set up",
    }
    return f"port {port} on {interface}: {reasons.get(code, os.strerror(code))}"
