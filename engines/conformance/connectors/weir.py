"""Weir's own connector, with a storage node on a loopback address. The switch in between is left out: what it
serves are copies of what the storage node has."""

from __future__ import annotations

import itertools
import os
import sys
from typing import TYPE_CHECKING, Any

from engines.conformance.connectors.base import Connector
from engines.conformance.connectors.process import StoreProcess
from engines.conformance.revision import revision

if TYPE_CHECKING:
    from engines.conformance.engine import Engine

WAITING_BYTES = 64 << 20
_numbers = itertools.count(1)


class Weir(Connector):
    """`engines.vllm.connector` with its default settings but for patience on a busy machine."""

    name = "weir"
    speaks_as = r"\bweir\b|hostlib"
    loading = "layerwise"

    @property
    def version(self) -> str:
        return f"{revision()}, loading {self.loading}"

    def start(self) -> None:
        self._address = _own_address()
        self._start_node()

    def stop(self) -> None:
        self._node.kill()

    def transfer(self) -> dict[str, Any]:
        return {
            "kv_connector": "WeirConnector",
            "kv_connector_module_path": "engines.vllm.connector",
            "kv_role": "kv_both",
            "kv_load_failure_policy": "recompute",
            "kv_connector_extra_config": {
                "address": _own_address(),
                "homes": [self._address],
                "loading": self.loading,
                "lookup_timeout_s": 5.0,
                "retry_s": 0.5,
                "waiting_bytes": WAITING_BYTES,
            },
        }

    def restart_empty(self) -> None:
        self._node.kill()
        self._start_node()

    def silence(self) -> None:
        self._node.silence()

    def resume(self) -> None:
        self._node.resume()

    def lose_half(self) -> int:
        return int(self._node.ask("lose"))

    def offered_bytes(self, engine: Engine) -> int:
        return int(
            engine.ask(
                "call", module="engines.conformance.connectors.weir_counters", function="offered_bytes"
            )
        )

    def _start_node(self) -> None:
        command = [sys.executable, "-m", "engines.conformance.connectors.weir_node", self._address]
        self._node = StoreProcess(command, self.folder / "storage-node.log")
        self._node.wait_line("ready")


class WeirInBackground(Weir):
    """The same, loading while other requests are computed."""

    name = "weir-background"
    loading = "background"


def _own_address() -> str:
    """Return an address of 127/8 for this process alone: each client opens the protocol's port on its own."""
    number = next(_numbers)
    return f"127.{251 + os.getpid() // 250 % 4}.{1 + os.getpid() % 250}.{number % 250 + 1}"
