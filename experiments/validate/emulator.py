"""The simulator against the packet-level emulator: the same scenario in both, without and with the pool."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from experiments.logs import Open
from experiments.simulate.emulate import Emulator
from experiments.validate.calibrate import Calibrate, Calibrations
from experiments.validate.incast import write_incast
from experiments.validate.measured import Measured, load_play, measured_of, store_play
from experiments.validate.random_scenarios import draw
from experiments.validate.rows import Row
from hostlib.node.request_record import SOURCES
from scenario import Scenario, load_scenario
from simulator.result import SimResult
from simulator.simulation import simulate
from topologies.network import Network

SCENARIOS = Path(__file__).parent / "scenarios"
BLOCKS_TOLERANCE = 0.10
"""Largest relative deviation from the number of blocks that the emulator found in the same tier."""
TIMES_TOLERANCE = {"mean": 0.10, "p50": 0.10, "p99": 0.20}
DRAWN_PLAY_S = 20.0
"""Longest time, in seconds, over which the requests of a drawn scenario come on the emulator."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """One scenario on the emulator and in the simulator."""

    scenario: str
    pool: bool
    emulated: Measured
    simulated: SimResult

    @property
    def name(self) -> str:
        """Return the name of the run."""
        return _name(self.scenario, self.pool)

    @property
    def rows(self) -> tuple[Row, ...]:
        """Return the comparison, figure by figure."""
        return tuple(_rows(self.name, self.emulated, self.simulated))


def star(trace: Path, requests: int | None) -> Scenario:
    """Return the star on a slice of a trace."""
    scenario, _ = load_scenario(SCENARIOS / "emulator-star.toml")
    given = {"trace": trace} | ({"requests": requests} if requests else {})
    return scenario.changed(workload=given)


def incast(folder: Path) -> Scenario:
    """Return the scenario of the incast; its trace is written to a folder."""
    scenario, _ = load_scenario(SCENARIOS / "emulator-incast.toml")
    nodes = scenario.nodes.count
    trace = write_incast(folder / "incast.jsonl", nodes, scenario.workload.simulated_requests // nodes)
    return scenario.changed(workload={"trace": trace})


def compare(
    scenario: Scenario,
    sigma: float,
    speed: float | None,
    on_play: Callable[[str], None],
    opened: Open = Network,
    calibrate: Calibrate | None = None,
) -> Iterator[Comparison]:
    """Play without and with the pool, and yield both comparisons.

    `calibrate` measures the machine before and after each play.
    """
    emulator, calibrations = Emulator(scenario, sigma, speed), Calibrations(calibrate)
    played: list[Measured] = []
    for pool in (False, True):
        on_play(_name(scenario.name, pool))
        emulated, readings = calibrations.around(partial(emulator.play, pool, opened))
        played.append(measured_of(emulated, readings))
    yield from _compared(scenario.name, emulator, played)


def compare_drawn(
    number: int,
    sigma: float,
    folder: Path,
    on_play: Callable[[str], None],
    opened: Open = Network,
    calibrate: Calibrate | None = None,
) -> Iterator[Comparison]:
    """Yield both comparisons of the scenario with this number; earlier plays are read from the folder."""
    scenario = draw(number)
    # Requests must come within DRAWN_PLAY_S. If they do at real speed, they are played at it.
    speed = max(1.0, Emulator(scenario, sigma, 1.0).arrivals_s / DRAWN_PLAY_S)
    emulator, calibrations = Emulator(scenario, sigma, speed), Calibrations(calibrate)
    played: list[Measured] = []
    for pool in (False, True):
        path = folder / f"{number}-{'pool' if pool else 'no-pool'}.json"
        measured = load_play(path, scenario, sigma, speed)
        if measured is None:
            on_play(_name(scenario.name, pool))
            emulated, readings = calibrations.around(partial(emulator.play, pool, opened))
            measured = store_play(path, scenario, sigma, emulated, readings)
        played.append(measured)
    yield from _compared(scenario.name, emulator, played)


def _compared(name: str, emulator: Emulator, played: Sequence[Measured]) -> Iterator[Comparison]:
    """Yield each play with the simulation of its machine.

    Nothing is simulated before all are played, because simulating takes a core.
    """
    for pool, measured in zip((False, True), played, strict=True):
        yield Comparison(name, pool, measured, simulate(emulator.matched(pool, measured.costs)))


def _name(scenario: str, pool: bool) -> str:
    return f"{scenario}, {'with' if pool else 'without'} the pool"


def _rows(name: str, measured: Measured, simulated: SimResult) -> Iterator[Row]:
    """Yield the figures with a tolerance, then others for information."""
    for source in SOURCES:
        yield Row(
            name, f"blocks: {source}", measured.blocks[source], simulated.blocks[source], BLOCKS_TOLERANCE
        )
    for what, emulated_s, simulated_s in (
        ("TTFT", measured.ttft_s, simulated.ttft_s),
        ("GET", measured.get_s, simulated.get_s),
    ):
        for share, tolerance in TIMES_TOLERANCE.items():
            yield Row(
                name, f"{what} {share}, s", getattr(emulated_s, share), getattr(simulated_s, share), tolerance
            )
    yield Row(name, "admissions", measured.admitted, simulated.admitted)
    yield Row(name, "digests", measured.digests, simulated.digests)
