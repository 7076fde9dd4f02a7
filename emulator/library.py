"""Running a scenario from a program or a notebook."""

from __future__ import annotations

import dataclasses

from commands.value_size import build_core
from emulator.emulation import Emulation
from emulator.evaluate import evaluate
from emulator.options import RunOptions
from emulator.result import PROGRAM, RunResult
from emulator.scenario import make_scenario
from hostlib.protocol.wire import MTU_BYTES
from scenario import Scenario
from scenario.modes import MODES
from topologies.engines import make_engine
from topologies.network import Network


def play(scenario: Scenario) -> dict[str, RunResult]:
    """Run a scenario once in each of its modes (`emulation.modes`) and return the results by mode.

    It needs root and Mininet, and takes a minute or two for each mode. If `emulation.sigma` is open, the most
    detailed scale of the topology is used. `overloaded` of each result says whether the machine kept up.
    Nothing is written, and nothing of the network is left afterwards.

    Raises OptionError for a scenario that the emulator can't run, TopologyError on a machine that can't run
    any, EngineError if the P4 program can't be compiled, and CrashError or ProcessError if a part fails.
    """
    build_core()
    options = _as_played(scenario)
    emulated, engine = make_scenario(options), make_engine(options.emulation.engine)
    with Network(emulated.fabric, engine, secure=options.emulation.secure, mtu_bytes=MTU_BYTES) as network:
        artifacts = network.compile(PROGRAM, emulated.defines)
        emulation = Emulation(emulated, network, artifacts)
        return {
            name: evaluate(emulation.play(MODES[name], _unwatched), emulated.tenants, emulated.target_s)
            for name in options.emulation.modes
        }


def _as_played(scenario: Scenario) -> RunOptions:
    """Return the scenario as the emulator's options."""
    if isinstance(scenario, RunOptions):
        return scenario
    return RunOptions(**{one.name: getattr(scenario, one.name) for one in dataclasses.fields(scenario)})


def _unwatched(completed: int, requests: int, blocks: dict[str, int]) -> None:
    """Show no progress."""
