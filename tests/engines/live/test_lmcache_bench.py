"""LMCache's command-line testers on the pool's adapter: bench l2 with its verification."""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("lmcache", reason="make test-engines")

from tests.asynchronous import until
from tests.engines.live.conftest import Home
from tests.engines.live.test_lmcache import adapter_json

ROOT = Path(__file__).resolve().parents[3]
KEYS = 8


def lmcache(folder: Path, *arguments: str) -> str:
    """A command of LMCache's; what it says."""
    done = subprocess.run(
        [str(Path(sys.executable).parent / "lmcache"), *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT), "LMCACHE_TRACK_USAGE": "false", "HOME": str(folder)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_bench_l2_verifies_what_it_stored(pool_settings: dict[str, object], tmp_path: Path) -> None:
    out = tmp_path / "bench.json"
    sizes = ["--num-keys", str(KEYS), "--data-size-kb", "64", "--rounds", "2", "--lookup-max-hit-rate", "0.5"]
    adapter = adapter_json({**pool_settings, "byte_format": "random"})
    arguments = ["bench", "l2", "--l2-adapter", adapter, *sizes, "--no-skip-verify"]
    said = lmcache(tmp_path, *arguments, "--format", "json", "--output", str(out))
    assert f"All {KEYS} keys data verified OK" in said
    operations = {one["operation"]: one for one in _operations(json.loads(out.read_text()))}
    assert set(operations) == {"Store", "Lookup", "Load"}
    for name, keys in (("Store", 2 * KEYS), ("Lookup", KEYS), ("Load", 2 * KEYS)):
        assert operations[name]["total_success"] == keys
        assert operations[name]["rounds_timed_out"] == 0


def _operations(said: Any) -> Iterator[dict[str, Any]]:
    if isinstance(said, dict):
        if "operation" in said:
            yield said
        for one in said.values():
            yield from _operations(one)


def _record(path: Path, folder: Path) -> None:
    """A trace of LMCache's storage: some chunks written, then prefetched and read."""
    script = folder / "record.py"
    script.write_text(RECORDER)
    done = subprocess.run(
        [sys.executable, str(script), str(path), str(KEYS)],
        env={**os.environ, "LMCACHE_TRACK_USAGE": "false", "HOME": str(folder)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


RECORDER = """
import argparse, sys, torch
from lmcache.v1.distributed import config
from lmcache.v1.distributed.api import MemoryLayoutDesc, ObjectKey
from lmcache.v1.distributed.storage_manager import StorageManager
from lmcache.v1.mp_observability.config import (
    add_observability_args, init_observability, parse_args_to_observability_config,
)
from lmcache.v1.mp_observability.trace import maybe_initialize_trace_recorder

parser = argparse.ArgumentParser()
config.add_storage_manager_args(parser)
add_observability_args(parser)
arguments = parser.parse_args([
    "--l1-size-gb", "1", "--eviction-policy", "LRU", "--disable-metrics",
    "--trace-level", "storage", "--trace-output", sys.argv[1],
])
storage = config.parse_args_to_config(arguments)
observed = parse_args_to_observability_config(arguments)
bus = init_observability(observed, start_prometheus_http_server=False)
maybe_initialize_trace_recorder(bus, observed, storage)
manager = StorageManager(storage)
layout = MemoryLayoutDesc([torch.Size([2, 4, 256, 8])], [torch.float32])
keys = [ObjectKey(bytes([number]) * 16, "a/model", 0) for number in range(int(sys.argv[2]))]
assert len(manager.reserve_write(keys, layout)) == len(keys)
manager.finish_write(keys)
manager.close()
bus.stop()
"""


def test_a_recorded_trace_is_replayed_into_the_pool(
    pool_settings: dict[str, object], home: Home, tmp_path: Path
) -> None:
    trace = tmp_path / "trace.lct"
    _record(trace, tmp_path)
    assert "reserve_write" in lmcache(tmp_path, "trace", "info", str(trace))
    memory = ["--l1-size-gb", "1", "--eviction-policy", "LRU", "--disable-metrics"]
    arguments = [
        *memory,
        "--l2-adapter",
        adapter_json(pool_settings),
        "--output-dir",
        str(tmp_path),
        "--json",
    ]
    said = lmcache(tmp_path, "trace", "replay", str(trace), *arguments)
    assert "finish_write" in said
    assert len(home.store.places()) == KEYS


def bench_server(folder: Path, pool_settings: dict[str, object]) -> tuple[str, dict[str, Any]]:
    """LMCache's own benchmark, in its CPU mode, of its server with the pool behind it."""
    with socket.socket() as one, socket.socket() as other:
        one.bind(("127.0.0.1", 0))
        other.bind(("127.0.0.1", 0))
        port, http = one.getsockname()[1], other.getsockname()[1]
    command = [
        sys.executable, "-m", "lmcache.v1.multiprocess.http_server", "--host", "127.0.0.1",
        "--port", str(port), "--http-port", str(http), "--l1-size-gb", "1", "--eviction-policy", "LRU",
        "--supported-transfer-mode", "engine_driven", "--disable-observability",
        "--l2-adapter", adapter_json(pool_settings),
    ]  # fmt: skip
    own = {"PYTHONPATH": str(ROOT), "LMCACHE_TRACK_USAGE": "false", "PYTHONHASHSEED": "0"}
    with (folder / "server.log").open("wb") as log:
        server = subprocess.Popen(
            command, env={**os.environ, **own, "HOME": str(folder)}, cwd=folder, stdout=log, stderr=log
        )
    try:
        out = folder / "bench.json"
        where = ["--rpc-url", f"tcp://127.0.0.1:{port}", "--url", f"http://127.0.0.1:{http}", "--mode", "cpu"]
        shape = ["--kvcache-shape-spec", "(2,64,16,2,32):float32:2", "--num-blocks", "64"]
        load = ["--num-tokens", "512", "--end", "3", "--interval", "0.1"]
        said = lmcache(
            folder, "bench", "server", *where, *shape, *load, "--format", "json", "--output", str(out)
        )
        return said, json.loads(out.read_text())["metrics"]["results"]
    finally:
        server.kill()
        server.wait()


def checksums(said: str) -> list[str]:
    return re.findall(r"warm\] CHECKSUM: (\w+)", said)


def test_bench_server_finds_in_the_pool_what_another_server_stored(
    pool_settings: dict[str, object], home: Home, tmp_path: Path
) -> None:
    right = {"total_requests": 3, "checksum_ok": 3, "checksum_fail": 0, "pass_rate": 100.0}
    said, results = bench_server(tmp_path, pool_settings)
    assert results == right
    assert said.count("cold] LOOKUP: 0/2 chunks hit") == 3
    asyncio.run(until(lambda: len(home.store.places()) == 6))
    # The other has everything from the first, so the benchmark has no store to compare its checksums with.
    again, results = bench_server(tmp_path, pool_settings)
    assert results["total_requests"] == 3
    assert again.count("cold] LOOKUP: 2/2 chunks hit") == 3
    assert again.count("cold] RETRIEVE: retrieved (512 tokens") == 3
    assert checksums(again) == checksums(said)
