"""Where a server listens and with which certificates; without gRPC, so that command lines start fast."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


class ServerError(Exception):
    """The server can't be started; the message says why and what to do."""


@dataclass(frozen=True)
class TlsFiles:
    """PEM files. `client_ca` set: clients must have a certificate that it signed."""

    certificate: Path
    key: Path
    client_ca: Path | None = None
