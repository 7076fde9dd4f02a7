"""Mooncake's master, metadata server and memory on a storage node, in the engines' environment.

python -m experiments.engines.mooncake_node ADDRESS
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from pathlib import Path

MASTER_PORT = 51051
METADATA_PORT = 8089
METRICS_PORT = 9103
MEMORY_BYTES = 1 << 30
START_TIMEOUT_S = 60.0


def main(address: str) -> int:
    """Serve until stdin says "stop" or ends. Returns exit code 0, or 2 if the memory can't be set up."""
    command = [
        str(Path(sys.executable).with_name("mooncake_master")),
        f"--rpc_port={MASTER_PORT}",
        "--enable_http_metadata_server=true",
        f"--http_metadata_server_host={address}",
        f"--http_metadata_server_port={METADATA_PORT}",
        f"--metrics_port={METRICS_PORT}",
    ]
    master = subprocess.Popen(command, stdout=sys.stderr)
    try:
        for port in (MASTER_PORT, METADATA_PORT):
            _wait_listening(address, port)
        from mooncake.store import MooncakeDistributedStore

        store = MooncakeDistributedStore()
        metadata = f"http://{address}:{METADATA_PORT}/metadata"
        code = store.setup(address, metadata, MEMORY_BYTES, 16 << 20, "tcp", "", f"{address}:{MASTER_PORT}")
        if code:
            print(f"error: Mooncake's memory could not be set up: {code}", file=sys.stderr)
            return 2
        print(json.dumps({"event": "ready"}), flush=True)
        for line in sys.stdin:
            if line.strip() == "stop":
                break
        store.close()
    finally:
        master.kill()
        master.wait()
    return 0


def _wait_listening(address: str, port: int) -> None:
    deadline_s = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline_s:
        with socket.socket() as probe:
            if probe.connect_ex((address, port)) == 0:
                return
        time.sleep(0.1)
    raise SystemExit(f"error: Mooncake's master does not listen at {address}:{port}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
