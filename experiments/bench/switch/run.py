"""Run of the benchmark: engines are started once, each with its own cables, and take turns in rounds.

The load generator has the first of two cores, an engine with one forwarding thread the second. BMv2, which
has a thread for every stage, may use both. The core that sends a frame also delivers it at the cable's other
end, so each core pays for what it sends.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import psutil

from commands.precedence import precedence
from emulator.result import revision
from experiments.bench.switch.engines import ECHO, Contender, Echo, Switch
from experiments.bench.switch.errors import BenchError
from experiments.bench.switch.load import LoadGenerator
from experiments.bench.switch.measure import AS_FAST_AS_POSSIBLE, Bench, Measurement
from experiments.bench.switch.options import ENGINE_NAMES, BenchOptions
from experiments.bench.switch.plan import encode
from experiments.bench.switch.startup import ControlFigures, measure_control
from experiments.bench.switch.workloads import WORKLOADS, Workload
from topologies.engines import Bmv2, make_engine
from topologies.errors import EngineError
from topologies.run_records import RunRecord


@dataclass(slots=True)
class Results:
    """Results of a run so far."""

    rounds: dict[str, dict[str, list[Measurement]]] = field(default_factory=dict)
    control: dict[str, ControlFigures] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    background_cpu: float = 0.0
    """Share of the machine's CPU time that other programs used when the run began."""
    sink_per_s: float = 0.0
    """Frames a second that the generator can send if nobody answers."""
    skipped: dict[str, str] = field(default_factory=dict)
    """Engines that are not installed, with the reason."""


Show = Callable[[str], None]
_LOOK_S: Final = 1.0


def run(options: BenchOptions, show: Show, save: Callable[[Results], None]) -> Results:
    """Measure all. Calls `show` with what is being done, and `save` with the results after each round.

    Raises BenchError, EngineError.
    """
    cpus = choose_cpus()
    show("looking how busy the machine is")
    results = Results(background_cpu=psutil.cpu_percent(_LOOK_S) / 100)
    workloads = [workload for workload in WORKLOADS if workload.name in options.workloads]
    with contextlib.ExitStack() as stack:
        if options.precedence:
            stack.enter_context(precedence())
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="weir-bench-")))
        stack.enter_context(RunRecord(directory))
        plans = _write_plans(workloads, options.seed, directory)
        contenders = list(_start(options, stack, results, cpus, directory, show))
        benches = [Bench(one, cpus.generator, options.seconds, plans) for one in contenders]
        for number in range(options.rounds):
            for workload in workloads:
                for bench in benches:
                    _measure(bench, workload, f"round {number + 1}/{options.rounds}", results, show)
            save(results)
        _measure_alternately(contenders, results, show)
        _measure_sink(contenders, cpus.generator, options, directory, results, show)
        save(results)
    return results


@dataclass(frozen=True, slots=True)
class Cpus:
    """CPUs for the generator, for an engine, and both, as taskset writes them."""

    generator: str
    engine: str
    both: str


def choose_cpus() -> Cpus:
    """Choose the CPUs for generator and engine; raises BenchError if there are fewer than two."""
    usable = sorted(os.sched_getaffinity(0))
    if len(usable) < 2:
        raise BenchError("two CPUs are needed, one for the load generator and one for the engine")
    first, second = usable[:2]
    return Cpus(str(first), str(second), f"{first},{second}")


def _write_plans(workloads: list[Workload], seed: int, directory: Path) -> dict[str, Path]:
    plans = {}
    for workload in workloads:
        plans[workload.name] = directory / f"{workload.name}.plan"
        plans[workload.name].write_bytes(encode(workload.make_plan(seed)))
    return plans


def _start(
    options: BenchOptions,
    stack: contextlib.ExitStack,
    results: Results,
    cpus: Cpus,
    directory: Path,
    show: Show,
) -> Iterator[Contender]:
    """Start the engines asked for, or those that are installed if none was; yield each."""
    for name in options.engines or ENGINE_NAMES:
        show(f"starting {name}")
        if name == ECHO:
            yield stack.enter_context(Echo(cpus.engine))
            continue
        try:
            engine = make_engine(name)
        except EngineError as error:
            if options.engines:
                raise
            results.skipped[name] = str(error)
            continue
        engine_cpus = cpus.both if name == Bmv2.name else cpus.engine
        own = directory / name
        own.mkdir()
        yield stack.enter_context(Switch(engine, own, engine_cpus, cpus.generator))
        results.versions[name] = _version(name)


def _version(engine: str) -> str:
    if engine != Bmv2.name:
        return revision()
    return "; ".join(_tool_version(tool) for tool in (Bmv2.switch, Bmv2.compiler))


def _tool_version(tool: str) -> str:
    """Return a tool's name and version. What the tool prints may begin with its name."""
    done = subprocess.run((tool, "--version"), capture_output=True, text=True, check=False)
    output = " ".join((done.stdout or done.stderr).split())
    return f"{tool} {output.removeprefix(tool).strip()}"


def _measure(bench: Bench, workload: Workload, where: str, results: Results, show: Show) -> None:
    name = bench.contender.name
    measured = bench.measure(workload, lambda what: show(f"{where}: {workload.title}, {name}: {what}"))
    results.rounds.setdefault(workload.name, {}).setdefault(name, []).append(measured)


def _measure_alternately(contenders: list[Contender], results: Results, show: Show) -> None:
    for contender in contenders:
        if isinstance(contender, Switch):
            show(f"control plane, {contender.name}")
            results.control[contender.name] = measure_control(contender)


def _measure_sink(
    contenders: list[Contender],
    generator_cpus: str,
    options: BenchOptions,
    directory: Path,
    results: Results,
    show: Show,
) -> None:
    """Measure the generator's highest rate: it sends into a cable at whose other end nothing is answered."""
    (hits,) = (workload for workload in WORKLOADS if workload.name == "hits")
    plan = directory / "sink.plan"
    plan.write_bytes(encode(hits.make_plan(options.seed)))
    for contender in contenders:
        if isinstance(contender, Echo):
            show("the generator against a sink")
            contender.restart(("0:0:0",), contender.cables.engine_ends[1:2])
            generator = LoadGenerator(contender.cables, generator_cpus)
            trial = generator.run(plan, hits.cables, AS_FAST_AS_POSSIBLE, options.seconds)
            results.sink_per_s = trial.sent_per_s
