"""Measurement of the experiment's points on a running network: real processes, real packets."""

from __future__ import annotations

import json
import queue
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from controller.config import Config
from emulator.control_plane import lower_priority, start_controller
from emulator.machine import CpuUse, CpuWatch
from emulator.processes import (
    READY_TIMEOUT_S,
    Events,
    LineProcess,
    ask,
    check_switches,
    wait_for,
)
from emulator.running import Running, Watch
from emulator.timeline import Timeline, progress_of
from experiments.incast.patterns import Burst
from experiments.incast.scenario import Case, Scenario, controller_config, write_host_configs
from topologies.engines import Artifacts
from topologies.network import Network

START_DELAY_S = 0.05
"""Seconds from the command to the burst, enough for the command to reach all nodes."""
SILENCE_S = 60.0


@dataclass
class Measurements:
    """Raw results of one point; counts are those of the point alone."""

    bursts: list[dict[str, dict[str, Any]]] = field(default_factory=list)
    """Report of each node, by name, for each burst."""
    storage_egress_bytes: int = 0
    storage_packets: int = 0
    link_drops: int = 0
    store_drops: int = 0
    controller: dict[str, int] = field(default_factory=dict)
    wall_s: float = 0.0
    cpu: CpuUse = field(default_factory=CpuUse)


class Emulation:
    """Emulation with hosts that run for the whole experiment, and switches and a controller for each mode."""

    def __init__(
        self, scenario: Scenario, network: Network, artifacts: Artifacts, watch: Watch | None = None
    ) -> None:
        """Start the hosts. `watch` gets samples of each mode."""
        self._scenario, self._network, self._artifacts = scenario, network, artifacts
        self._watch = watch
        self.events: Events = queue.SimpleQueue()
        self.hosts = self._start_hosts()
        self._store = scenario.fabric.stores[0]

    @contextmanager
    def mode(self, name: str) -> Iterator[Mode]:
        """Run switches and a controller in a mode during the `with` block."""
        directory = self._network.directory / name
        directory.mkdir()
        self._network.start_switches()
        try:
            config = controller_config(self._scenario, self._network, self._artifacts, name)
            controller = start_controller(config, self._network, directory, self.events)
            wait_for("ready", [controller], self.events, READY_TIMEOUT_S)
            lower_priority(controller)
            with self._watched(name, controller, config):
                yield Mode(self, controller)
            controller.stop()
        finally:
            self._network.stop_switches()

    @contextmanager
    def _watched(self, mode: str, controller: LineProcess, config: Config) -> Iterator[None]:
        """Give samples to the watch, if there is one, during the `with` block."""
        if self._watch is None:
            yield
            return
        nodes, stores = (
            tuple(self.hosts[name] for name in names)
            for names in (self._scenario.fabric.nodes, self._scenario.fabric.stores)
        )
        timeline = Timeline(self._network, progress_of([controller, *stores]))
        running = Running(self._network, mode, nodes, stores, controller, config.switches, timeline)
        with self._watch(running), timeline:
            yield

    def burst(self, burst: Burst, push: bool) -> dict[str, dict[str, Any]]:
        """Let all nodes ask at the same moment; returns each node's report. Raises ProcessError."""
        readers = [self.hosts[node] for node in burst]
        at_s = time.monotonic() + START_DELAY_S
        for reader in readers:
            chains = [[key.hex() for key in chain] for chain in burst[reader.name]]
            reader.send(json.dumps({"at_s": at_s, "chains": chains, "push": push}))
        wait_for("finished", readers, self.events, SILENCE_S, lambda: check_switches(self._network))
        return {reader.name: reader.last_events["finished"] for reader in readers}

    def counts(self, controller: LineProcess) -> dict[str, Any]:
        """Return the counters so far of storage node, links and controller."""
        counted = ask(controller, SILENCE_S)
        return {
            "storage_egress_bytes": self._network.transmitted_bytes(self._store),
            "storage_packets": self._network.received_packets(self._store),
            "link_drops": self._network.link_drops(),
            "store_drops": self.hosts[self._store].progress.get("dropped", 0),
            "controller": counted,
        }

    def _start_hosts(self) -> dict[str, LineProcess]:
        directory = self._network.directory
        configs = write_host_configs(self._scenario, directory)
        hosts = {name: self._start_host(name, path, directory) for name, path in configs.items()}
        wait_for("ready", hosts.values(), self.events, READY_TIMEOUT_S)
        for store in self._scenario.fabric.stores:
            hosts[store].send("start")
        return hosts

    def _start_host(self, name: str, config: Path, directory: Path) -> LineProcess:
        is_store = name in self._scenario.fabric.stores
        module = "hostlib.storage.storage" if is_store else "experiments.incast.reader"
        command = [sys.executable, "-m", module, str(config)]

        def popen(*arguments: Any, **options: Any) -> Any:
            return self._network.popen(name, *arguments, **options)

        return LineProcess(name, command, directory / f"{name}.log", popen, self.events)


class Mode:
    """Network in one mode."""

    def __init__(self, emulation: Emulation, controller: LineProcess) -> None:
        self._emulation, self.controller = emulation, controller

    def measure(self, case: Case, pause_s: float) -> Measurements:
        """Run all bursts of a point and return its measurements. Raises ProcessError if a part fails."""
        measured = Measurements()
        before = self._emulation.counts(self.controller)
        with CpuWatch() as watch:
            started_s = time.monotonic()
            measured.bursts = list(self._play(case, pause_s))
            measured.wall_s = round(time.monotonic() - started_s, 3)
        measured.cpu = watch.use
        after = self._emulation.counts(self.controller)
        for name in ("storage_egress_bytes", "storage_packets", "link_drops", "store_drops"):
            setattr(measured, name, after[name] - before[name])
        measured.controller = _difference(before["controller"], after["controller"])
        return measured

    def _play(self, case: Case, pause_s: float) -> Iterator[dict[str, dict[str, Any]]]:
        for index, burst in enumerate(case.bursts):
            if index:
                time.sleep(pause_s)
            yield self._emulation.burst(burst, push=case.mode == "push")


def _difference(before: dict[str, Any], after: dict[str, Any]) -> dict[str, int]:
    return {name: value - before[name] for name, value in after.items() if isinstance(value, int)}
