"""Evicted blocks between a real switch, a real storage node and the controller: sent home, or held there."""

from __future__ import annotations

import json
import os
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from controller.config import Config, PoolSize, Thresholds
from controller.process import ControllerProcess
from emulator.control_plane import switch_configs
from emulator.processes import LineProcess, wait_for
from hostlib.protocol import wire
from tests.controller.live import wait_until
from topologies.engines import Embedded
from topologies.network import Network
from topologies.registry import make_topology

if TYPE_CHECKING:
    from collections.abc import Iterator

    from controller.pool.pool import Pool
    from topologies.engines import Artifacts

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
]

PROGRAM = Path(__file__).parents[3] / "p4" / "weir.p4"
FRAGMENTS = 6
POOL_BLOCKS = 3
"""One of them is spare: the policy has two."""
STORE_BLOCKS = 3
TIMEOUT_S = 60.0
OLD, *NEW = [blake2b(bytes([number]), digest_size=16).digest() for number in range(4)]


@dataclass
class Setting:
    """A node, a storage node that forgets, the switch between them and its pool."""

    node: LineProcess
    store: LineProcess
    pool: Pool
    store_result: Path

    def get(self, key: bytes, flags: int = 0) -> dict[str, Any]:
        return self._asked(f"get {key.hex()} {flags}")

    def put(self, key: bytes) -> None:
        self._asked(f"put {key.hex()}")

    def pooled(self, key: bytes) -> bool:
        """Ask for a block; whether all of it came from the pool."""
        answer = self.get(key)
        assert answer["right"]
        return bool(answer["from_pool"] == FRAGMENTS)

    def at_home(self, key: bytes) -> bool:
        """Whether the home serves the block, past the pool; if so, bit for bit."""
        answer = self.get(key, wire.FLAG_BYPASS)
        assert answer["from_pool"] == 0
        assert answer["right"] == answer["found"]
        return bool(answer["found"])

    def stored(self) -> dict[str, Any]:
        """What the storage node counted until it was ended now."""
        self.store.stop()
        result: dict[str, Any] = json.loads(self.store_result.read_text())
        return result

    def _asked(self, line: str) -> dict[str, Any]:
        self.node.send(line)
        wait_for("answer", [self.node], self.node.events, TIMEOUT_S)
        return self.node.last_events["answer"]


@contextmanager
def setting(eviction: str) -> Iterator[Setting]:
    engine, fabric = Embedded(), make_topology("star", 1e9, 1, 1)
    with Network(fabric, engine) as network:
        defines = {"POOL_BLOCKS": POOL_BLOCKS, "POOL_SLOTS": POOL_BLOCKS * FRAGMENTS}
        artifacts = engine.compile(PROGRAM, defines, network.directory)
        network.start_switches()
        store, result = start_store(network)
        node = start_node(network)
        process = ControllerProcess(controller_config(network, artifacts, eviction))
        (worker,) = process.workers
        worker.start()
        try:
            wait_until(lambda: worker.connected, "the controller to be ready")
            yield Setting(node, store, worker.pool, result)
        finally:
            worker.stop()
            worker.join(10)
    assert worker.failure is None


def controller_config(network: Network, artifacts: Artifacts, eviction: str) -> Config:
    size = PoolSize(POOL_BLOCKS, POOL_BLOCKS * FRAGMENTS, FRAGMENTS)
    return Config(
        switch_configs(network, artifacts, size),
        policy="fifo",
        thresholds=Thresholds(report_count=1, eviction=eviction, answer_timeout_s=2.0),
    )


def start_store(network: Network) -> tuple[LineProcess, Path]:
    block_bytes = FRAGMENTS * wire.VALUE_BYTES
    result = network.directory / "store.result.json"
    config = {
        "address": str(network.fabric.hosts["store1"].ipv4),
        "result": str(result),
        "block_bytes": block_bytes,
        "dram_bytes": STORE_BLOCKS * block_bytes,
    }
    (network.directory / "store.json").write_text(json.dumps(config))
    command = ["-m", "hostlib.storage.storage", str(network.directory / "store.json")]
    return start(network, "store1", command), result


def start_node(network: Network) -> LineProcess:
    addresses = [str(network.fabric.hosts[name].ipv4) for name in ("node1", "store1")]
    return start(network, "node1", ["-m", "tests.controller.asking_node", *addresses, str(FRAGMENTS)])


def start(network: Network, host: str, command: list[str]) -> LineProcess:
    def popen(*arguments: Any, **options: Any) -> Any:
        return network.popen(host, *arguments, **options)

    process = LineProcess(host, [sys.executable, *command], network.directory / f"{host}.log", popen)
    wait_for("ready", [process], process.events, TIMEOUT_S)
    process.send("start")
    return process


@pytest.mark.parametrize("eviction", ["reclaim", pytest.param("value", marks=pytest.mark.slow)])
def test_the_switch_gives_back_what_the_home_has_lost_and_asks_about_the_rest(eviction: str) -> None:
    with setting(eviction) as world:
        counts = world.pool.counts
        world.put(OLD)
        wait_until(lambda: world.pooled(OLD), "the old block to be in the pool")
        for key in NEW:
            world.put(key)
        assert not world.at_home(OLD)
        assert world.pooled(OLD)
        for key in NEW[:2]:
            wait_until(partial(world.pooled, key), "a new block to be in the pool")
        wait_until(lambda: counts.evicted, "the old block to be gone")
        assert world.at_home(OLD)
        assert (counts.reclaimed, counts.held_elsewhere, counts.dropped) == (1, 0, 0)
        assert counts.reclaim_bytes == FRAGMENTS * (wire.VALUE_FRAME_BYTES + wire.HEADER_FRAME_BYTES)

        # It comes back into the pool, instead of a block that its home holds.
        wait_until(lambda: world.pooled(OLD), "the old block to be in the pool again")
        wait_until(lambda: counts.evicted == 2, "a new block to be gone")
        assert (counts.reclaimed, counts.held_elsewhere) == (1, 1)
        assert counts.reclaim_requests == FRAGMENTS + 1
        assert world.stored()["storage"]["reclaims"] == FRAGMENTS + 1
