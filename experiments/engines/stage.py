"""Network and engines: switch, controller and storage nodes start anew for each mode, engines may stay.

The engines run in their own environment and exchange JSON lines with this process
(`experiments.engines.vllm_node`).
"""

from __future__ import annotations

import json
import os
import queue
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from controller.config import Config, PoolSize, Thresholds
from emulator.control_plane import start_controller, switch_configs
from emulator.processes import READY_TIMEOUT_S, LineProcess, ProcessError, wait_for
from emulator.result import ROOT
from experiments.engines.model import HEAD, KV_HEADS, LAYERS
from experiments.engines.options import BLOCK_TOKENS, LMCACHE, MOONCAKE, POOL, EnginesOptions
from experiments.engines.requests import NODES, Request
from experiments.engines.vllm_node import ENVIRONMENT
from hostlib.protocol.wire import fragment_count
from topologies.engines import Artifacts
from topologies.fabric import Fabric
from topologies.network import Network
from topologies.star import star

ENGINE_PYTHON = ROOT / ".venv-engines" / "bin" / "python"
START_TIMEOUT_S = 240.0
SERVE_TIMEOUT_S = 120.0
FLOAT_BYTES = 4
BATCHED_TOKENS = 512
"""Most tokens that an engine computes at once; longer prompts are computed in chunks."""
STORE_BYTES = 2 << 30
LMCACHE_CHUNK_TOKENS = 256
"""Tokens of a chunk of LMCache: its default."""


class Stage:
    """Running network, on which processes of a mode are started and ended."""

    def __init__(self, options: EnginesOptions, network: Network, artifacts: Artifacts, model: Path) -> None:
        self._options, self._network, self._artifacts = options, network, artifacts
        self._model = model
        self._started = 0

    @contextmanager
    def mode(self, mode: str) -> Iterator[None]:
        """Run switch, controller and empty storage nodes during the `with` block."""
        directory = self.directory(mode)
        self._network.start_switches()
        events: queue.SimpleQueue[Any] = queue.SimpleQueue()
        processes = []
        try:
            config = self._controller_config(
                pool=mode in (POOL, LMCACHE), fragments=_fragments(mode, self._options)
            )
            processes.append(start_controller(config, self._network, directory, events))
            processes += [
                self._store(name, directory, events, self._options.link_gbit_s * 1e9)
                for name in self._network.fabric.stores
            ]
            wait_for("ready", processes, events, READY_TIMEOUT_S)
            for process in processes[1:]:
                process.send("start")
            yield
        finally:
            for process in processes:
                process.stop()
            self._network.stop_switches()

    @contextmanager
    def mooncake(self) -> Iterator[dict[str, dict[str, Any]]]:
        """Run Mooncake on the first storage node, with a switch that only forwards.

        Yields each engine's KVTransferConfig.
        """
        directory = self.directory(MOONCAKE)
        self._network.start_switches()
        events: queue.SimpleQueue[Any] = queue.SimpleQueue()
        processes = []
        try:
            config = self._controller_config(pool=False, fragments=1)
            processes.append(start_controller(config, self._network, directory, events))
            wait_for("ready", processes, events, READY_TIMEOUT_S)
            store = self._network.fabric.stores[0]
            module = "experiments.engines.mooncake_node"
            command = [str(ENGINE_PYTHON), "-m", module, self.settings(NODES[0])["homes"][0]]

            def popen(*arguments: Any, **options: Any) -> Any:
                return self.popen(store, directory, *arguments, **options)

            processes.append(LineProcess("mooncake", command, directory / "mooncake.log", popen, events))
            wait_for("ready", processes[1:], events, START_TIMEOUT_S)
            mooncake = {
                "kv_connector": "WeirMooncakeConnector",
                "kv_connector_module_path": "experiments.engines.mooncake_connector",
            }
            yield {node: self.connector(node) | mooncake for node in NODES}
        finally:
            for process in processes:
                process.stop()
            self._network.stop_switches()

    @contextmanager
    def engines(self, transfer: dict[str, dict[str, Any]]) -> Iterator[dict[str, Engine]]:
        """Run vLLM on every node during the `with` block.

        `transfer` has the KVTransferConfig by node; a node that it lacks has an engine without a connector.
        """
        directory = self.directory("engines")
        engines = {name: self._engine(name, directory, transfer.get(name)) for name in NODES}
        try:
            for engine in engines.values():
                engine.expect("ready", START_TIMEOUT_S)
            yield engines
        finally:
            for engine in engines.values():
                engine.tell_to_stop()
            for engine in engines.values():
                engine.stop()

    def settings(self, node: str) -> dict[str, Any]:
        """Return the settings of the pool for a node's engine: its address and the homes."""
        hosts = self._network.fabric.hosts
        homes = [str(hosts[name].ipv4) for name in self._network.fabric.stores]
        return {"address": str(hosts[node].ipv4), "homes": homes}

    def connector(self, node: str) -> dict[str, Any]:
        """Return the KVTransferConfig of an engine that uses the pool."""
        return {
            "kv_connector": "WeirConnector",
            "kv_connector_module_path": "engines.vllm.connector",
            "kv_role": "kv_both",
            "kv_load_failure_policy": "recompute",
            "kv_connector_extra_config": {
                **self.settings(node),
                "objects_per_block": self._options.objects,
                "loading": self._options.loading,
            },
        }

    def _engine(self, node: str, directory: Path, transfer: dict[str, Any] | None) -> Engine:
        config = {
            "model": str(self._model),
            "max_tokens": self._options.max_tokens,
            "batched_tokens": BATCHED_TOKENS,
            "block_tokens": BLOCK_TOKENS,
            "own_blocks": self._options.own_blocks,
            "threads": len(os.sched_getaffinity(0)),
            "transfer": transfer,
        }
        path = directory / f"{node}.json"
        path.write_text(json.dumps(config, indent=1))
        command = [str(ENGINE_PYTHON), "-m", "experiments.engines.vllm_node", str(path)]

        def popen(*arguments: Any, **options: Any) -> Any:
            return self.popen(node, directory, *arguments, **options)

        return Engine(LineProcess(node, command, directory / f"{node}.log", popen))

    def popen(self, host: str, directory: Path, command: Sequence[str], **options: Any) -> Any:
        """Start a process with the engines' environment variables on a host, and return it."""
        environment = {**os.environ, "PYTHONPATH": str(ROOT), **ENVIRONMENT}
        return self._network.popen(host, command, env=environment, cwd=str(directory), **options)

    def _store(
        self, name: str, directory: Path, events: queue.SimpleQueue[Any], link_bit_s: float
    ) -> LineProcess:
        config = {
            "address": str(self._network.fabric.hosts[name].ipv4),
            "result": str(directory / f"{name}.result.json"),
            "block_bytes": object_bytes(self._options),
            "dram_bytes": STORE_BYTES,
            "link_bit_s": link_bit_s,
        }
        path = directory / f"{name}.json"
        path.write_text(json.dumps(config, indent=1))

        def popen(*arguments: Any, **options: Any) -> Any:
            return self._network.popen(name, *arguments, **options)

        command = [sys.executable, "-m", "hostlib.storage.storage", str(path)]
        return LineProcess(name, command, directory / f"{name}.log", popen, events)

    def _controller_config(self, pool: bool, fragments: int) -> Config:
        size = pool_size(self._options, fragments)
        return Config(
            switches=switch_configs(self._network, self._artifacts, size),
            policy=self._options.policy,
            seed=self._options.seed,
            pool=pool,
            merging=pool,
            thresholds=Thresholds(report_count=1, fill="now", eviction="drop"),
        )

    def directory(self, name: str) -> Path:
        """Make a new folder for the files of one start, and return it."""
        self._started += 1
        directory = self._network.directory / f"{self._started}-{name}"
        directory.mkdir()
        return directory


class Engine:
    """Process of an engine."""

    def __init__(self, process: LineProcess) -> None:
        self._process = process
        self._counted: dict[str, Any] = {}

    def serve(self, requests: Sequence[Request], output_tokens: int) -> list[dict[str, Any]]:
        """Send requests that the engine serves together; returns their replies. Raises ProcessError."""
        messages = [{"tokens": request.tokens, "output_tokens": output_tokens} for request in requests]
        self._process.send("run " + json.dumps({"requests": messages}))
        answer = self.expect("served", SERVE_TIMEOUT_S)
        self._counted = answer["pool"] | {"hit_tokens": answer["hit_tokens"]}
        return list(answer["replies"])

    def counts(self) -> dict[str, Any]:
        """Return the counters since the engine started, as of its last reply."""
        return self._counted

    def tell(self, command: str, answer: str) -> None:
        """Send a command, and wait for its answer. Raises ProcessError."""
        self._process.send(command)
        self.expect(answer, SERVE_TIMEOUT_S)

    def expect(self, event: str, timeout_s: float) -> dict[str, Any]:
        """Return the next event of that name; raises ProcessError if the engine ends or is silent."""
        while True:
            try:
                _, answer = self._process.events.get(timeout=timeout_s)
            except queue.Empty:
                raise ProcessError(f"{self._process.name} said nothing for {timeout_s:g} s") from None
            if answer["event"] == "ended":
                raise self._process.failure()
            if answer["event"] == event:
                return dict(answer)

    def tell_to_stop(self) -> None:
        """Tell the engine to end, without waiting for it."""
        self._process.stopping = True
        self._process.send("stop")

    def stop(self) -> None:
        """End the process."""
        self._process.stop()


def object_bytes(options: EnginesOptions) -> int:
    """Return the bytes of the largest object of a block."""
    layers = -(-LAYERS // options.objects)
    return layers * 2 * KV_HEADS * HEAD * FLOAT_BYTES * BLOCK_TOKENS


def object_fragments(options: EnginesOptions) -> int:
    """Return the number of values, and so of the pool's slots, that an object takes."""
    return fragment_count(object_bytes(options))


def _fragments(mode: str, options: EnginesOptions) -> int:
    """Return the fragments of the largest object that the engines store.

    LMCache's chunks have all layers of more tokens.
    """
    if mode == LMCACHE:
        return fragment_count(LMCACHE_CHUNK_TOKENS * LAYERS * 2 * KV_HEADS * HEAD * FLOAT_BYTES)
    return object_fragments(options)


def pool_size(options: EnginesOptions, fragments: int | None = None) -> PoolSize:
    """Return the size of the switch's pool.

    `fragments` is the number of fragments of the largest object; default: of an object of Weir's connector.
    """
    each = object_fragments(options)
    return PoolSize(options.pool_blocks, options.pool_blocks * each, fragments or each)


def make_fabric(options: EnginesOptions) -> Fabric:
    """Return a star of two engines and the storage nodes on one switch, with links at real rates."""
    return star(len(NODES), options.stores, options.link_gbit_s * 1e9)
