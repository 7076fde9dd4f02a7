"""make run: one trace on a network around a P4 switch that only forwards, that merges, or that pools too."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from controller.errors import ControllerError
from controller.policies import PolicyError
from experiments.interrupt import raise_on_signals
from experiments.options import OptionError
from experiments.run.capacity import CapacityError, choose_sigma, demand_of, measure
from experiments.run.details import Details, details_of, write_details
from experiments.run.emulation import Emulation, Measurements
from experiments.run.evaluate import evaluate
from experiments.run.modes import MODES, Mode
from experiments.run.options import RunOptions, parse_options
from experiments.run.page import write_page
from experiments.run.processes import ProcessError
from experiments.run.repeats import Repeats
from experiments.run.report import conclusion, print_report
from experiments.run.result import ROOT, RunResult, revision
from experiments.run.scenario import Scenario, least_sigma, make_scenario
from experiments.run.summary import write_summary
from topologies.engines import Engine, make_engine
from topologies.errors import EngineError, TopologyError
from topologies.network import Network, check_root
from workload.generate import GenerateError
from workload.scale import ScaleError
from workload.trace import TraceError

PROGRAM = ROOT / "p4" / "weir.p4"
LARGER_SIGMAS = 2
"""How often a sigma that the machine chose is doubled when it did not keep up after all."""
BAD_INPUT = (
    OptionError,
    TraceError,
    GenerateError,
    ScaleError,
    TopologyError,
    EngineError,
    CapacityError,
    PolicyError,
    ControllerError,
    ProcessError,
)


def main(arguments: Sequence[str]) -> int:
    """Exit code 0: all requests served and every block right; 1: not so; 2: it could not run."""
    console = Console()
    raise_on_signals()
    try:
        options = parse_options(arguments, "python -m experiments.run", __doc__ or "")
        check_root()
        engine = make_engine(options.engine)
        scenario = make_scenario(options, _chosen_sigma(console, options))
        played = _play_to_count(console, scenario, engine)
    except BAD_INPUT as error:
        console.print(f"[bold red]error:[/] {error}", highlight=False, soft_wrap=True)
        return 2
    except KeyboardInterrupt:
        console.print("interrupted; everything that was started has ended")
        return 130
    scenario, runs = played.scenario, played.repeats
    summary = options.results / "summary.json"
    write_summary(summary, _about(scenario), runs)
    print_report(console, _title(scenario), runs)
    page = options.results / "report.html"
    details = write_details(
        options.results / "details.json", _about(scenario), scenario, runs, played.typical_details()
    )
    write_page(page, details, f"make run: {_title(scenario)}", conclusion(runs, markup=False))
    console.print(f"Written to {summary}; to look at: {page}")
    right = all(run.failed == 0 and run.corrupt == 0 and run.completed == run.requests for run in runs.all())
    return 0 if right else 1


def _chosen_sigma(console: Console, options: RunOptions) -> float | None:
    """What this machine can carry, where SCALE leaves it open."""
    if options.scale is not None:
        return None
    least = least_sigma(options.topology)
    draft = make_scenario(options, least)
    with console.status("measuring what this machine can carry"):
        capacity = measure()
    fabric = draft.fabric
    link_bit_s = 2e9 * options.link_gbit_s * len(fabric.stores)
    demand = demand_of(draft.trace.requests, link_bit_s)
    sigma = choose_sigma(capacity, demand, draft.cost.block_bytes, least, draft.scale.speed)
    console.print(
        f"This machine has {capacity.idle_cores:.1f} cores to spare, and a fragment costs its two ends "
        f"{capacity.fragment_us:.0f} us: sigma {sigma:g}.",
        highlight=False,
    )
    return sigma


@dataclass(frozen=True, slots=True)
class _Played:
    scenario: Scenario
    repeats: Repeats
    details: dict[str, list[Details]]
    """Of each play, by mode, in the order of the repeats."""

    def typical_details(self) -> dict[str, Details]:
        """Those of the plays that stand for their modes."""
        typical = self.repeats.typical()
        return {
            name: self.details[name][runs.index(typical[name])] for name, runs in self.repeats.runs.items()
        }


def _play_to_count(console: Console, scenario: Scenario, engine: Engine) -> _Played:
    """Play; where sigma is the machine's choice and it does not keep up, begin again with a larger one."""
    larger = 0 if scenario.options.scale is not None else LARGER_SIGMAS
    while True:
        _announce(console, scenario)
        played = _play(console, scenario, engine, give_up=larger > 0)
        repeats = played.repeats
        if not (larger and repeats.overloaded):
            return played
        larger -= 1
        for complaint in repeats.complaints():
            console.print(f"[yellow]{complaint}[/]", highlight=False)
        sigma = 2 * scenario.scale.sigma
        console.print(
            f"The machine did not keep up: all is played again with sigma {sigma:g}.", highlight=False
        )
        scenario = make_scenario(scenario.options, sigma)


def _play(console: Console, scenario: Scenario, engine: Engine, give_up: bool) -> _Played:
    """All plays of all modes; with `give_up` only up to the first in which the machine did not keep up."""
    options = scenario.options
    runs: dict[str, list[RunResult]] = {name: [] for name in options.modes}
    details: dict[str, list[Details]] = {name: [] for name in options.modes}
    with (
        _progress(console) as progress,
        Network(scenario.fabric, engine, secure=options.secure) as network,
    ):
        task = progress.add_task(f"compiling the P4 program ({engine.name})", total=None, sources="")
        artifacts = engine.compile(PROGRAM, scenario.defines, network.directory)
        progress.remove_task(task)
        emulation = Emulation(scenario, network, artifacts)
        for number, name in itertools.product(range(1, options.runs + 1), options.modes):
            # Modes in turn, so that what changes on the machine meets all alike.
            turn = f" ({number} of {options.runs})" if options.runs > 1 else ""
            label = f"the switch {MODES[name].title.removeprefix('switch ')}{turn}"
            task = progress.add_task(label, total=len(scenario.trace.requests), sources="")
            measured = _play_once(emulation, MODES[name], progress, task)
            runs[name].append(evaluate(measured))
            details[name].append(details_of(measured))
            if give_up and runs[name][-1].overloaded:
                break
    repeats = Repeats({name: tuple(results) for name, results in runs.items() if results})
    return _Played(scenario, repeats, details)


def _play_once(emulation: Emulation, mode: Mode, progress: Progress, task: TaskID) -> Measurements:
    def show(completed: int, total: int, blocks: dict[str, int]) -> None:
        sources = ", ".join(f"{source} {blocks.get(source, 0):,}" for source in ("pool", "remote"))
        progress.update(task, completed=completed, total=total, sources=sources)

    measured = emulation.play(mode, show)
    total = sum(worker["requests"] for worker in measured.workers.values())
    progress.update(task, completed=total)
    return measured


def _progress(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[sources]}"),
        console=console,
    )


def _announce(console: Console, scenario: Scenario) -> None:
    options, trace = scenario.options, scenario.trace
    for warning in trace.warnings:
        console.print(f"[yellow]trace:[/] {warning}", highlight=False)
    console.print(
        f"{len(scenario.fabric.nodes)} inference nodes, {len(scenario.fabric.stores)} storage nodes, "
        f"{len(scenario.fabric.switches)} switch ({options.engine}). Sigma {scenario.scale.sigma:g}: "
        f"a block of {scenario.cost.block_bytes / 1e6:.1f} MB is {scenario.block_bytes:,} bytes here, "
        f"a {options.link_gbit_s * scenario.scale.speed:g} Gbit/s link "
        f"{scenario.scale.rate_bit_s(options.link_gbit_s * 1e9) / 1e6:.1f} Mbit/s.\n"
        f"Trace {trace.name}: {len(trace.requests):,} requests from second {scenario.start_s:.0f} on, played "
        f"{scenario.scale.speed:.2f} times as fast in {trace.duration_s:.0f} s, "
        f"{options.runs * len(options.modes)} times.",
        highlight=False,
    )


def _title(scenario: Scenario) -> str:
    options = scenario.options
    return f"{scenario.trace.name}: {options.pool_blocks} blocks of pool, policy {options.policy}"


def _about(scenario: Scenario) -> dict[str, object]:
    options = scenario.options
    return {
        "engine": options.engine,
        "topology": scenario.fabric.name,
        "trace": str(options.trace) if options.trace else scenario.trace.name,
        "seed": options.seed,
        "scale": scenario.scale.sigma,
        "scale_chosen": "by the user" if options.scale is not None else "by the machine",
        "revision": revision(),
        "start_s": scenario.start_s,
        "speed": scenario.scale.speed,
        "hosts": len(scenario.fabric.nodes),
        "stores": len(scenario.fabric.stores),
        "policy": options.policy,
        "eviction": options.eviction,
        "pool_blocks": options.pool_blocks,
        "scheduler": options.scheduler,
        "tiers": options.tiers,
        "gate": options.gate,
        "block_bytes": scenario.block_bytes,
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
