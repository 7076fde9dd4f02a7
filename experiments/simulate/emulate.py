"""Emulation of a simulated scenario, and the scenario that simulates such an emulation.

What the emulator does not have, or what was not compared with it, is refused (`scenario.rules`).
An emulation needs root.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, fields, replace
from typing import Any

from commands.toml_file import ScenarioError
from controller.pool.residents import PERIOD_S
from emulator.emulation import Emulation, Measurements
from emulator.evaluate import evaluate
from emulator.options import RunOptions
from emulator.result import PROGRAM, RunResult
from emulator.scenario import SPARE_SHARE, make_scenario
from emulator.scenario import Scenario as RunScenario
from experiments.logs import Open
from hostlib.model.gate import ANSWERS, HOMES
from hostlib.node.routed import REPORT_PERIOD_S
from hostlib.protocol.wire import KV_HEADER_BYTES, VALUE_BYTES, VALUE_FRAME_BYTES
from hostlib.transport.endpoint import EndpointOptions
from scenario import GB, Scenario
from scenario.modes import MODES
from scenario.rules import COMPARED, PLAYED, refusals
from simulator.machine_costs import MEASURED, MachineCosts
from simulator.simulation import prepare
from topologies.engines import make_engine
from topologies.machine_check import check_machine
from topologies.network import Network
from topologies.shaping import burst_bytes
from workload.compression import NONE
from workload.levels import Ladder

TIMER_S = 1e-3
"""Resolution in seconds of asyncio's timers: hosts that are to begin at one moment do so within it."""
BATCH_BUFFER_BYTES = 720
"""Bytes of buffer that a batch takes beyond its packets.

Linux 6.18 counts 1,280 bytes for a batch of one value of 560 bytes, and 1,952 bytes for two.
"""


@dataclass(frozen=True, slots=True)
class Emulated:
    """Measurements of one play on the emulator."""

    run: RunResult
    speed: float
    """Number of real seconds in one of the emulation."""
    raw: Measurements


class Emulator:
    """One scenario on the emulator; it is played without or with the pool.
    Raises ScenarioError if refused."""

    def __init__(self, scenario: Scenario, sigma: float, speed: float | None = None) -> None:
        played = scenario.changed(workload={"requests": scenario.workload.simulated_requests})
        if played.lends and played.nodes.hints == ANSWERS:
            played = played.changed(nodes={"hints": HOMES})  # what the emulator's index says
        self._scenario, _ = prepare(played)
        for path, reason in refusals(self._scenario, (*PLAYED, *COMPARED)):
            raise ScenarioError(f"{path}: {reason}")
        self._run = make_scenario(_options(self._scenario, sigma, speed))

    @property
    def run(self) -> RunScenario:
        """Return the scenario as the emulator plays it."""
        return self._run

    @property
    def speed(self) -> float:
        """Return how many real seconds pass in one of the emulation."""
        return self._run.scale.speed

    @property
    def arrivals_s(self) -> float:
        """Return the real seconds from the first arrival to the last."""
        return self._run.trace.duration_s * self.speed

    def play(self, pool: bool, opened: Open = Network) -> Emulated:
        """Set everything up, play once, and take it down."""
        check_machine()
        engine = make_engine("embedded")
        with opened(self._run.fabric, engine) as network:
            artifacts = engine.compile(PROGRAM, self._run.defines, network.directory)
            mode = MODES["pool" if pool else "no_pool"]
            measured = Emulation(self._run, network, artifacts).play(mode, _silent)
        return Emulated(evaluate(measured, target_s=self._run.target_s), self.speed, measured)

    def matched(self, pool: bool, costs: MachineCosts = MEASURED) -> Scenario:
        """Return the scenario that simulates the emulation on such a machine: its
        frames, rounding and delays."""
        return _matched(self._scenario, self._run, pool, costs)


def _options(scenario: Scenario, sigma: float, speed: float | None) -> RunOptions:
    """Return the scenario as options of the emulator."""
    tables = {entry.name: getattr(scenario, entry.name) for entry in fields(Scenario)}
    return RunOptions(**tables | {"emulation": replace(scenario.emulation, sigma=sigma, speed=speed)})


def _matched(scenario: Scenario, run: RunScenario, pool: bool, costs: MachineCosts) -> Scenario:
    memory_blocks, cut = run.options.pool_blocks + 0.5, _CutBlock.of(run)
    if scenario.model.codec != NONE:
        memory_blocks *= 1 - SPARE_SHARE  # the emulator's policies leave that share free then
    sigma, speed = run.scale.sigma, run.scale.speed
    none = {} if pool else {"memory": "none"}
    return scenario.changed(
        network={
            "fragments": cut.fragments,
            "segments": max(1, min(8, cut.fragments - 1)),
            "latency_us": costs.hop_s * speed * 1e6,
            "header_share": VALUE_FRAME_BYTES * sigma * cut.values / cut.block_bytes - 1,
            "request_share": (VALUE_FRAME_BYTES - VALUE_BYTES) * sigma * cut.values / cut.block_bytes,
        },
        pool={
            "size_gb": memory_blocks * run.cost.block_bytes / GB,
            "pending_timeout_s": scenario.pool.pending_timeout_s * speed,
            "sketch_epoch_s": scenario.pool.sketch_epoch_s * speed,
            **none,
        },
        control={
            **costs.control(speed),
            "push": pool and scenario.control.push,
            "expects": run.options.control.expects,
        },
        direct={"lookup_s": 0.0},  # nodes that lend ask the index once, before the gate
        machine=_machine(run) | costs.table(speed),
    )


@dataclass(frozen=True, slots=True)
class _CutBlock:
    """The fragments into which the emulator, and the simulation of it, cut a block."""

    block_bytes: float
    """Bytes of a real block."""
    values: float
    """Number of values that the emulator cuts such a block into, on average."""
    fragments: int
    """Number of fragments that the simulator cuts it into."""

    @classmethod
    def of(cls, run: RunScenario) -> _CutBlock:
        """Return the cut of a run's blocks.

        Coded blocks have the mean of their sizes. Blocks of a stream, which have sizes by level, are
        cut as plain ones.
        """
        sizes = run.sizes
        if isinstance(sizes, Ladder) or sizes.compression is None:
            return cls(run.cost.block_bytes, run.fragments, run.fragments)
        return cls(run.cost.stored_bytes, sizes.mean_fragments, max(2, round(sizes.mean_fragments)))


def _machine(run: RunScenario) -> dict[str, Any]:
    """Return the machine of the emulator in real seconds, without the times that the machine takes."""
    speed = run.scale.speed
    rate_bit_s = run.fabric.link_rate_bit_s(run.fabric.answering[0])
    batch = EndpointOptions.of_link(rate_bit_s).gso_datagrams(KV_HEADER_BYTES + VALUE_BYTES)
    return {
        "pace": speed,
        "link_burst_s": burst_bytes(rate_bit_s) * 8 / rate_bit_s * speed,
        "buffer_share": BATCH_BUFFER_BYTES / VALUE_FRAME_BYTES,
        "batch_fragments": batch,
        "live_puts": True,
        "cores": len(os.sched_getaffinity(0)),
        "timer_s": TIMER_S * speed,
        "node_report_s": REPORT_PERIOD_S * speed,
        "pool_report_s": PERIOD_S * speed,
    }


def _silent(completed: int, total: int, blocks: dict[str, int]) -> None:
    """Show no progress."""
