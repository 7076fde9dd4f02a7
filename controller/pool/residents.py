"""Tells a router what the switches' pools hold: {"switch": name, "held": [key, ...], "gone": [key, ...]}.

JSON lines over the router's Unix socket, keys in hexadecimal, only what changed. A router that is not there
yet is looked for again at the next report.
"""

from __future__ import annotations

import json
import logging
import socket
from typing import TYPE_CHECKING, Final

from controller.block_id import key_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

log = logging.getLogger(__name__)

PERIOD_S: Final = 0.1
SEND_TIMEOUT_S: Final = 0.5
KEYS_A_LINE: Final = 4096


class ResidentsReport:
    """See the module; `path` is the socket's."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._socket: socket.socket | None = None
        self._told: dict[str, set[bytes]] = {}

    def tell(self, pools: Mapping[str, Iterable[bytes]]) -> None:
        """Send what changed in each switch's pool, named by block ids, since it was last told."""
        try:
            if self._socket is None:
                self._socket = self._connect()
            for switch, keys in pools.items():
                self._tell(self._socket, switch, {key_of(key) for key in keys})
        except OSError as error:
            log.info("the router at %s is not told what the pools hold: %s", self._path, error)
            self.close()

    def close(self) -> None:
        """Begin anew, should it be told again."""
        if self._socket is not None:
            self._socket.close()
        self._socket, self._told = None, {}

    def _connect(self) -> socket.socket:
        made = socket.socket(socket.AF_UNIX)
        made.settimeout(SEND_TIMEOUT_S)
        try:
            made.connect(self._path)
        except OSError:
            made.close()
            raise
        return made

    def _tell(self, to: socket.socket, switch: str, held: set[bytes]) -> None:
        told = self._told.get(switch, set())
        for name, keys in (("held", held - told), ("gone", told - held)):
            listed = [key.hex() for key in keys]
            for start in range(0, len(listed), KEYS_A_LINE):
                line = {"switch": switch, name: listed[start : start + KEYS_A_LINE]}
                to.sendall(json.dumps(line).encode() + b"\n")
        self._told[switch] = held
