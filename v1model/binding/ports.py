"""What the runtime says of ports: their counts, and why one can't be attached."""

from __future__ import annotations

import ctypes
import errno
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from v1model.binding.library import Handle

# weir_port_statistics
PORT_STATISTICS = (
    "received_packets",
    "received_bytes",
    "sent_packets",
    "sent_bytes",
    "oversize_drops",
    "transmit_drops",
    "kernel_drops",
    "unfinished_checksums",
    "error",
)


def port_statistics(handle: Handle, port: int, interface: str) -> dict[str, int | str]:
    """Counts since the port was attached; `error` is the last one as text."""
    values = (ctypes.c_uint64 * len(PORT_STATISTICS))()
    handle.call("port_statistics", port, values)
    statistics: dict[str, int | str] = {"interface": interface}
    statistics |= dict(zip(PORT_STATISTICS, values, strict=True))
    code = int(statistics["error"])
    statistics["error"] = os.strerror(code) if code else ""
    return statistics


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
