"""One size of network: playing at a sigma, and what a play says of the machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from emulator.emulation import Emulation, Measurements
from emulator.evaluate import strain
from emulator.options import RunOptions
from emulator.result import PROGRAM
from emulator.scenario import make_scenario
from experiments.bench.emulation import blast
from experiments.bench.switch.cables import Cables
from experiments.logs import Open
from scenario.modes import MODES
from topologies.engines import make_engine
from topologies.network import Network

ROLES = ("node", "store", "switch", "controller")


@dataclass(frozen=True, slots=True)
class Measured:
    """One run. CPU times are microseconds a fragment that reached a node."""

    sigma: float
    start_s: float
    """From nothing to a network whose parts are all ready."""
    fragments_per_s: float
    cpu_share: float
    complaints: tuple[str, ...]
    program_us: dict[str, float]
    """By role, in the programs themselves."""
    kernel_us: dict[str, float]
    """By role, in the kernel on their behalf."""
    requests_per_s: float = 0.0
    """Over all nodes."""

    @property
    def kept_up(self) -> bool:
        """Return whether the figures of such a play would count."""
        return not self.complaints

    @property
    def total_us(self) -> float:
        """Return all of a fragment's CPU time."""
        return sum(self.program_us.values()) + sum(self.kernel_us.values())


def play(options: RunOptions, sigma: float, say: Callable[[str], None], opened: Open = Network) -> Measured:
    """Build the network at this sigma and play once, with the pool."""
    scenario = make_scenario(replace(options, emulation=replace(options.emulation, sigma=sigma)))
    began_s = time.monotonic()
    engine = make_engine(options.emulation.engine)
    with opened(scenario.fabric, engine) as network:
        artifacts = engine.compile(PROGRAM, scenario.defines, network.directory)
        measured = Emulation(scenario, network, artifacts).play(
            MODES["pool"], lambda completed, total, _: say(f"{completed} of {total} requests")
        )
    return summarize(sigma, measured.started_s - began_s, measured)


def summarize(sigma: float, start_s: float, measured: Measurements) -> Measured:
    """Return a play's figures from what its parts measured."""
    workers = measured.workers.values()
    fragments = sum(worker["endpoint"]["received"] for worker in workers)
    each = 1e6 / max(1, fragments)
    complaints = [*strain(measured).complaints()]
    if unfinished := sum(worker["requests"] - worker["node"]["completed"] for worker in workers):
        complaints.append(f"{unfinished} requests were not served")
    return Measured(
        sigma=sigma,
        start_s=round(start_s, 1),
        fragments_per_s=round(fragments / measured.wall_s, 1),
        cpu_share=round(measured.cpu.mean, 3),
        complaints=tuple(complaints),
        program_us={role: round(measured.usage[role].user_s * each, 2) for role in ROLES},
        kernel_us={role: round(measured.usage[role].system_s * each, 2) for role in ROLES},
        requests_per_s=round(sum(worker["requests"] for worker in workers) / measured.wall_s, 1),
    )


@dataclass(frozen=True, slots=True)
class Blast:
    """What two processes at the ends of one cable can do, on all cores."""

    datagrams_per_s: float
    cpu_us: float
    """A datagram, at both ends together."""


def bare_blast(seconds: float) -> Blast:
    """Datagrams of a fragment's size from one namespace to another; what arrived counts."""
    address = "10.9.0.2"
    with Cables(1) as cables:
        for namespace, end, own in (
            (cables.generator, cables.generator_ends[0], "10.9.0.1/24"),
            (cables.engine, cables.engine_ends[0], f"{address}/24"),
        ):
            namespace.run("ip", "address", "add", own, "dev", end)
            namespace.run("ip", "link", "set", end, "arp", "on")
        every_cpu = f"0-{(os.cpu_count() or 1) - 1}"
        command = [sys.executable, "-m", blast.__name__]
        pipe = {"stdout": subprocess.PIPE}
        receiver = cables.engine.popen([*command, "receive", address, str(seconds)], every_cpu, **pipe)
        assert receiver.stdout is not None
        receiver.stdout.readline()  # it listens
        sender = cables.generator.popen([*command, "send", address, str(seconds)], every_cpu, **pipe)
        ends: list[dict[str, Any]] = [json.loads(end.communicate()[0]) for end in (sender, receiver)]
    arrived = ends[1]["datagrams"]
    return Blast(arrived / seconds, 1e6 * sum(end["cpu_s"] for end in ends) / max(1, arrived))
