"""make run: one trace on a star of hosts around a P4 switch, without and with the pool."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from controller.errors import ControllerError
from controller.policies import PolicyError
from experiments.interrupt import raise_on_signals
from experiments.options import OptionError
from experiments.run.emulation import Emulation, Measurements
from experiments.run.evaluate import evaluate
from experiments.run.options import parse_options
from experiments.run.processes import ProcessError
from experiments.run.report import print_report
from experiments.run.result import ROOT, RunResult, revision, write_summary
from experiments.run.scenario import Scenario, make_scenario
from topologies.engines import Engine, make_engine
from topologies.errors import EngineError, TopologyError
from topologies.network import Network, check_root
from workload.generate import GenerateError
from workload.scale import ScaleError
from workload.trace import TraceError

PROGRAM = ROOT / "p4" / "weir.p4"
MODES = {"no_pool": False, "pool": True}
BAD_INPUT = (
    OptionError,
    TraceError,
    GenerateError,
    ScaleError,
    TopologyError,
    EngineError,
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
        scenario = make_scenario(options)
        _announce(console, scenario)
        runs = _play(console, scenario, engine)
    except BAD_INPUT as error:
        console.print(f"[bold red]error:[/] {error}", highlight=False, soft_wrap=True)
        return 2
    except KeyboardInterrupt:
        console.print("interrupted; everything that was started has ended")
        return 130
    summary = options.results / "summary.json"
    write_summary(summary, _about(scenario), runs)
    print_report(console, _title(scenario), runs)
    console.print(f"Written to {summary}")
    right = all(
        run.failed == 0 and run.corrupt == 0 and run.completed == run.requests for run in runs.values()
    )
    return 0 if right else 1


def _play(console: Console, scenario: Scenario, engine: Engine) -> dict[str, RunResult]:
    runs: dict[str, RunResult] = {}
    with _progress(console) as progress, Network(scenario.fabric, engine) as network:
        task = progress.add_task(f"compiling the P4 program ({engine.name})", total=None, sources="")
        artifacts = engine.compile(PROGRAM, scenario.defines, network.directory)
        progress.remove_task(task)
        emulation = Emulation(scenario, network, artifacts)
        for name, pool in MODES.items():
            label = "with the pool" if pool else "without the pool"
            task = progress.add_task(label, total=len(scenario.trace.requests), sources="")
            runs[name] = evaluate(_play_once(emulation, name, pool, progress, task))
    return runs


def _play_once(emulation: Emulation, name: str, pool: bool, progress: Progress, task: TaskID) -> Measurements:
    def show(completed: int, total: int, blocks: dict[str, int]) -> None:
        sources = ", ".join(f"{source} {blocks.get(source, 0):,}" for source in ("pool", "remote"))
        progress.update(task, completed=completed, total=total, sources=sources)

    measured = emulation.play(name, pool, show)
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
        f"{scenario.scale.speed:.2f} times as fast in {trace.duration_s:.0f} s, twice.",
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
