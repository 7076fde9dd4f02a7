"""Mooncake's master, metadata server and memory, as a process of the suite.

    python -m engines.conformance.connectors.mooncake_node MASTER_PORT METADATA_PORT METRICS_PORT

stdout  < ready
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from engines.conformance.connectors.process import free_port, wait_listening

MEMORY_BYTES = 1 << 30
TRANSFER_BYTES = 16 << 20


def main(master_port: str, metadata_port: str, metrics_port: str) -> int:
    """Serve until stdin ends."""
    command = [
        str(Path(sys.executable).with_name("mooncake_master")),
        f"--rpc_port={master_port}",
        "--enable_http_metadata_server=true",
        "--http_metadata_server_host=127.0.0.1",
        f"--http_metadata_server_port={metadata_port}",
        f"--metrics_port={metrics_port}",
    ]
    master = subprocess.Popen(command, stdout=sys.stderr)
    try:
        for port in (master_port, metadata_port):
            wait_listening(int(port))
        from mooncake.store import MooncakeDistributedStore

        store = MooncakeDistributedStore()
        metadata = f"http://127.0.0.1:{metadata_port}/metadata"
        own = f"127.0.0.1:{free_port()}"
        code = store.setup(own, metadata, MEMORY_BYTES, TRANSFER_BYTES, "tcp", "", f"127.0.0.1:{master_port}")
        if code:
            print(f"error: Mooncake's memory could not be set up: {code}", file=sys.stderr)
            return 2
        print("ready", flush=True)
        for _ in sys.stdin:
            pass
        store.close()
    finally:
        master.kill()
        master.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4]))
