"""One run at one size of network and one sigma, and what it cost the machine."""

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
    """Figures of one run. CPU times are microseconds for each fragment that reached a node."""

    sigma: float
    start_s: float
    """Seconds until all parts of the network were ready."""
    fragments_per_s: float
    cpu_share: float
    complaints: tuple[str, ...]
    """Reasons why the machine did not keep up; empty if it did."""
    program_us: dict[str, float]
    """CPU time in the programs themselves, by role."""
    kernel_us: dict[str, float]
    """CPU time in the kernel on the programs' behalf, by role."""
    requests_per_s: float = 0.0
    """Requests a second, over all nodes."""

    @property
    def kept_up(self) -> bool:
        """Return whether the machine kept up, so that the figures count."""
        return not self.complaints

    @property
    def total_us(self) -> float:
        """Return a fragment's CPU time in µs, over all roles, programs and kernel together."""
        return sum(self.program_us.values()) + sum(self.kernel_us.values())


def play(options: RunOptions, sigma: float, say: Callable[[str], None], opened: Open = Network) -> Measured:
    """Build the network at this sigma and run the trace once, with the pool."""
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
    """Return a run's figures from what its parts measured."""
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
    """Figures of two processes at the ends of one cable, which may use all cores."""

    datagrams_per_s: float
    cpu_us: float
    """CPU time of a datagram in µs, at both ends together."""


def bare_blast(seconds: float) -> Blast:
    """Send datagrams of a fragment's size between two namespaces for `seconds`; count those that arrive."""
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
        receiver.stdout.readline()  # it says that it listens
        sender = cables.generator.popen([*command, "send", address, str(seconds)], every_cpu, **pipe)
        ends: list[dict[str, Any]] = [json.loads(end.communicate()[0]) for end in (sender, receiver)]
    arrived = ends[1]["datagrams"]
    return Blast(arrived / seconds, 1e6 * sum(end["cpu_s"] for end in ends) / max(1, arrived))
