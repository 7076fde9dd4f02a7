"""Reports of the processes of a running topology.

Hosts and the controller answer `report` on their stdin, which reaches across namespaces. A switch needs to
know nothing of metrics: its counter of outcomes is read over P4Runtime, its interfaces from
/proc/PID/net/dev.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

import grpc
import psutil

from controller.config import SwitchConfig
from controller.p4_constants import OUTCOME_NAMES, OUTCOMES
from controller.p4runtime.channel import open_channel
from controller.p4runtime.p4info import Program, load_p4info
from emulator.metrics.catalogue import (
    CONTROLLER,
    HOST,
    NODE,
    OWNER_LABELS,
    PROCESS,
    RUN,
    STORE,
    SWITCH,
)
from emulator.processes import ask_all
from emulator.running import Running
from v1model.protos.p4.v1 import p4runtime_pb2, p4runtime_pb2_grpc

ANSWER_TIMEOUT_S = 2.0
"""Seconds after which a process that has not answered counts as not up in that scrape."""

_Owners = dict[tuple[str, ...], Mapping[str, Any]]
Reports = dict[str, _Owners]
"""Reports by kind of owner (see the catalogue), then by the values of the owner's labels."""


class Sources:
    """Reader of the reports of a running network; call `close` when the network has ended."""

    def __init__(self, running: Running, about: Mapping[str, str]) -> None:
        """Open sessions with the switches. `about` has the labels of weir_run_info except the mode."""
        self._running = running
        playing = {**about, "mode": running.mode}
        self._playing = tuple(playing[label] for label in OWNER_LABELS[RUN])
        self._switches = [_OutcomesReader(switch) for switch in running.switches]

    def close(self) -> None:
        """End the sessions with the switches."""
        for switch in self._switches:
            switch.close()

    def read(self) -> Reports:
        """Read all reports once; a process that does not answer in time has only its own metrics."""
        running = self._running
        reports = ask_all([*running.nodes, *running.stores, running.controller], ANSWER_TIMEOUT_S)
        nodes: _Owners = {(host.name,): reports[host.name] for host in running.nodes if host.name in reports}
        stores: _Owners = {
            (host.name,): reports[host.name] for host in running.stores if host.name in reports
        }
        lending: _Owners = {name: one["lent"] for name, one in nodes.items() if one.get("lent")}
        controller = reports.get(running.controller.name, {})
        switches = self._read_switches()
        return {
            RUN: {self._playing: {"playing": 1}},
            NODE: nodes,
            STORE: stores | lending,
            HOST: nodes | stores,
            CONTROLLER: {(name,): part for name, part in controller.get("switches", {}).items()},
            SWITCH: switches,
            PROCESS: self._processes(
                {*reports, *(name for (name,), one in switches.items() if "outcomes" in one)}
            ),
        }

    def _read_switches(self) -> _Owners:
        links = self._running.network.link_bytes()
        found: _Owners = {}
        for reader in self._switches:
            report: dict[str, Any] = {"received": {}, "sent": {}}
            for port in self._running.network.fabric.ports(reader.name):
                both = links.get(f"{reader.name}-{port.peer}")
                if both is not None:
                    report["received"][port.peer], report["sent"][port.peer] = both
            with contextlib.suppress(grpc.RpcError):
                report["outcomes"] = reader.read()
            found[reader.name,] = report
        return found

    def _processes(self, answered: set[str]) -> _Owners:
        running = self._running
        processes = [
            *((host.name, "node", host.process.pid) for host in running.nodes),
            *((host.name, "store", host.process.pid) for host in running.stores),
            *((name, "switch", process.pid) for name, process in running.network.switch_processes.items()),
            (running.controller.name, "controller", running.controller.process.pid),
        ]
        found: _Owners = {}
        for name, role, pid in processes:
            report: dict[str, Any] = {"up": int(name in answered)}
            with contextlib.suppress(psutil.Error):
                process = psutil.Process(pid)
                times = process.cpu_times()
                report |= {"cpu_s": times.user + times.system, "resident_bytes": process.memory_info().rss}
            found[name, role] = report
        return found


class _OutcomesReader:
    """Reader of a switch's counter of outcomes, in a session beside its controller's."""

    def __init__(self, switch: SwitchConfig) -> None:
        self.name = switch.name
        counter = p4runtime_pb2.CounterEntry(
            counter_id=Program(load_p4info(switch.p4info)).counter_id(OUTCOMES)
        )
        self._request = p4runtime_pb2.ReadRequest(
            device_id=switch.device_id, entities=[p4runtime_pb2.Entity(counter_entry=counter)]
        )
        self._channel = open_channel(
            switch.grpc_address, switch.tls, (("grpc.use_local_subchannel_pool", 1),)
        )
        self._stub = p4runtime_pb2_grpc.P4RuntimeStub(self._channel)

    def read(self) -> dict[str, int]:
        """Return the number of packets by outcome; raises grpc.RpcError."""
        entities = [
            entity.counter_entry
            for response in self._stub.Read(self._request, timeout=ANSWER_TIMEOUT_S)
            for entity in response.entities
        ]
        packets = {entry.index.index: entry.data.packet_count for entry in entities}
        return {name: packets.get(index, 0) for index, name in enumerate(OUTCOME_NAMES)}

    def close(self) -> None:
        """End the session."""
        self._channel.close()
