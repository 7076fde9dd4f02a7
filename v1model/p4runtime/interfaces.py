"""Claims on network interfaces: two switches on one interface would each forward every packet."""

from __future__ import annotations

import socket

from v1model.dataplane import DataPlaneError


class InterfaceClaims:
    """Held until `release` or the end of the process, in this network namespace.

    A claim is an abstract Unix socket address, which the kernel gives to one process at a time and
    takes back by itself."""

    def __init__(self) -> None:
        self._sockets: dict[str, socket.socket] = {}

    def claim(self, port: int, interface: str) -> None:
        """FAILED_PRECONDITION, with the reason, if the interface can't become a port."""
        place = f"port {port} on {interface}"
        _check(place, interface)
        claim = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            claim.bind(f"\0v1model-switch/{interface}")
        except OSError:
            claim.close()
            raise _unusable(
                f"{place}: the interface is in use by another switch, which must end first"
            ) from None
        self._sockets[interface] = claim

    def release(self) -> None:
        for claim in self._sockets.values():
            claim.close()
        self._sockets.clear()


def _check(place: str, interface: str) -> None:
    try:
        socket.if_nametoindex(interface)
    except OSError:
        raise _unusable(f"{place}: there is no such interface") from None
    try:
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW).close()
    except PermissionError:
        raise _unusable(f"{place}: raw sockets need root (or CAP_NET_RAW)") from None


def _unusable(reason: str) -> DataPlaneError:
    return DataPlaneError("FAILED_PRECONDITION", reason)
