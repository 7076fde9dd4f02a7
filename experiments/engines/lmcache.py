"""LMCache between vLLM and the pool: its server on each node, with Weir's adapter as second level."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from emulator.processes import ProcessError
from experiments.engines.requests import NODES
from experiments.engines.stage import ENGINE_PYTHON, LMCACHE_CHUNK_TOKENS, Stage
from topologies.process import end_process

PORT = 5655
L1_GB = 1
"""Gigabytes of LMCache's own memory on a node. LMCache does not ask the pool for chunks that it has there."""
START_TIMEOUT_S = 180.0


def transfer() -> dict[str, Any]:
    """Return the KVTransferConfig of an engine whose node has a server of LMCache."""
    return {
        "kv_connector": "LMCacheMPConnector",
        "kv_role": "kv_both",
        "kv_load_failure_policy": "recompute",
        "kv_connector_extra_config": {"lmcache.mp.host": "tcp://127.0.0.1", "lmcache.mp.port": PORT},
    }


@contextmanager
def servers(stage: Stage, counts: dict[str, Any]) -> Iterator[None]:
    """Run a server on each node during the `with` block.

    Afterwards `counts` has the sums of what the servers' adapters counted.
    """
    directory = stage.directory("lmcache")
    with ExitStack() as stack:
        for node in NODES:
            stack.enter_context(_server(stage, directory, node))
        yield
    for node in NODES:
        report = json.loads(_report(directory, node).read_text())
        for name in ("pool_bytes", "store_bytes", "merged", "stored_bytes"):
            counts[name] = counts.get(name, 0) + report[name]
        for error, count in report["failed"].items():
            counts.setdefault("failed", {}).setdefault(error, 0)
            counts["failed"][error] += count


@contextmanager
def _server(stage: Stage, directory: Path, node: str) -> Iterator[None]:
    adapter = {
        "type": "plugin",
        "module_path": "engines.lmcache.l2_adapter",
        "class_name": "WeirL2Adapter",
        "adapter_params": {**stage.settings(node), "report": str(_report(directory, node))},
    }
    command = [
        str(ENGINE_PYTHON), "-m", "lmcache.v1.multiprocess.server", "--host", "127.0.0.1",
        "--port", str(PORT), "--chunk-size", str(LMCACHE_CHUNK_TOKENS), "--l1-size-gb", str(L1_GB),
        "--eviction-policy", "LRU",
        "--disable-observability", "--supported-transfer-mode", "engine_driven",
        "--l2-adapter", json.dumps(adapter),
    ]  # fmt: skip
    path = directory / f"{node}.log"
    with path.open("wb") as log:
        process = stage.popen(
            node, directory, command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
        )
    try:
        _wait_ready(node, process, path)
        yield
    finally:
        process.terminate()  # it closes its adapters, which write their reports
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            end_process(process)


def _wait_ready(node: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline_s = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline_s:
        output = log.read_text(errors="replace")
        if "server is running" in output.lower() or "ready" in output.lower():
            return
        if process.poll() is not None:
            break
        time.sleep(0.5)
    raise ProcessError(
        f"LMCache's server on {node} did not start:\n{log.read_text(errors='replace')[-2000:]}"
    )


def _report(directory: Path, node: str) -> Path:
    return directory / f"{node}.pool.json"
