"""Replicas on a real network: PUTs that the switch copies, a home that is killed, and one that returns."""

from __future__ import annotations

import json
import os
import queue
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from controller.config import Config, PoolSize, SwitchConfig, Thresholds
from emulator.control_plane import start_controller, switch_configs
from emulator.processes import READY_TIMEOUT_S, LineProcess, wait_for
from emulator.result import PROGRAM
from tests.hostlib.remote_client import BLOCK_BYTES
from tests.hostlib.sealed import TENANT
from topologies.engines import Engine, make_engine
from topologies.errors import EngineError
from topologies.network import Network
from topologies.registry import make_topology

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
]

LINK_BIT_S = {"embedded": 40e6, "bmv2": 2e6}
"""BMv2 forwards a few thousand packets a second: what it is behind with is sent again."""
BLOCKS = 40
FRAGMENTS = 32
POOL_BLOCKS = 8
WAIT_LIMIT_S = 60.0
Answer = dict[str, Any]


class Cluster:
    """Two clients, three storage nodes, a controller that says two replicas."""

    def __init__(self, network: Network, topology: str) -> None:
        self.network, self.fabric = network, network.fabric
        self.events: queue.SimpleQueue[Any] = queue.SimpleQueue()
        size = PoolSize(POOL_BLOCKS, POOL_BLOCKS * FRAGMENTS, FRAGMENTS)
        defines = {"POOL_BLOCKS": POOL_BLOCKS, "POOL_SLOTS": POOL_BLOCKS * FRAGMENTS}
        artifacts = network.engine.compile(PROGRAM, defines, network.directory)
        network.start_switches()
        config = Config(
            switches=tuple(map(_with_tenant, switch_configs(network, artifacts, size))),
            policy="lru",
            replicas=2,
            thresholds=Thresholds(report_count=1, fill="on_the_way"),
        )
        controller = start_controller(config, network, network.directory, self.events)
        wait_for("ready", [controller], self.events, READY_TIMEOUT_S)
        self.homes = [str(self.fabric.hosts[name].ipv4) for name in self.fabric.stores]
        self.stores = {name: self.start_store(name) for name in self.fabric.stores}
        self.clients = [self._start_client(name) for name in self.fabric.nodes[:2]]

    def start_store(self, name: str) -> LineProcess:
        path = self.network.directory / f"{name}.json"
        config = self._common(name) | {
            "result": str(self.network.directory / f"{name}.out"),
            "replicas": 2,
            "block_bytes": BLOCK_BYTES,
            "dram_bytes": 4 * BLOCK_BYTES,
            "ssd_dir": str(self.network.directory / f"{name}.ssd"),
            "ssd_bytes": 1000 * BLOCK_BYTES,
        }
        path.write_text(json.dumps(config))
        store = self._start(name, [sys.executable, "-m", "hostlib.storage.storage", str(path)])
        wait_for("ready", [store], self.events, READY_TIMEOUT_S)
        store.send("start")
        return store

    def ask(self, client: LineProcess, **command: Any) -> Answer:
        client.last_events.pop("done", None)
        client.send(json.dumps(command))
        wait_for("done", [client], self.events, WAIT_LIMIT_S)
        return client.last_events["done"]

    def until(self, client: LineProcess, condition: Callable[[Answer], bool]) -> None:
        deadline_s = time.monotonic() + WAIT_LIMIT_S
        while not condition(answer := self.ask(client, members=True)):
            assert time.monotonic() < deadline_s, f"waited {WAIT_LIMIT_S:g} s; the last list is {answer}"
            time.sleep(0.02)

    def _common(self, name: str) -> dict[str, Any]:
        return {
            "address": str(self.fabric.hosts[name].ipv4),
            "homes": self.homes,
            "controller": str(self.fabric.controller_of(name).ipv4),
        }

    def _start_client(self, name: str) -> LineProcess:
        client = self._start(name, [sys.executable, "-m", "tests.hostlib.remote_client"])
        client.send(json.dumps(self._common(name) | {"replicas": 2}))
        wait_for("ready", [client], self.events, READY_TIMEOUT_S)
        return client

    def _start(self, name: str, command: list[str]) -> LineProcess:
        def popen(*arguments: Any, **options: Any) -> Any:
            return self.network.popen(name, *arguments, **options)

        return LineProcess(name, command, self.network.directory / f"{name}.log", popen, self.events)


def _with_tenant(switch: SwitchConfig) -> SwitchConfig:
    ports = tuple(replace(port, tenants=(TENANT,)) if port.role == "node" else port for port in switch.ports)
    return replace(switch, ports=ports)


@pytest.fixture(params=["embedded", pytest.param("bmv2", marks=pytest.mark.bmv2)])
def engine(request: pytest.FixtureRequest) -> Engine:
    try:
        return make_engine(request.param)
    except EngineError as error:
        pytest.skip(str(error))


@pytest.fixture(params=["leafspine", pytest.param("star", marks=pytest.mark.slow)])
def cluster(request: pytest.FixtureRequest, engine: Engine) -> Iterator[Cluster]:
    with Network(make_topology(request.param, LINK_BIT_S[engine.name], 2, 3), engine) as network:
        yield Cluster(network, request.param)


def everyone_is(state: str) -> Callable[[Answer], bool]:
    return lambda answer: answer["epoch"] > 0 and set(answer["members"].values()) == {state}


def test_writes_survive_a_home_and_return_to_it(cluster: Cluster) -> None:
    writer, reader = cluster.clients
    for client in (writer, reader):
        cluster.until(client, everyone_is("UP"))

    sent = {}
    for replicas, first in ((1, 0), (2, BLOCKS)):
        before = cluster.network.transmitted_bytes(writer.name)
        numbers = list(range(first, first + BLOCKS))
        done = cluster.ask(writer, put=numbers, replicas=replicas)
        assert done["results"] == ["held"] * BLOCKS
        sent[replicas] = cluster.network.transmitted_bytes(writer.name) - before
    assert sent[2] <= 1.1 * sent[1]

    blocks = list(range(BLOCKS, 2 * BLOCKS))  # those with two replicas
    assert cluster.ask(reader, get=blocks)["results"] == ["right"] * BLOCKS
    name, address = cluster.fabric.stores[0], cluster.homes[0]
    cluster.stores[name].stopping = True
    cluster.stores[name].process.kill()
    assert cluster.ask(reader, get=blocks)["results"] == ["right"] * BLOCKS
    cluster.until(reader, lambda answer: answer["members"][address] == "DOWN")
    more = list(range(2 * BLOCKS, 3 * BLOCKS))
    assert cluster.ask(writer, put=more, replicas=2)["results"] == ["held"] * BLOCKS
    assert cluster.ask(reader, get=blocks + more)["results"] == ["right"] * 2 * BLOCKS

    cluster.stores[name] = cluster.start_store(name)
    for client in (writer, reader):
        cluster.until(client, everyone_is("UP"))
    assert cluster.ask(reader, get=blocks + more)["results"] == ["right"] * 2 * BLOCKS
    other = cluster.stores[cluster.fabric.stores[1]]
    other.stopping = True
    other.process.kill()  # what it had alone with the first, the first has caught up with
    assert cluster.ask(reader, get=blocks + more)["results"] == ["right"] * 2 * BLOCKS
