"""One run of a scenario on a real network: start everything, run the trace, collect measurements."""

from __future__ import annotations

import json
import os
import queue
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from controller.config import Config
from emulator.control_plane import lower_priority, start_controller
from emulator.host_configs import INDEX, ROUTER, router_socket, write_host_configs
from emulator.machine import CpuTime, CpuUse
from emulator.machines import Machines, ThisMachine
from emulator.processes import (
    READY_TIMEOUT_S,
    Events,
    LineProcess,
    check_switches,
    monotonic_start,
    wait_for,
)
from emulator.running import Running, Watch
from emulator.scenario import Scenario, controller_config
from emulator.timeline import Sample, Timeline, progress_of
from scenario.modes import Mode
from topologies.engines import Artifacts
from topologies.process import Process, end_processes
from topologies.running import RunningNetwork

START_DELAY_S = 0.5
SILENCE_S = 60.0
"""Seconds without a message that mean that something hangs: processes report every second."""

REPORT_S = 0.25
"""Seconds between two summaries of all processes' progress: there may be hundreds, and each reports."""
IDLE_S = 2.0
"""Seconds for which the background is measured."""
SIDE_SERVICES = {ROUTER: "hostlib.peer.router", INDEX: "hostlib.peer.index"}
"""Programs on no host of the network: their messages do not use the links that carry KV."""

Result = TypeVar("Result")
_SideServices = Mapping[str, LineProcess]
"""Programs of SIDE_SERVICES that a run has, by name."""
OnProgress = Callable[[int, int, dict[str, int]], None]
"""Function of requests completed, requests in all, and blocks by source so far."""


@dataclass
class Measurements:
    """Raw results of one run, by process."""

    workers: dict[str, dict[str, Any]] = field(default_factory=dict)
    stores: dict[str, dict[str, Any]] = field(default_factory=dict)
    controller: dict[str, Any] = field(default_factory=dict)
    router: dict[str, Any] | None = None
    """Result of the router; None if requests were assigned beforehand."""
    index: dict[str, Any] | None = None
    """Result of the index; None if there are storage nodes."""
    storage_egress_bytes: int = 0
    """Bytes that hosts that answer GETs sent: storage nodes, or nodes that lend memory, with their own
    requests.
    """
    link_drops: int = 0
    wall_s: float = 0.0
    started_s: float = 0.0
    """Time at which all parts were ready (CLOCK_MONOTONIC)."""
    start_s: float = 0.0
    """Time of second 0 of the trace (CLOCK_MONOTONIC)."""
    cpu: CpuUse = field(default_factory=CpuUse)
    timeline: list[Sample] = field(default_factory=list)
    usage: dict[str, CpuTime] = field(default_factory=dict)
    """CPU time while the trace ran, by role: node, store, switch, controller, watch (this process), router,
    index.
    """
    control_apart: bool = False
    """Whether the controller had a machine of its own."""
    usage_s: float = 0.0
    """Seconds over which `usage` was counted, a little more than `wall_s`."""


def _at_most_every(period_s: float, do: Callable[[], None]) -> Callable[[], None]:
    """Return a function that calls `do`, unless it did so less than `period_s` ago."""
    next_s = 0.0

    def maybe() -> None:
        nonlocal next_s
        if time.monotonic() >= next_s:
            next_s = time.monotonic() + period_s
            do()

    return maybe


class Emulation:
    """Runner of a scenario on a running network; the switches are restarted for each run."""

    def __init__(
        self,
        scenario: Scenario,
        network: RunningNetwork,
        artifacts: Artifacts,
        watch: Watch = lambda running: nullcontext(),
        kv_file: Path | None = None,
        machines: Machines | None = None,
    ) -> None:
        """Start nothing yet. `watch` is entered while hosts, controller and switches run.

        `kv_file` has real KV for blocks. `machines` are those that carry the network, if it is not on this
        one.
        """
        self._machines = ThisMachine(network) if machines is None else machines
        self._kv_file = kv_file
        self._scenario, self._network, self._artifacts = scenario, network, artifacts
        self._watch = watch
        self._plays = 0

    def play(self, mode: Mode, on_progress: OnProgress) -> Measurements:
        """Run the trace once. Raises CrashError, ProcessError or EngineError if a part fails."""
        return self._run(
            mode, lambda play, running, side_services: play.measure(running, side_services, on_progress)
        )

    def background(self, mode: Mode) -> float:
        """Return how many cores the started network takes without requests, including the watch.

        Raises as `play` does.
        """
        return self._run(mode, lambda play, running, side_services: play.idle(running, side_services))

    def _run(self, mode: Mode, do: Callable[[_Play, Running, _SideServices], Result]) -> Result:
        self._plays += 1
        directory = self._network.directory / f"{self._plays}-{mode.name}"
        directory.mkdir()
        self._network.start_switches()
        try:
            router = router_socket(self._scenario, directory)
            config = controller_config(self._scenario, self._network, self._artifacts, mode, router)
            play = _Play(self._scenario, self._network, self._machines, directory, self._watch, self._kv_file)
            return play.run(mode, config, partial(do, play))
        finally:
            self._network.stop_switches()


class _Play:
    def __init__(
        self,
        scenario: Scenario,
        network: RunningNetwork,
        machines: Machines,
        directory: Path,
        watch: Watch,
        kv_file: Path | None,
    ) -> None:
        self._scenario, self._network, self._directory = scenario, network, directory
        self._machines = machines
        self._watch, self._kv_file = watch, kv_file
        self._events: Events = queue.SimpleQueue()

    def run(self, mode: Mode, config: Config, do: Callable[[Running, _SideServices], Result]) -> Result:
        """Start everything, call `do` when all is ready, and end everything."""
        controller = start_controller(config, self._network, self._directory, self._events)
        hosts = self._start_hosts()
        workers = [hosts[name] for name in self._scenario.fabric.nodes]
        stores = [hosts[name] for name in self._scenario.fabric.stores]
        side_services = {name: hosts[name] for name in SIDE_SERVICES if name in hosts}
        wait_for("ready", [controller, *hosts.values()], self._events, READY_TIMEOUT_S)
        lower_priority(controller)
        timeline = Timeline(self._network, progress_of([controller, *workers, *stores]))
        running = Running(
            self._network, mode.name, tuple(workers), tuple(stores), controller, config.switches, timeline
        )
        try:
            with self._watch(running):
                return do(running, side_services)
        finally:  # if a part failed, the others still run
            end_processes(
                process.process for process in (*workers, *stores, *side_services.values(), controller)
            )

    def idle(self, running: Running, side_services: _SideServices) -> float:
        """Return how many cores everything takes without a request."""
        hosts = (*running.nodes, *running.stores, *side_services.values())
        processes = [host.process for host in (*hosts, running.controller)]
        processes += self._network.switch_processes.values()
        with self._machines.watch(), running.timeline:
            start_s = monotonic_start(START_DELAY_S)
            for host in hosts:
                self._start_at(host, start_s)
            time.sleep(2 * START_DELAY_S)
            before_s, began_s = self._used_s(processes), time.monotonic()
            time.sleep(IDLE_S)
            return (self._used_s(processes) - before_s) / (time.monotonic() - began_s)

    def _used_s(self, processes: Iterable[Process]) -> float:
        """Return the CPU time in seconds of these processes and of this process so far."""
        return self._machines.cpu_time(processes).total_s + time.process_time()

    def measure(
        self, running: Running, side_services: _SideServices, on_progress: OnProgress
    ) -> Measurements:
        """Run the trace and return what was measured."""
        workers, stores, controller = running.nodes, running.stores, running.controller
        measured = Measurements(started_s=time.monotonic(), control_apart=self._machines.control_apart)
        sent_before, dropped_before = self._egress_bytes(), self._network.link_drops()
        parts: dict[str, list[Process]] = {
            "node": [worker.process for worker in workers],
            "store": [store.process for store in stores],
            "switch": list(self._network.switch_processes.values()),
            "controller": [controller.process],
            **{name: [process.process] for name, process in side_services.items()},
        }
        players = [*workers, *(process for name, process in side_services.items() if name == ROUTER)]
        report = _at_most_every(REPORT_S, lambda: self._report(workers, on_progress))
        with running.timeline, self._machines.watch() as watch:
            before, since_s = self._used_by(parts), time.monotonic()
            start_s = measured.start_s = monotonic_start(START_DELAY_S)
            for host in (*workers, *stores, *side_services.values()):
                self._start_at(host, start_s)
            wait_for("finished", players, self._events, SILENCE_S, report)
            after = self._used_by(parts)
            measured.usage, measured.usage_s = _less(after, before), time.monotonic() - since_s
            self._report(workers, on_progress)
            measured.wall_s = round(time.monotonic() - start_s, 3)
        measured.cpu, measured.timeline = watch.use, running.timeline.samples
        measured.storage_egress_bytes = self._egress_bytes() - sent_before
        measured.link_drops = self._network.link_drops() - dropped_before
        for process in (controller, *workers, *stores, *side_services.values()):
            process.stop()
        measured.controller = self._result("controller")
        measured.router = self._result(ROUTER) if ROUTER in side_services else None
        measured.index = self._result(INDEX) if INDEX in side_services else None
        measured.workers = {name: self._result(name) for name in self._scenario.fabric.nodes}
        measured.stores = {name: self._result(name) for name in self._scenario.fabric.stores}
        return measured

    def _used_by(self, parts: Mapping[str, Sequence[Process]]) -> dict[str, CpuTime]:
        own = os.times()
        return {
            **{role: self._machines.cpu_time(processes) for role, processes in parts.items()},
            "watch": CpuTime(own.user, own.system),
        }

    def _start_at(self, host: LineProcess, start_s: float) -> None:
        """Send a host the time of second 0, converted from our CLOCK_MONOTONIC to its own."""
        ahead_s = 0.0 if host.name in SIDE_SERVICES else self._network.clock_ahead_s(host.name)
        host.send(f"start {start_s + ahead_s}")

    def _start_hosts(self) -> dict[str, LineProcess]:
        configs = write_host_configs(self._scenario, self._directory, self._kv_file, self._network.seen_by)
        return {name: self._start_host(name, path) for name, path in configs.items()}

    def _start_host(self, name: str, config: Path) -> LineProcess:
        module = "hostlib.node.worker" if name in self._scenario.shares else "hostlib.storage.storage"
        popen: Callable[..., Process] = partial(self._network.popen, name)
        if name in SIDE_SERVICES:
            module, popen = SIDE_SERVICES[name], self._network.popen_here
        else:
            self._network.send(name, self._directory.glob(f"{name}.*"))
            config = self._network.seen_by(name, config)
        command = [sys.executable, "-m", module, str(config)]
        return LineProcess(name, command, self._directory / f"{name}.log", popen, self._events)

    def _report(self, workers: Sequence[LineProcess], on_progress: OnProgress) -> None:
        check_switches(self._network)
        blocks: dict[str, int] = {}
        for worker in workers:
            for source, count in worker.progress.get("blocks", {}).items():
                blocks[source] = blocks.get(source, 0) + count
        completed = sum(worker.progress.get("completed", 0) for worker in workers)
        on_progress(completed, len(self._scenario.trace.requests), blocks)

    def _egress_bytes(self) -> int:
        return sum(self._network.transmitted_bytes(name) for name in self._scenario.fabric.answering)

    def _result(self, name: str) -> dict[str, Any]:
        path = self._directory / f"{name}.result.json"
        if name in self._scenario.fabric.hosts:
            self._network.fetch(name, path)
        result: dict[str, Any] = json.loads(path.read_text())
        return result


def _less(after: Mapping[str, CpuTime], before: Mapping[str, CpuTime]) -> dict[str, CpuTime]:
    return {role: used - before[role] for role, used in after.items()}
