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

    def claim(self, interface: str) -> None:
        """FAILED_PRECONDITION if another switch has it."""
        claim = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            claim.bind(f"\0v1model-switch/{interface}")
        except OSError:
            claim.close()
            raise DataPlaneError(
                "FAILED_PRECONDITION", f"interface {interface} is in use by another switch: end it first"
            ) from None
        self._sockets[interface] = claim

    def release(self) -> None:
        for claim in self._sockets.values():
            claim.close()
        self._sockets.clear()
