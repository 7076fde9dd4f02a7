"""Reservation of interfaces for ports before there is a program whose switch could attach them."""

from __future__ import annotations

import socket

from v1model.dataplane import DataPlaneError


class Reservations:
    """Reserved interfaces, held until `release` or the end of the process.

    They use the same abstract socket address by which an attached port claims its interface
    (runtime/interface.c), so that a second switch finds it taken.
    """

    def __init__(self) -> None:
        self._sockets: list[socket.socket] = []

    def reserve(self, port: int, interface: str) -> None:
        """Reserve an interface; raises FAILED_PRECONDITION with the reason if it can't become a port."""
        place = f"port {port} on {interface}"
        _check(place, interface)
        reservation = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            reservation.bind(f"\0weir-port-{interface}")
        except OSError:
            reservation.close()
            raise _unusable(f"{place}: another switch has this interface") from None
        self._sockets.append(reservation)

    def release(self) -> None:
        for reservation in self._sockets:
            reservation.close()
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
