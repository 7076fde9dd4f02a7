"""A scenario on the packet-level emulator, at a sigma; and the scenario as that emulator carries it out.

What the emulator does not have is refused: pools that are read directly, batched decoding, blocking loads,
closed loops, gates that never open. Needs root.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from controller.pool.residents import PERIOD_S
from emulator.emulation import Emulation, Measurements
from emulator.evaluate import evaluate
from emulator.modes import MODES
from emulator.options import RunOptions, parse_options
from emulator.result import ROOT, RunResult
from emulator.scenario import JOINS_AT, LEAD_S, SPARE_SHARE, make_scenario
from emulator.scenario import Scenario as RunScenario
from experiments.logs import Open
from hostlib.model.gate import ANSWERS, HOMES
from hostlib.model.tier_rules import DEFAULT_RULE
from hostlib.node.routed import REPORT_PERIOD_S
from hostlib.protocol.wire import KV_HEADER_BYTES, VALUE_BYTES, VALUE_FRAME_BYTES
from hostlib.transport.endpoint import EndpointOptions
from simulator.checks import cost_model
from simulator.machine_costs import MEASURED, MachineCosts
from simulator.scenario import GB, Scenario, ScenarioError
from simulator.simulation import prepare
from topologies.engines import make_engine
from topologies.machine_check import check_machine
from topologies.network import Network
from topologies.shaping import burst_bytes
from workload.compression import NONE
from workload.levels import Ladder
from workload.schedule import CONDUCTOR

PROGRAM = ROOT / "p4" / "weir.p4"
TIMER_S = 1e-3
"""asyncio waits for whole milliseconds, so hosts that are to begin at one moment do so within one."""
LUMP_BUFFER_BYTES = 720
"""Linux 6.18 counts 1,280 bytes of buffer for one value, 1,952 for two in a lump, of 560 bytes each."""


@dataclass(frozen=True, slots=True)
class Emulated:
    """What the emulator measured."""

    run: RunResult
    speed: float
    """Real seconds in one of the emulation."""
    raw: Measurements


class Emulator:
    """One scenario on the emulator: prepare (refusals), then play, without or with the pool."""

    def __init__(self, scenario: Scenario, sigma: float, speed: float | None = None) -> None:
        self._scenario, _ = prepare(scenario)
        for path, reason in _beyond(self._scenario):
            raise ScenarioError(f"{path}: {reason}")
        self._run = make_scenario(_options(self._scenario, sigma, speed))

    @property
    def run(self) -> RunScenario:
        """What is played."""
        return self._run

    @property
    def speed(self) -> float:
        """How many real seconds pass in one."""
        return self._run.scale.speed

    @property
    def arrivals_s(self) -> float:
        """Real seconds from the first arrival to the last."""
        return self._run.trace.duration_s * self.speed

    def play(self, pool: bool, opened: Open = Network) -> Emulated:
        """Set everything up, play once, take it down."""
        check_machine()
        engine = make_engine("embedded")
        with opened(self._run.fabric, engine) as network:
            artifacts = engine.compile(PROGRAM, self._run.defines, network.directory)
            mode = MODES["pool" if pool else "no_pool"]
            measured = Emulation(self._run, network, artifacts).play(mode, _silent)
        return Emulated(evaluate(measured, target_s=self._run.target_s), self.speed, measured)

    def matched(self, pool: bool, costs: MachineCosts = MEASURED) -> Scenario:
        """The scenario as the emulator carries it out on such a machine: its frames, rounding, delays."""
        return _matched(self._scenario, self._run, pool, costs)


def _options(scenario: Scenario, sigma: float, speed: float | None) -> RunOptions:
    block_bytes = cost_model(scenario, scenario.model.block_tokens or 0).block_bytes
    workload, network = scenario.workload, scenario.network
    values = {
        "topo": network.topology,
        "trace": workload.trace or None,
        "sessions-per-hour": workload.sessions_per_hour,
        "hours": workload.hours,
        "shared-prefix": "yes" if workload.shared_prefix else "no",
        "loop": workload.loop,
        "block-tokens": scenario.model.block_tokens if workload.trace else None,
        "shape": workload.shape,
        "requests": workload.requests,
        "start": workload.start_s,
        "speed": speed,
        "hosts": scenario.nodes.count,
        "stores": 0 if scenario.lends else scenario.storage.count,
        "leaves": network.leaves,
        "spines": network.spines,
        "pods": network.pods,
        "scheduler": workload.scheduler,
        "ttft-slo": workload.ttft_slo_s,
        "gate": "yes" if scenario.nodes.gate == "compare" else "no",
        "hints": ANSWERS if scenario.lends else scenario.nodes.hints,
        "policy": scenario.pool.policy,
        "eviction": scenario.control.eviction,
        "fill": scenario.control.fill,
        "push": "yes" if scenario.control.push else "no",
        "expect": "yes" if scenario.control.expects else "no",
        "joining": scenario.nodes.joining,
        "pool-blocks": max(1, int(scenario.pool.size_gb * GB / block_bytes)),
        "gpu-blocks": int(scenario.nodes.gpu_gb * GB / block_bytes),
        "dram-blocks": int(scenario.nodes.dram_gb * GB / block_bytes),
        "store-blocks": int(scenario.storage.dram_gb * GB / block_bytes),
        "ssd-gbyte": scenario.storage.ssd_gbyte_s,
        "scale": sigma,
        "model": scenario.model.name,
        "gpu": scenario.model.gpu,
        "codec": scenario.model.codec,
        "level": scenario.model.level,
        "coder": scenario.model.coder,
        "link-gbit": network.link_gbit_s,
        "requests-first": "yes" if network.requests_first else "no",
        "seed": workload.seed,
    }
    arguments = [f"--{name}={value}" for name, value in values.items() if value is not None]
    return parse_options(arguments, "experiments.simulate.emulate", "")


def _matched(scenario: Scenario, run: RunScenario, pool: bool, costs: MachineCosts) -> Scenario:
    memory_blocks, cut = run.options.pool_blocks + 0.5, _Cut.of(run)
    if scenario.model.codec != NONE:
        memory_blocks *= 1 - SPARE_SHARE  # what the emulator's policies leave free there
    sigma, speed = run.scale.sigma, run.scale.speed
    none = {} if pool else {"memory": "none"}
    return scenario.changed(
        network={
            "fragments": cut.fragments,
            "segments": min(8, cut.fragments - 1),
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
            "expects": run.options.expect,
        },
        direct={"lookup_s": 0.0},  # nodes that lend ask the index once, before the gate
        machine=_machine(run) | costs.table(speed),
    )


@dataclass(frozen=True, slots=True)
class _Cut:
    """How the emulator cuts the blocks that the simulator counts in."""

    block_bytes: float
    """Real ones."""
    values: float
    """That such a block takes, on average."""
    fragments: int
    """That the simulator cuts it into: a whole number."""

    @classmethod
    def of(cls, run: RunScenario) -> _Cut:
        """Coded blocks count with their mean; those of a stream are cut as the plain one is, by level."""
        sizes = run.sizes
        if isinstance(sizes, Ladder) or sizes.compression is None:
            return cls(run.cost.block_bytes, run.fragments, run.fragments)
        return cls(run.cost.stored_bytes, sizes.mean_fragments, max(2, round(sizes.mean_fragments)))


def _machine(run: RunScenario) -> dict[str, Any]:
    """What the emulator runs on but for what that takes, in real seconds."""
    speed = run.scale.speed
    rate_bit_s = run.fabric.link_rate_bit_s(run.fabric.answering[0])
    lump = EndpointOptions.of_link(rate_bit_s).lump_datagrams(KV_HEADER_BYTES + VALUE_BYTES)
    return {
        "pace": speed,
        "link_burst_s": burst_bytes(rate_bit_s) * 8 / rate_bit_s * speed,
        "buffer_share": LUMP_BUFFER_BYTES / VALUE_FRAME_BYTES,
        "lump_fragments": lump,
        "live_turns": True,
        "cores": len(os.sched_getaffinity(0)),
        "timer_s": TIMER_S * speed,
        "node_report_s": REPORT_PERIOD_S * speed,
        "pool_report_s": PERIOD_S * speed,
    }


def _beyond(scenario: Scenario) -> Iterator[tuple[str, str]]:
    """What the emulator can't do."""
    model, nodes = scenario.model, scenario.nodes
    if nodes.blend:
        yield "nodes.blend", "blending is not compared with the emulator here: use false"
    if not scenario.switched:
        yield "storage.kind", 'the emulator has storage nodes, or nodes that lend: direct.front = "switches"'
    if scenario.lends and nodes.hints != HOMES:
        yield (
            "nodes.hints",
            'where nodes lend, an index says who holds what, and what waits there: use "homes"',
        )
    if (nodes.decode, nodes.loading) != ("apart", "overlapped") or nodes.gate == "never":
        yield "nodes", 'the emulator has decode = "apart", loading = "overlapped", and no gate = "never"'
    if (nodes.asking, nodes.tiers) != ("chain", DEFAULT_RULE):
        yield "nodes", 'compared with the emulator are asking = "chain" and exclusive tiers only'
    if scenario.decoders.count:
        yield "decoders.count", "the emulator has no decoders: decoding waits for nobody there"
    if model.coded_share is not None or model.decode_gbyte_s or model.decoding != "beside":
        yield "model", "the emulator codes blocks by model.codec and beside everything else only"
    if not nodes.stores_new:
        yield "nodes.stores_new", "the emulator's nodes store what they compute"
    if nodes.warm != "no":
        yield "nodes.warm", 'the emulator has no warm nodes: use "no"'
    if nodes.hints != ANSWERS and (nodes.gate != "compare" or scenario.workload.scheduler == CONDUCTOR):
        yield "nodes.hints", 'the emulator has them with gate = "compare", and without the conductor'
    if nodes.joining and (nodes.joins_at, nodes.lead_s) != (JOINS_AT, LEAD_S):
        yield "nodes", f"the emulator's nodes join at {JOINS_AT}, {LEAD_S} s before they are sent requests"
    if scenario.workload.clients or scenario.workload.hit_share is not None:
        yield "workload", "the emulator plays traces only"
    if scenario.workload.load != 1.0:
        yield "workload.load", "the emulator plays traces at their own rate"
    if model.layers is not None:
        yield "model.layers", "the emulator has the preset models only"
    figures = (model.gpus, model.prefill_utilisation, model.memory_utilisation, model.attention)
    if figures != (8, 0.5, 0.7, "full"):
        yield "model", "the emulator has the cost model's own GPUs only"
    if scenario.pool.memory == "dram":
        yield "pool.memory", "the emulator's pool serves at line rate only"


def _silent(completed: int, total: int, blocks: dict[str, int]) -> None:
    """Progress that nobody wants to see."""
