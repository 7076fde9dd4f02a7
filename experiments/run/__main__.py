"""make run: one trace on a network around a P4 switch that only forwards, merges, or also has a pool."""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from functools import partial

from rich.progress import Progress, TaskID, TextColumn

from commands.command import Screen, run_command
from commands.value_size import LARGEST_BYTES, build_core, restart_with_size, size_is_unset
from emulator.details import Details, details_of, write_details
from emulator.emulation import Emulation, Measurements
from emulator.evaluate import evaluate
from emulator.machine import advice
from emulator.options import RunOptions, parse_options, without_effect
from emulator.real_kv import RealKv, compute_kv
from emulator.recording import Recording
from emulator.repeats import Repeats
from emulator.result import PROGRAM, RunResult, revision
from emulator.scenario import Scenario, least_sigma, make_scenario
from emulator.summary import write_summary
from experiments.live import Dashboard
from experiments.logs import open_network
from experiments.run.capacity import MANY_PROCESSES, choose_sigma, demand_of, measure
from experiments.run.on_servers import (
    Cluster,
    find_servers,
    machines_of,
    measure_servers,
    open_on_servers,
    scenario_on,
)
from experiments.run.page import write_page
from experiments.run.report import print_report
from experiments.run.watching import start_watching
from experiments.run.words import sketch
from hostlib import native
from hostlib.protocol.wire import VALUE_BYTES
from scenario.modes import MODES, Mode
from scenario.reading import DEMO
from topologies.engines import Embedded, Engine, make_engine
from topologies.machine_check import check_machine
from topologies.running import RunningNetwork
from workload.compression import NONE
from workload.levels import Ladder

LINES = 4
"""Number of progress lines in a play where there is no terminal."""
LARGER_SIGMAS = 2
"""Number of times that a sigma the machine chose is doubled when the machine did not keep up."""


def main(arguments: Sequence[str]) -> int:
    """Run and return the exit code.

    It is 0 if all requests were served or refused and every block was right, 1 if not, 2 if it could not run.
    """
    return run_command(arguments, lambda given: parse_options(given, "weir run", __doc__ or ""), _run)


def _run(screen: Screen, options: RunOptions) -> int:
    if options.scale is None and size_is_unset() and options.emulation.engine == Embedded.name:
        restart_with_size(LARGEST_BYTES)  # the machine's limit is packets, and large values need the fewest
    build_core()
    engine = make_engine(options.emulation.engine)
    cluster = find_servers(screen, options)
    if cluster is None:
        check_machine()
    least = least_sigma(options.network.topology)
    draft = make_scenario(options, None if options.scale is not None else least)
    screen.say(sketch(draft.fabric))
    scenario = make_scenario(options, _chosen_sigma(screen, draft, engine, cluster))
    if cluster is not None:
        scenario = scenario_on(screen, scenario, cluster)
    played = _play_to_count(screen, scenario, engine, cluster)
    scenario, runs = played.scenario, played.repeats
    summary = options.emulation.results / "summary.json"
    about = _about(scenario) | ({} if cluster is None else cluster.about(scenario))
    write_summary(summary, about, runs)
    print_report(screen.console, _title(scenario), runs, _advice(scenario))
    page = options.emulation.results / "report.html"
    details = write_details(
        options.emulation.results / "details.json", about, scenario, runs, played.typical_details()
    )
    write_page(page, details, runs.complaints() if runs.overloaded else (), _advice(scenario), runs.count)
    screen.say(f"Written to {summary}; to look at: {page}")
    return 0 if all(run.is_right for run in runs.all()) else 1


def _chosen_sigma(screen: Screen, draft: Scenario, engine: Engine, cluster: Cluster | None) -> float | None:
    """Return the sigma that this machine, or the servers, can carry; None if SCALE gives one.

    With servers, their tunnels are measured in either case. `draft` is the most detailed scenario.
    """
    options = draft.options
    carriers = "this machine" if cluster is None else "the servers"
    if cluster is not None:
        on_servers = measure_servers(screen, draft, cluster)
    if options.scale is not None:
        return None
    if cluster is None:
        with screen.status("measuring what this machine can carry"):
            capacity = measure()
    else:
        assert on_servers is not None
        capacity = on_servers
    fabric = draft.fabric
    background = ""
    if len(fabric.hosts) + len(fabric.switches) > MANY_PROCESSES:
        with screen.status("measuring what the network takes while nobody asks for anything"):
            capacity = replace(capacity, background_cores=_background(screen, draft, engine, cluster))
        background = f", of which the network takes {capacity.background_cores:.2f} without a request"
    rates = options.storage.link_gbit_s or (options.network.link_gbit_s,) * len(fabric.answering)
    link_bit_s = 2e9 * sum(rates)
    demand = demand_of(draft.trace.requests, link_bit_s)
    sigma = choose_sigma(capacity, demand, draft.cost.block_bytes, draft.scale.sigma, draft.scale.speed)
    screen.say(
        f"Of {carriers}, {capacity.idle_cores:.1f} of {capacity.cores:.2g} cores are idle{background}, and a "
        f"fragment of {VALUE_BYTES:,} bytes costs its two ends {capacity.fragment_us:.0f} us: "
        f"sigma {sigma:g}."
    )
    if capacity.others and capacity.idle_cores < capacity.cores / 2:
        screen.warn(
            f"what keeps {carriers} busy: {', '.join(capacity.others)}. Results are finer, and more "
            "reliable, when that has ended.",
            "busy",
        )
    return sigma


def _background(screen: Screen, scenario: Scenario, engine: Engine, cluster: Cluster | None) -> float:
    """Return the number of cores that the network takes without requests; it is started
    for that, and stopped."""
    with _open(screen, scenario, engine, cluster) as network:
        artifacts = network.compile(PROGRAM, scenario.defines)
        emulation = Emulation(scenario.idle(), network, artifacts, machines=machines_of(network))
        return emulation.background(MODES["pool"])


@dataclass(frozen=True, slots=True)
class _Played:
    scenario: Scenario
    repeats: Repeats
    details: dict[str, list[Details]]
    """Details of each play, by mode, in the order of the repeats."""

    def typical_details(self) -> dict[str, Details]:
        """Return the details of the plays that stand for their modes."""
        typical = self.repeats.typical()
        return {
            name: self.details[name][runs.index(typical[name])] for name, runs in self.repeats.runs.items()
        }


def _play_to_count(screen: Screen, scenario: Scenario, engine: Engine, cluster: Cluster | None) -> _Played:
    """Play; if the machine chose sigma and does not keep up, begin again with a larger sigma."""
    larger = 0 if scenario.options.scale is not None else LARGER_SIGMAS
    while True:
        _announce(screen, scenario)
        # With one fragment a block, a larger sigma makes no block smaller, only links slower.
        may_grow = larger > 0 and scenario.block_bytes > scenario.scale.fragment_bytes
        played = _play(screen, scenario, engine, cluster, give_up=may_grow)
        repeats = played.repeats
        if not (may_grow and repeats.overloaded):
            return played
        larger -= 1
        for complaint in repeats.complaints():
            screen.say(f"[yellow]{complaint}[/]")
        sigma = 2 * scenario.scale.sigma
        screen.say(f"The machine did not keep up: all is played again with sigma {sigma:g}.")
        scenario = make_scenario(scenario.options, sigma)


def _play(
    screen: Screen, scenario: Scenario, engine: Engine, cluster: Cluster | None, give_up: bool
) -> _Played:
    """Play all modes as often as asked for; with `give_up`, stop after a play in which
    the machine fell behind."""
    options = scenario.options
    runs: dict[str, list[RunResult]] = {name: [] for name in options.emulation.modes}
    details: dict[str, list[Details]] = {name: [] for name in options.emulation.modes}
    recording = Recording(scenario, screen.warn)
    with ExitStack() as stack:
        dashboard = Dashboard(options.pool_blocks) if options.emulation.live and screen.can_live else None
        watch = start_watching(scenario, screen.say, stack, dashboard)
        progress = stack.enter_context(screen.progress(TextColumn("{task.fields[sources]}"), below=dashboard))
        network = stack.enter_context(_open(screen, scenario, engine, cluster))
        task = progress.add_task(f"compiling the P4 program ({engine.name})", total=None, sources="")
        artifacts = network.compile(PROGRAM, scenario.defines)
        progress.remove_task(task)
        kv = _real_kv(scenario, network, progress)
        machines = machines_of(network)
        emulation = Emulation(scenario, network, artifacts, watch, None if kv is None else kv.path, machines)
        for number, name in itertools.product(range(1, options.emulation.runs + 1), options.emulation.modes):
            # Modes take turns, so that a change on the machine affects all of them alike.
            turn, recorded = "", name
            if options.emulation.runs > 1:
                turn, recorded = f" ({number} of {options.emulation.runs})", f"{name}-{number}"
            label = f"{MODES[name].title}: the switch {MODES[name].does}{turn}"
            task = progress.add_task(label, total=len(scenario.trace.requests), sources="")
            shown = _shown_in_lines(screen, label) if not screen.can_live else _shown_nowhere
            play = partial(_play_once, emulation, MODES[name], progress, task, shown)
            measured = recording.play(network, recorded, play)
            runs[name].append(evaluate(measured, scenario.tenants, scenario.target_s))
            details[name].append(details_of(measured))
            if give_up and runs[name][-1].overloaded:
                break
    repeats = Repeats({name: tuple(results) for name, results in runs.items() if results})
    return _Played(scenario, repeats, details)


def _open(
    screen: Screen, scenario: Scenario, engine: Engine, cluster: Cluster | None
) -> AbstractContextManager[RunningNetwork]:
    how, about = scenario.options.emulation, _about(scenario)
    if cluster is not None:
        return open_on_servers(screen, scenario, engine, about, cluster)
    return open_network(screen, scenario.fabric, engine, how.results, about, secure=how.secure)


def _real_kv(scenario: Scenario, network: RunningNetwork, progress: Progress) -> RealKv | None:
    """Return the KV that the model of MODEL=folder computes for the blocks; None without a folder."""
    folder = scenario.options.model_choice.folder
    if folder is None:
        return None
    task = progress.add_task(f"computing KV with {folder.name}", total=None, sources="")

    def show(done: int, chains: int) -> None:
        progress.update(task, total=chains, completed=done)

    real_kv = compute_kv(scenario, folder, network.directory, show)
    progress.update(task, total=1, completed=1, sources=real_kv.summary)
    return real_kv


def _shown_in_lines(screen: Screen, label: str) -> Callable[[int, int], None]:
    """Return a function that prints how many requests are served, for output without a terminal
    such as CI logs."""
    lines_shown = 0

    def show(completed: int, total: int) -> None:
        nonlocal lines_shown
        if completed * LINES >= (lines_shown + 1) * total > 0:
            lines_shown = completed * LINES // total
            screen.say(f"{label}: {completed:,} of {total:,} requests")

    return show


def _shown_nowhere(completed: int, total: int) -> None:
    """Show nothing; a progress bar shows it."""


def _play_once(
    emulation: Emulation, mode: Mode, progress: Progress, task: TaskID, shown: Callable[[int, int], None]
) -> Measurements:
    def show(completed: int, total: int, blocks: dict[str, int]) -> None:
        shown(completed, total)
        sources = ", ".join(f"{source} {blocks.get(source, 0):,}" for source in ("pool", "remote"))
        progress.update(task, completed=completed, total=total, sources=sources)

    measured = emulation.play(mode, show)
    total = sum(worker["requests"] for worker in measured.workers.values())
    progress.update(task, completed=total)
    return measured


def _announce(screen: Screen, scenario: Scenario) -> None:
    options, trace = scenario.options, scenario.trace
    unused = without_effect(options.scenario)
    if unused and options.scenario != DEMO:
        screen.say(f"{options.scenario}: for the simulator alone are {', '.join(unused)}.")
    for warning in trace.warnings:
        screen.warn(warning, "trace")
    if not native.core().is_compiled and os.environ.get("WEIR_PURE") != "1":
        screen.warn("hosts run in Python alone, and more slowly: python -m hostlib.native says why", "slow")
    stores = f", {len(scenario.fabric.stores)} storage nodes"
    rates = [f"{rate:g}" for rate in options.storage.link_gbit_s]
    others = f"; those of the storage nodes {', '.join(rates)} Gbit/s at real scale" if rates else ""
    screen.say(
        f"{len(scenario.fabric.nodes)} inference nodes"
        f"{' that lend one another their memory' if options.lends else stores}, "
        f"{len(scenario.fabric.switches)} switch ({options.emulation.engine}). "
        f"Sigma {scenario.scale.sigma:g}: "
        f"a block of {scenario.cost.block_bytes / 1e6:.1f} MB is {scenario.block_bytes:,} bytes here, "
        f"a {options.network.link_gbit_s * scenario.scale.speed:g} Gbit/s link "
        f"{scenario.scale.rate_bit_s(options.network.link_gbit_s * 1e9) / 1e6:.1f} Mbit/s{others}.\n"
        f"Trace {trace.name}: {len(trace.requests):,} requests from second {scenario.start_s:.0f} on, played "
        f"{scenario.scale.speed:.2f} times as fast in {trace.duration_s:.0f} s, "
        f"{options.emulation.runs * len(options.emulation.modes)} times."
        + ("" if options.model.codec == NONE else f"\nBlocks are coded by {_codec(scenario)}.")
    )


def _advice(scenario: Scenario) -> str:
    """Return what helps a machine that did not keep up, without what is so already."""
    smallest = scenario.block_bytes <= scenario.scale.fragment_bytes
    return advice(scale_given=scenario.options.scale is not None, smallest_blocks=smallest)


def _title(scenario: Scenario) -> str:
    options = scenario.options
    whose = "this machine's choice" if options.scale is None else "as given"
    coded = "" if options.model.codec == NONE else f"{_codec(scenario)}, "
    coded += f"{options.nodes.blend_share:.0%} of chunks recomputed, " if options.nodes.blend else ""
    return (
        f"{scenario.trace.name}: {options.pool_blocks} blocks of pool, {coded}policy {options.pool.policy}, "
        f"sigma {scenario.scale.sigma:g} ({whose})"
    )


def _codec(scenario: Scenario) -> str:
    """Return the codec of the blocks and the share of the bytes that it stores, in words."""
    sizes, coder = scenario.sizes, scenario.options.model.coder
    if isinstance(sizes, Ladder):
        each = ", ".join(
            f"{level} {one.stored_share:.1%}"
            for (_, level), one in zip(sizes.numbers, sizes.levels, strict=True)
        )
        return f"{sizes.codec} adaptive ({coder}, of the bytes {each}; kept {sizes.all_levels_share:.1%})"
    if sizes.compression is None:
        return NONE
    share = scenario.cost.stored_share
    return f"{sizes.compression.codec} {sizes.compression.level} ({coder}, {share:.1%} of the bytes)"


def _about(scenario: Scenario) -> dict[str, object]:
    options = scenario.options
    return {
        "engine": options.emulation.engine,
        "topology": scenario.fabric.name,
        "trace": str(options.workload.trace) if options.workload.trace else scenario.trace.name,
        "seed": options.workload.seed,
        "scale": scenario.scale.sigma,
        "value_bytes": VALUE_BYTES,
        "scale_chosen": "by the user" if options.scale is not None else "by the machine",
        "revision": revision(),
        "start_s": scenario.start_s,
        "speed": scenario.scale.speed,
        "hosts": len(scenario.fabric.nodes),
        "stores": len(scenario.fabric.stores),
        "link_gbit_s": options.network.link_gbit_s,
        "store_gbit_s": options.storage.link_gbit_s or None,
        "policy": options.pool.policy,
        "eviction": options.eviction,
        "fill": options.control.fill,
        "expect": options.control.expects,
        "pool_blocks": options.pool_blocks,
        "model": str(options.model_choice.folder or options.model_choice.preset),
        "scheduler": options.workload.scheduler,
        "ttft_slo_s": options.workload.ttft_slo_s,
        "tiers": options.nodes.tiers,
        "gate": options.gate,
        "hints": options.hints,
        "fetch": options.fetch,
        "requests_first": options.network.requests_first,
        "tenants": options.workload.tenants,
        "block_bytes": scenario.block_bytes,
        "codec": _codec(scenario),
        "blend_share": options.nodes.blend_share if options.nodes.blend else None,
        "stored_share": round(scenario.cost.stored_share, 5),
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
