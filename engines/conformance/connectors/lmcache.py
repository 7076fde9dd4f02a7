"""LMCache: its multiprocess server, which is what it runs on a CPU, with its own memory as the only level."""

from __future__ import annotations

import sys
from typing import Any

from engines.conformance.connectors.base import Connector
from engines.conformance.connectors.process import StoreProcess, free_port

L1_GB = 1


class LMCache(Connector):
    """Chunks of 256 tokens, LMCache's default; engines and server have one PYTHONHASHSEED, as it asks."""

    name = "lmcache"
    packages = ("lmcache",)
    speaks_as = r"(?i)lmcache"

    def start(self) -> None:
        self._port = free_port()
        self._start_server()

    def stop(self) -> None:
        self._server.kill()

    def transfer(self) -> dict[str, Any]:
        return {
            "kv_connector": "LMCacheMPConnector",
            "kv_role": "kv_both",
            "kv_load_failure_policy": "recompute",
            "kv_connector_extra_config": {
                "lmcache.mp.host": "tcp://127.0.0.1",
                "lmcache.mp.port": self._port,
            },
        }

    def restart_empty(self) -> None:
        self._server.kill()
        self._start_server()

    def silence(self) -> None:
        self._server.silence()

    def resume(self) -> None:
        self._server.resume()

    def _start_server(self) -> None:
        command = [
            sys.executable, "-m", "lmcache.v1.multiprocess.server", "--host", "127.0.0.1",
            "--port", str(self._port),
            "--l1-size-gb", str(L1_GB), "--eviction-policy", "LRU", "--disable-observability",
            "--supported-transfer-mode", "engine_driven",
        ]  # fmt: skip
        environment = {"PYTHONHASHSEED": "0", "LMCACHE_TRACK_USAGE": "false", "DO_NOT_TRACK": "1"}
        self._server = StoreProcess(command, self.folder / "lmcache-server.log", environment)
        self._server.wait_port(self._port)
