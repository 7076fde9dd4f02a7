"""Addresses and certificates of a server; without gRPC, so that command lines start fast."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_LOOPBACK_NAME = "localhost"


class ServerError(Exception):
    """The server can't be started; the message says why and what to do."""


def is_local(address: str) -> bool:
    """Return whether only this machine can reach HOST:PORT or unix:PATH."""
    if address.startswith("unix:"):
        return True
    host = address.rpartition(":")[0].strip("[]")
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == _LOOPBACK_NAME


@dataclass(frozen=True)
class TlsFiles:
    """PEM files of a server. With `client_ca`, clients need a certificate that it signed."""

    certificate: Path
    key: Path
    client_ca: Path | None = None
