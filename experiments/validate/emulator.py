"""The simulator against the packet-level emulator: the same scenario in both, without and with the pool."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from experiments.logs import Open
from experiments.run.result import RunResult
from experiments.simulator.emulate import Emulated, Emulator
from experiments.simulator.result import SimResult
from experiments.simulator.scenario import Scenario, load_scenario
from experiments.simulator.simulation import simulate
from experiments.validate.incast import write_incast
from experiments.validate.rows import Row
from hostlib.request_record import SOURCES
from topologies.network import Network

SCENARIOS = Path(__file__).parent / "scenarios"
BLOCKS_TOLERANCE = 0.10
"""Of the blocks that the emulator found in the same tier."""
P50_TOLERANCE = 0.10
P99_TOLERANCE = 0.20


@dataclass(frozen=True, slots=True)
class Comparison:
    """One scenario in both worlds."""

    name: str
    emulated: RunResult
    speed: float
    simulated: SimResult
    rows: tuple[Row, ...]


def star(trace: Path, requests: int | None) -> Scenario:
    """The star on a slice of a trace."""
    scenario, _ = load_scenario(SCENARIOS / "emulator-star.toml")
    given = {"trace": str(trace)} | ({"requests": requests} if requests else {})
    return scenario.changed(workload=given)


def incast(folder: Path) -> Scenario:
    """The incast, its trace written to a folder."""
    scenario, _ = load_scenario(SCENARIOS / "emulator-incast.toml")
    nodes = scenario.nodes.count
    trace = write_incast(folder / "incast.jsonl", nodes, scenario.workload.requests // nodes)
    return scenario.changed(workload={"trace": str(trace)})


def compare(
    scenario: Scenario,
    sigma: float,
    speed: float | None,
    on_play: Callable[[str], None],
    opened: Open = Network,
) -> Iterator[Comparison]:
    """Play without and with the pool."""
    emulator = Emulator(scenario, sigma, speed)
    for pool in (False, True):
        name = f"{scenario.name}, {'with' if pool else 'without'} the pool"
        on_play(name)
        emulated = emulator.play(pool, opened)
        simulated = simulate(emulator.matched(pool))
        rows = tuple(compare_figures(name, emulated, simulated))
        yield Comparison(name, emulated.run, emulated.speed, simulated, rows)


def compare_figures(name: str, emulated: Emulated, simulated: SimResult) -> Iterator[Row]:
    """The figures with a tolerance, then others for information."""
    run = emulated.run
    for source in SOURCES:
        measured, predicted = getattr(run.blocks, source), simulated.blocks[source]
        yield Row(name, f"blocks: {source}", measured, predicted, BLOCKS_TOLERANCE)
    for share, tolerance in (("p50", P50_TOLERANCE), ("p99", P99_TOLERANCE)):
        measured_s = emulated.real_s(getattr(run.ttft_ms, share))
        yield Row(name, f"TTFT {share}, s", measured_s, getattr(simulated.ttft_s, share), tolerance)
    for share, tolerance in (("p50", P50_TOLERANCE), ("p99", P99_TOLERANCE)):
        measured_s = emulated.real_s(getattr(run.get_ms, share))
        yield Row(name, f"GET {share}, s", measured_s, getattr(simulated.get_s, share), tolerance)
    yield Row(name, "admissions", run.admitted, simulated.admitted)
    yield Row(name, "digests", run.digests, simulated.digests)
